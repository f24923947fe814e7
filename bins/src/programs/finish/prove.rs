//! The new file, tried on a slurmctld of its own: other directories, another port, no jobs, and gone in a second.

use super::inputs::Inputs;
use crate::context::Context;
use slurmconf::{Document, Markers, Statement};
use slurmctl::{Controller as _, Programs, Scontrol, ScontrolConfig};
use std::fmt::Write as _;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// How long slurmctld may take to answer; with many nodes written one by one it takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// What the trial is given instead of what the file says, so that the cluster notices nothing of it.
const REPLACED: [&str; 22] = [
    "SlurmctldHost",
    "ControlMachine",
    "ControlAddr",
    "BackupController",
    "BackupAddr",
    "SlurmctldAddr",
    "SlurmctldPort",
    "SlurmctldPidFile",
    "SlurmctldLogFile",
    "StateSaveLocation",
    "SlurmUser",
    "SlurmctldDebug",
    "SlurmSchedLogFile",
    "AccountingStorageType",
    "AccountingStorageHost",
    "AccountingStorageEnforce",
    "JobCompType",
    "PrologSlurmctld",
    "EpilogSlurmctld",
    "HealthCheckProgram",
    "SlurmctldPrimaryOnProg",
    "SlurmctldPrimaryOffProg",
];

/// Where slurmctld is, if it is not beside scontrol.
const USUAL: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/opt/slurm/sbin"];

/// What a trial showed.
pub(super) struct Proof {
    /// What slurmctld complained of in its log, and yet ran.
    pub(super) complaints: Vec<String>,
    /// False if there is no slurmctld here to try it on.
    pub(super) tried: bool,
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
    #[error("no answer within {PATIENCE:?}: {0}")]
    Silent(String),
}

/// Tries the file with the new nodes in it.
pub(super) async fn prove(
    context: &Context,
    inputs: &Inputs,
    section: &str,
) -> Result<Proof, Failure> {
    let programs = context.slurm.controller.programs();
    let Some(slurmctld) = slurmctld(programs) else {
        return Ok(Proof { complaints: Vec::new(), tried: false });
    };
    let folder = TempDir::with_prefix("slurm-elastic-")?;
    let mut new = inputs.document.clone();
    new.replace_section(Markers::NODES, section).map_err(io::Error::other)?;
    let files = Files { conf: &context.slurm.path, marked: &inputs.path, new };
    let conf = write(folder.path(), files, &context.environment.hostname)?;
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
        Answered::Yes => Ok(Proof { complaints, tried: true }),
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
    let until = Instant::now() + PATIENCE;
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

fn slurmctld(programs: &Programs) -> Option<PathBuf> {
    let beside = programs.scontrol.parent()?;
    let sibling = beside.parent().map(|root| root.join("sbin"));
    let usual = USUAL.iter().map(PathBuf::from);
    let folders = [Some(beside.to_owned()), sibling].into_iter().flatten().chain(usual);
    folders.map(|folder| folder.join("slurmctld")).find(|path| path.is_file())
}

/// What the trial is made of.
struct Files<'a> {
    /// slurm.conf.
    conf: &'a Path,
    /// The file with the markers: the same, or one that it includes.
    marked: &'a Path,
    /// That file with the new nodes in it.
    new: Document,
}

/// Writes slurm.conf for the trial, in a directory that has everything else that stands beside the real one: plugins look
/// there for their files, whatever those are called.
fn write(folder: &Path, files: Files<'_>, host: &str) -> io::Result<PathBuf> {
    let Files { conf, marked, new } = files;
    let home = conf.parent().unwrap_or(Path::new("/"));
    let etc = folder.join("etc");
    std::fs::create_dir(&etc)?;
    for entry in std::fs::read_dir(home)?.flatten() {
        let path = entry.path();
        if path != conf && path != marked {
            std::os::unix::fs::symlink(&path, etc.join(entry.file_name()))?;
        }
    }
    let changed = folder.join("changed-nodes.conf");
    let main = if conf == marked {
        new
    } else {
        std::fs::write(&changed, new.as_bytes())?;
        Document::parse(std::fs::read(conf)?)
    };
    let mut text = kept(&main, home, marked, &changed);
    let dir = folder.display();
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    std::fs::create_dir(folder.join("state"))?;
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    let user = user.map_or_else(|| "root".to_owned(), |user| user.name);
    let _ = write!(
        text,
        "\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nSlurmctldPidFile={dir}/pid\n\
         SlurmctldLogFile={dir}/log\nStateSaveLocation={dir}/state\nSlurmUser={user}\nSlurmctldDebug=info\n"
    );
    let path = etc.join("slurm.conf");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// The lines that the trial reads too, with includes where they really are.
fn kept(main: &Document, home: &Path, marked: &Path, changed: &Path) -> String {
    let mut text = String::new();
    for line in main.lines() {
        let written = match line.read() {
            Ok(Statement::Include(file)) => {
                let path = home.join(file.as_ref());
                let path = if path == marked { changed } else { &path };
                format!("Include {}", path.display())
            }
            Ok(Statement::Parameter(pair)) if replaced(&pair.key) => continue,
            _ => line.text().into_owned(),
        };
        text.push_str(written.trim_end_matches(['\n', '\r']));
        text.push('\n');
    }
    text
}

fn replaced(key: &str) -> bool {
    REPLACED.iter().any(|name| name.eq_ignore_ascii_case(key))
}

/// What the log complains of; that a trial has no state to recover and says some things twice is our doing.
fn complaints(log: &str) -> Vec<String> {
    let harmless =
        ["state file", "state save file", "specified more than once", "very large processing time"];
    log.lines()
        .filter(|line| ["error:", "fatal:"].iter().any(|word| line.contains(word)))
        .filter(|line| !harmless.iter().any(|phrase| line.contains(phrase)))
        .map(|line| line.split_once("] ").map_or(line, |(_, words)| words).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_beside_slurm_conf_is_there_in_the_trial() {
        let (real, trial) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let conf = real.path().join("slurm.conf");
        // The names of the trial's own files take nothing from it.
        for name in ["slurm.conf", "job_submit.lua", "cgroup.conf", "log", "state"] {
            std::fs::write(real.path().join(name), "x=y\n").unwrap();
        }
        std::fs::create_dir(real.path().join("plugstack.conf.d")).unwrap();
        let new = Document::parse("ClusterName=c\nSlurmctldHost=other\n");
        let files = Files { conf: &conf, marked: &conf, new };
        let written = write(trial.path(), files, "here").unwrap();
        let beside = written.parent().unwrap();
        for name in ["job_submit.lua", "cgroup.conf", "log", "state", "plugstack.conf.d"] {
            assert!(beside.join(name).exists(), "{name}");
        }
        let text = std::fs::read_to_string(&written).unwrap();
        assert!(text.contains("ClusterName=c\n") && text.contains("SlurmctldHost=here("), "{text}");
        assert!(!text.contains("other"), "{text}");
        assert_eq!(std::fs::read_to_string(&conf).unwrap(), "x=y\n");
    }
}
