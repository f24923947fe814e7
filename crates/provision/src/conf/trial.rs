//! The files of the trial: slurm.conf, isolated from the real cluster.

use slurmconf::{DefinitionKind, Line, SlurmVersion, Statement, flatten_includes};
use std::fmt::Write as _;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Parameters that replace those of the files, to isolate the trial from accounting, which would end the jobs of a cluster
/// that starts without any, from other controllers and from nodes.
const REPLACED: [&str; 36] = [
    "SlurmctldHost",
    "ControlMachine",
    "ControlAddr",
    "BackupController",
    "BackupAddr",
    "SlurmctldAddr",
    "SlurmctldPort",
    "SlurmdPort",
    "SlurmctldPidFile",
    "SlurmctldLogFile",
    "StateSaveLocation",
    "SlurmUser",
    "SlurmctldDebug",
    "SlurmctldSyslogDebug",
    "SlurmSchedLogFile",
    "AccountingStorageType",
    "AccountingStorageHost",
    "AccountingStorageBackupHost",
    "AccountingStorageExternalHost",
    "AccountingStorageEnforce",
    "JobCompType",
    "PrologSlurmctld",
    "EpilogSlurmctld",
    "ResvProlog",
    "ResvEpilog",
    "HealthCheckProgram",
    "HealthCheckInterval",
    "SlurmctldPrimaryOnProg",
    "SlurmctldPrimaryOffProg",
    "BurstBufferType",
    "SwitchType",
    "PowerPlugin",
    "ExtSensorsType",
    "MailProg",
    // Without jwt_key=, the key is in StateSaveLocation, which is empty in the trial.
    "AuthAltTypes",
    "AuthAltParameters",
];

/// Programs that start and stop machines, replaced by ones without effect, because power saving is off without them.
const PROGRAMS: [&str; 4] =
    ["ResumeProgram", "SuspendProgram", "ResumeFailProgram", "RebootProgram"];

/// The input of a trial.
pub(super) struct Files<'a> {
    /// slurm.conf.
    pub(super) conf: &'a Path,
    /// The file with the markers: slurm.conf, or one that it includes.
    pub(super) marked: &'a Path,
    /// The file with the markers, with the new nodes.
    pub(super) new: &'a [u8],
    /// The version of slurmctld.
    pub(super) version: SlurmVersion,
}

/// The host and user of the trial.
#[derive(Clone, Copy)]
pub(super) struct Host<'a> {
    /// The name of this host.
    pub(super) name: &'a str,
    pub(super) user: &'a str,
}

