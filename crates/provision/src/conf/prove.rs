//! Tries a new slurm.conf on a throw-away slurmctld, which has its own directories and port and ends within a second.

use super::MarkedFile;
use super::trial::{self, Files};
use slurmconf::{Config, Markers};
use slurmctl::{Controller as _, Programs, Scontrol, ScontrolConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// Timeout for an answer of slurmctld, which takes seconds to read many single node lines.
const TRIAL_WAIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// Usual directories of slurmctld, if it is not in that of scontrol.
const USUAL: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/opt/slurm/sbin"];

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// slurmctld ran, with these errors in its log.
    Ran {
        /// The lines of the log.
        errors: Vec<String>,
    },
    /// The file was not tried, for this reason.
    Skipped(&'static str),
}

/// The error of a trial.
#[derive(Debug, thiserror::Error)]
pub enum ProofFailure {
    /// The trial could not be set up.
    #[error("cannot set up the trial")]
    Setup(#[from] io::Error),
    /// slurmctld exited.
    #[error("slurmctld refuses the new file: {0}")]
    Refused(String),
    /// slurmctld did not answer.
    #[error(
        "a throw-away slurmctld does not come up with the new file: no answer within {TRIAL_WAIT:?}: {0}; --no-prove skips the trial"
    )]
    Silent(String),
}

/// A new slurm.conf, and what its trial needs.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The real controller, which gets no requests.
    pub slurm: &'a Scontrol,
    /// Path of slurm.conf.
    pub conf: &'a Path,
    /// The current content of slurm.conf.
    pub config: &'a Config,
    /// The file with the markers.
    pub marked: &'a MarkedFile,
    /// The new node section.
    pub section: &'a str,
    /// The name of this host.
    pub hostname: &'a str,
    /// The user that runs the trial.
    pub user: &'a str,
}

impl Trial<'_> {
    /// Starts a slurmctld with the new file, and stops it as soon as it answers.
    pub async fn prove(&self) -> Result<Proof, ProofFailure> {
        let programs = self.slurm.programs();
        if shares_its_socket(self.config) {
            return Ok(Proof::Skipped("AuthType=auth/slurm has one socket for all controllers"));
        }
        let Some(slurmctld) = slurmctld(programs) else {
            return Ok(Proof::Skipped("no slurmctld is installed here"));
        };
        let folder = TempDir::with_prefix("slurm-elastic-")?;
        let mut new = self.marked.document.clone();
        new.replace_section(Markers::NODES, self.section).map_err(io::Error::other)?;
        let files = Files {
            conf: self.conf,
            marked: &self.marked.path,
            new: new.as_bytes(),
            version: self.slurm.version(),
        };
        let conf = trial::write(
            folder.path(),
            &files,
            trial::Host { name: self.hostname, user: self.user },
        )?;
        let mut child = spawn(&slurmctld, &conf)?;
        let answered = answers(programs, &conf, &mut child).await;
        let _ = child.kill().await;
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
        let errors = errors(&log);
        let last = || errors.last().cloned().unwrap_or_else(|| "its log is empty".to_owned());
        match answered {
            Answered::Yes => Ok(Proof::Ran { errors }),
            Answered::Ended => Err(ProofFailure::Refused(last())),
            Answered::No => Err(ProofFailure::Silent(last())),
        }
    }
}

fn spawn(slurmctld: &Path, conf: &Path) -> io::Result<Child> {
    Command::new(slurmctld)
        .args(["-D", "-c", "-f"])
        .arg(conf)
        .env_clear()
        .env("SLURM_CONF", conf)
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
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

/// True if the trial would replace the real slurmctld's socket: with this authentication plugin it is always
/// /run/slurmctld/sack.socket.
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

/// The errors in the log, without duplicates and without those that the trial itself causes by its missing state and
/// accounting.
fn errors(log: &str) -> Vec<String> {
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
