//! The new file, tried on a slurmctld of its own: other directories, another port, no jobs, and gone in a second.

mod trial;

use super::inputs::Marked;
use crate::context::Context;
use slurmconf::{Config, Markers};
use slurmctl::{Controller as _, Programs, Scontrol, ScontrolConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use trial::Files;

/// How long slurmctld may take to answer; with many nodes written one by one it takes seconds.
const TRIAL_WAIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// Where slurmctld is, if it is not beside scontrol.
const USUAL: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/opt/slurm/sbin"];

/// What a trial showed.
pub(super) enum Proof {
    /// slurmctld ran; what it complained of in its log all the same.
    Ran { complaints: Vec<String> },
    /// It was not tried, and why.
    Untried(&'static str),
}

/// Why a trial failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It could not even be tried.
    #[error("cannot try it")]
    Untried(#[from] io::Error),
    /// slurmctld ended.
    #[error("{0}")]
    Refused(String),
    /// slurmctld did not answer.
    #[error("no answer within {TRIAL_WAIT:?}: {0}; --no-prove goes on without a trial")]
    Silent(String),
}

/// Tries the file with the new nodes in it.
pub(super) async fn prove(
    context: &Context,
    marked: &Marked,
    section: &str,
) -> Result<Proof, Failure> {
    let programs = context.slurm.controller.programs();
    if shares_its_socket(&context.slurm.config) {
        return Ok(Proof::Untried("AuthType=auth/slurm has one socket for all controllers"));
    }
    let Some(slurmctld) = slurmctld(programs) else {
        return Ok(Proof::Untried("no slurmctld is installed here"));
    };
    let folder = TempDir::with_prefix("slurm-elastic-")?;
    let mut new = marked.document.clone();
    new.replace_section(Markers::NODES, section).map_err(io::Error::other)?;
    let (conf, marked) = (&context.slurm.path, &marked.path);
    let version = context.slurm.controller.version();
    let files = Files { conf, marked, new: new.as_bytes(), version };
    let conf = trial::write(folder.path(), &files, &context.environment.hostname)?;
    let mut child = Command::new(slurmctld)
        .args(["-D", "-c", "-f"])
        .arg(&conf)
        .env_clear()
        .env("SLURM_CONF", &conf)
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let answered = answers(programs, &conf, &mut child).await;
    let _ = child.kill().await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    let complaints = complaints(&log);
    let last = || complaints.last().cloned().unwrap_or_else(|| "its log says nothing".to_owned());
    match answered {
        Answered::Yes => Ok(Proof::Ran { complaints }),
        Answered::Ended => Err(Failure::Refused(last())),
        Answered::No => Err(Failure::Silent(last())),
    }
}

enum Answered {
    Yes,
    Ended,
    No,
}

async fn answers(programs: &Programs, conf: &Path, child: &mut Child) -> Answered {
    let mut config = ScontrolConfig::new(programs.clone());
    config.slurm_conf = Some(conf.to_owned());
    config.timeout = Duration::from_secs(5);
    let until = Instant::now() + TRIAL_WAIT;
    while Instant::now() < until {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return Answered::Ended;
        }
        if let Ok(scontrol) = Scontrol::connect(config.clone()).await
            && scontrol.ping().await.unwrap_or(false)
        {
            return Answered::Yes;
        }
        sleep(PAUSE).await;
    }
    Answered::No
}

/// True if the trial would take the real slurmctld's socket away: with this kind of authentication it is
/// /run/slurmctld/sack.socket, whatever slurm.conf says.
fn shares_its_socket(config: &Config) -> bool {
    config.get("AuthType").is_some_and(|kind| kind.eq_ignore_ascii_case("auth/slurm"))
}

fn slurmctld(programs: &Programs) -> Option<PathBuf> {
    let beside = programs.scontrol.parent()?;
    let sibling = beside.parent().map(|root| root.join("sbin"));
    let usual = USUAL.iter().map(PathBuf::from);
    let folders = [Some(beside.to_owned()), sibling].into_iter().flatten().chain(usual);
    folders.map(|folder| folder.join("slurmctld")).find(|path| path.is_file())
}

/// What the log complains of; that a trial has no state to recover and no accounting, and says some
/// things twice, is our doing.
fn complaints(log: &str) -> Vec<String> {
    let harmless = [
        "state file",
        "state save file",
        "specified more than once",
        "very large processing time",
        "supported accounting_storage plugin",
    ];
    log.lines()
        .filter(|line| ["error:", "fatal:"].iter().any(|word| line.contains(word)))
        .filter(|line| !harmless.iter().any(|phrase| line.contains(phrase)))
        .map(|line| line.split_once("] ").map_or(line, |(_, words)| words).to_owned())
        .collect()
}