/// Writes slurm.conf for the trial into a directory with all other files of the real one, where plugins look for theirs.
pub(super) fn write(folder: &Path, files: &Files<'_>, host: Host<'_>) -> io::Result<PathBuf> {
    let home = files.conf.parent().unwrap_or(Path::new("/"));
    let etc = folder.join("etc");
    std::fs::create_dir(&etc)?;
    for entry in std::fs::read_dir(home)?.flatten() {
        let path = entry.path();
        if path != files.conf {
            std::os::unix::fs::symlink(&path, etc.join(entry.file_name()))?;
        }
    }
    let mut text = kept(files)?;
    let dir = folder.display();
    std::fs::create_dir(folder.join("state"))?;
    let [port, nodes] = ports()?;
    let Host { name: host, user } = host;
    let _ = write!(
        text,
        "SlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nSlurmdPort={nodes}\nSlurmctldPidFile={dir}/pid\n\
         SlurmctldLogFile={dir}/log\nStateSaveLocation={dir}/state\nSlurmUser={user}\nSlurmctldDebug=info\n\
         MailProg=/bin/true\n"
    );
    let path = etc.join("slurm.conf");
    // The name may be a link if slurm.conf has another name.
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Finds two free ports.
fn ports() -> io::Result<[u16; 2]> {
    let [one, other] = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok([one.local_addr()?.port(), other.local_addr()?.port()])
}

/// slurm.conf and the files that it includes as one text, as far as the trial uses it.
fn kept(files: &Files<'_>) -> io::Result<String> {
    let read = |path: &Path| {
        if path == files.marked { Ok(files.new.to_vec()) } else { std::fs::read(path) }
    };
    flatten_includes(files.conf, files.version, read, rewritten).map_err(io::Error::other)
}

fn rewritten(line: &Line<'_>, statement: &Statement<'_>) -> Option<String> {
    let is_in = |keys: &[&str], key: &str| keys.iter().any(|name| name.eq_ignore_ascii_case(key));
    match statement {
        Statement::Parameter(pair) if is_in(&REPLACED, &pair.key) => None,
        Statement::Parameter(pair) if is_in(&PROGRAMS, &pair.key) => {
            Some(format!("{}=/bin/true", pair.key))
        }
        Statement::Parameter(pair) if is_in(&["CommunicationParameters"], &pair.key) => {
            // The trial has an IPv4 address.
            let kept =
                pair.value.split(',').filter(|it| !it.trim().eq_ignore_ascii_case("DisableIPv4"));
            let kept = kept.collect::<Vec<_>>().join(",");
            (!kept.is_empty()).then(|| format!("{}={kept}", pair.key))
        }
        Statement::Definition(node) if node.kind == DefinitionKind::Node => {
            let placed = node.attributes.iter().any(|pair| {
                let is = |word: &str| pair.key.eq_ignore_ascii_case(word);
                is("NodeAddr") || is("State") && pair.value.eq_ignore_ascii_case("CLOUD")
            });
            let default = node.name.value.eq_ignore_ascii_case("DEFAULT");
            Some(if placed || default { line.text().into_owned() } else { here(&line.text()) })
        }
        _ => Some(line.text().into_owned()),
    }
}

/// Adds an address to a node line, because slurmctld spends ten seconds on each name that does not resolve.
fn here(line: &str) -> String {
    let line = line.trim();
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if !name.contains('=') || name.contains(['"', '\\', '#']) {
        return line.to_owned();
    }
    format!("{name} NodeAddr=127.0.0.1 {rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Host<'_> = Host { name: "here", user: "root" };

    /// Builds the trial's slurm.conf from files with these names and texts. The last one has the markers and is new.
    fn trial(texts: &[(&str, &str)]) -> String {
        let (real, trial) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (name, text) in texts {
            std::fs::write(real.path().join(name), text).unwrap();
        }
        let (name, new) = texts.last().unwrap();
        let (conf, marked) = (real.path().join("slurm.conf"), real.path().join(name));
        std::fs::write(&marked, "SlurmctldHost=old\n").unwrap();
        let version = SlurmVersion::new(24, 11);
        let files = Files { conf: &conf, marked: &marked, new: new.as_bytes(), version };
        std::fs::read_to_string(write(trial.path(), &files, HERE).unwrap()).unwrap()
    }

    #[test]
    fn a_script_beside_slurm_conf_is_there_in_the_trial() {
        let (real, trial) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let conf = real.path().join("slurm.conf");
        // The names of the trial's own files do not matter.
        for name in ["slurm.conf", "job_submit.lua", "cgroup.conf", "log", "state"] {
            std::fs::write(real.path().join(name), "x=y\n").unwrap();
        }
        std::fs::create_dir(real.path().join("plugstack.conf.d")).unwrap();
        let new = b"ClusterName=c\nSlurmctldHost=other\n";
        let version = SlurmVersion::new(24, 11);
        let files = Files { conf: &conf, marked: &conf, new, version };
        let written = write(trial.path(), &files, HERE).unwrap();
        let beside = written.parent().unwrap();
        for name in ["job_submit.lua", "cgroup.conf", "log", "state", "plugstack.conf.d"] {
            assert!(beside.join(name).exists(), "{name}");
        }
        let text = std::fs::read_to_string(&written).unwrap();
        assert!(text.contains("ClusterName=c\n") && text.contains("SlurmctldHost=here("), "{text}");
        assert!(!text.contains("other"), "{text}");
        assert_eq!(std::fs::read_to_string(&conf).unwrap(), "x=y\n");
    }

    #[test]
    fn a_trial_does_not_register_with_the_accounting_of_an_included_file() {
        let fixture = include_str!("../../../slurmconf/tests/fixtures/citc-shared.conf");
        let text = trial(&[
            ("slurm.conf", "ClusterName=c\nInclude %c.conf\nInclude shared.conf\n"),
            ("c.conf", "accountingstoragehost=db\nInclude deep.conf\nSlurmdPort=6818\n"),
            (
                "deep.conf",
                "SlurmctldPrimaryOnProg=/bin/rm\nJobCompType=jobcomp/script\nMaxJobCount=7",
            ),
            ("shared.conf", fixture),
        ]);
        for word in ["slurmdbd", "=db", "OnProg", "jobcomp", "6818", "Include", "startnode", "=old"]
        {
            assert!(!text.contains(word), "{word}: {text}");
        }
        for line in
            ["MaxJobCount=7\n", "SuspendProgram=/bin/true\n", "NodeName=vm-standard2-1-ad2-0001 "]
        {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    #[test]
    fn a_trial_needs_no_key_for_tokens() {
        let text = trial(&[(
            "slurm.conf",
            "AuthType=auth/munge\nAuthAltTypes=auth/jwt\nauthaltparameters=disable_token_creation\n",
        )]);
        assert!(text.contains("AuthType=auth/munge\n"), "{text}");
        for word in ["jwt", "token"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }

    #[test]
    fn a_trial_is_reached_where_slurm_speaks_ipv6_alone() {
        let lines = |value: &str| {
            let text = trial(&[("slurm.conf", &format!("communicationparameters={value}\n"))]);
            let lines = text.lines().filter(|line| line.starts_with("communication"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let kept = ["communicationparameters=EnableIPv6,NoAddrCache"];
        assert_eq!(lines("EnableIPv6,disableipv4,NoAddrCache"), kept);
        assert_eq!(lines("EnableIPv6,NoAddrCache"), kept);
        assert!(lines("DisableIPv4").is_empty());
    }

    #[test]
    fn a_trial_resolves_no_node_without_a_machine() {
        let text = trial(&[(
            "slurm.conf",
            "NodeName=DEFAULT CPUs=1\nNodeName=a[1-2] CPUs=2\nNodeName=b1\nNodeName=c1 NodeAddr=c\nNodeName=d1 State=cloud\n",
        )]);
        let nodes: Vec<&str> = text.lines().filter(|line| line.starts_with("NodeName")).collect();
        let expected = [
            "NodeName=DEFAULT CPUs=1",
            "NodeName=a[1-2] NodeAddr=127.0.0.1 CPUs=2",
            "NodeName=b1 NodeAddr=127.0.0.1",
            "NodeName=c1 NodeAddr=c",
            "NodeName=d1 State=cloud",
        ];
        assert_eq!(nodes, expected);
    }
}
