//! Checks of Slurm: its version, its parameters and the programs that it calls.

use super::Check;
use super::programs::{Alias, call, config_argument, is_same, program};
use slurmconf::{Config, SlurmVersion, SuspendTime};
use slurmctl::ControllerConfig;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Nodes of most clouds take longer than this to start.
const SHORT: Duration = Duration::from_mins(2);

/// The oldest supported release of Slurm.
const OLDEST: SlurmVersion = SlurmVersion::new(22, 5);

/// Observed facts about Slurm.
#[derive(Debug)]
pub struct SlurmFacts<'a> {
    /// Path of slurm.conf.
    pub conf: &'a Path,
    /// Its content.
    pub config: &'a Config,
    /// The version.
    pub version: SlurmVersion,
    /// Whether slurmctld answers, if it could be queried.
    pub answers: Option<bool>,
    /// The configuration that slurmctld runs with, if it answers.
    pub running: Option<ControllerConfig>,
    /// A warning about elastic nodes that slurmctld hides.
    pub hidden_nodes: Option<String>,
    /// Resolves aliases of programs.
    pub alias: Alias,
    /// Default path of the programs' configuration.
    pub default_config: &'static str,
}

impl SlurmFacts<'_> {
    pub(super) fn controller(&self) -> Option<Check> {
        let version = self.version;
        Some(match self.answers? {
            true if version < OLDEST => Check::fail(format!(
                "Slurm {version} is too old to be given nodes back: 22.05 or newer is needed"
            )),
            true => Check::ok(format!("slurmctld is up: {version}")),
            false if self.config.nodes.is_empty() => Check::ok(
                "slurmctld cannot run yet, because slurm.conf has no nodes: finish writes them and starts it",
            ),
            false => Check::fail(
                "slurmctld does not answer, so that nodes with jobs cannot be told from others: systemctl status slurmctld",
            ),
        })
    }

    /// Checks Slurm's parameters for power saving.
    pub(super) fn power(&self) -> Vec<Check> {
        let (config, power) = (self.config, &self.config.power);
        let needed = |key| {
            Check::fail(format!(
                "slurm.conf has no {key}; finish --print-power prints what it needs"
            ))
        };
        let mut checks = vec![
            self.program("ResumeProgram").unwrap_or_else(|| needed("ResumeProgram")),
            self.program("SuspendProgram").unwrap_or_else(|| needed("SuspendProgram")),
            self.program("ResumeFailProgram").unwrap_or_else(|| {
                Check::fail(
                    "slurm.conf has no ResumeFailProgram: the machine of a node that never comes up would run for ever; \
                     ResumeFailProgram=/usr/local/bin/startnode-failed",
                )
            }),
            self.reboot(),
        ];
        let shortest = *config.resume_timeouts(&config.cloud_nodes()).start();
        if shortest < SHORT {
            checks.push(Check::warn(format!(
                "ResumeTimeout is {} s; machines of most clouds take longer to boot: ResumeTimeout=600",
                shortest.as_secs()
            )));
        }
        checks.extend(resume_rate(config));
        if !power.slurmctld_parameters.iter().any(|word| word == "idle_on_node_suspend") {
            checks.push(Check::warn(
                "SlurmctldParameters lacks idle_on_node_suspend, and nodes that failed stay down: add the word to that line",
            ));
        }
        checks.extend(suspend_time(config));
        if !config.has_power_saving() {
            let remedy = "set SuspendTime, SuspendProgram and ResumeProgram";
            checks.push(Check::fail(format!("power saving is off: {remedy}")));
        }
        checks
    }

    pub(super) fn reboot(&self) -> Check {
        self.program("RebootProgram").unwrap_or_else(|| {
            Check::warn(
                "slurm.conf has no RebootProgram, so that nodes get a new image only when they start: \
                 RebootProgram=/usr/local/bin/rebuild",
            )
        })
    }

    fn program(&self, key: &'static str) -> Option<Check> {
        program(self.config, key, self.version, self.alias)
    }

    /// Checks for changes that slurmctld has not read yet.
    pub(super) fn stale(&self) -> Option<Check> {
        let differing = differing(self.config, self.running.as_ref()?, self.version);
        // Before 23.11, a reconfigure kills a slurmctld whose nodes have changed.
        let remedy = if self.version.reconfigures_nodes() {
            "scontrol reconfigure"
        } else {
            "systemctl restart slurmctld, or scontrol reconfigure if the nodes are as they were"
        };
        (!differing.is_empty()).then(|| {
            let (conf, differing) = (self.conf.display(), differing.join(", "));
            Check::warn(format!(
                "slurmctld does not run with what {conf} says of {differing}: {remedy}"
            ))
        })
    }

    /// Warns if slurmctld's calls read another configuration than the one that is checked.
    pub(super) fn reads_other_configuration(&self, checked: &Path) -> Option<Check> {
        let checked = std::path::absolute(checked).unwrap_or_else(|_| checked.to_owned());
        let power = &self.config.power;
        let all = [&power.resume_program, &power.suspend_program, &power.resume_fail_program];
        let read = all.into_iter().flatten().filter_map(|setting| {
            let (_, arguments) = call(self.config.program(setting), self.alias)?;
            Some(config_argument(&arguments).unwrap_or(self.default_config).to_owned())
        });
        let other = read.into_iter().find(|path| !is_same(Path::new(path), &checked))?;
        let (checked, usual) = (checked.display(), self.default_config);
        Some(Check::warn(format!(
            "slurmctld's calls read {other}, and not {checked} that is checked here: make it {usual}, or give --config in a \
             PowerAction (Slurm 26.05; finish --print-power)"
        )))
    }
}

/// Checks for a `ResumeRate` with which the first nodes time out before the last are requested.
fn resume_rate(config: &Config) -> Option<Check> {
    let nodes = config.cloud_nodes();
    let (rate, timeout) = (config.power.resume_rate, *config.resume_timeouts(&nodes).end());
    let in_time = u64::from(rate).saturating_mul(timeout.as_secs()) / 60;
    let all = u64::try_from(nodes.len()).unwrap_or(u64::MAX);
    (rate > 0 && in_time < all).then(|| {
        let timeout = timeout.as_secs();
        Check::warn(format!(
            "ResumeRate={rate} starts {in_time} nodes within ResumeTimeout ({timeout} s), and {all} are elastic: the programs \
             pace themselves, so that Slurm need not: ResumeRate=0"
        ))
    })
}

/// Checks for a time with a unit or fraction, of which slurmctld reads only the digits.
fn suspend_time(config: &Config) -> Option<Check> {
    let said = config.get("SuspendTime")?;
    let SuspendTime::Seconds(seconds) = config.power.suspend_time else { return None };
    let is_plain = said.bytes().all(|byte| byte.is_ascii_digit());
    (!is_plain).then(|| {
        Check::warn(format!(
            "SuspendTime={said} is {seconds} s to slurmctld, which reads no further than the digits: SuspendTime={seconds}, or \
             what was meant, in seconds"
        ))
    })
}

/// The relevant parameters that differ between slurmctld and the file.
fn differing(
    file: &Config,
    running: &ControllerConfig,
    version: SlurmVersion,
) -> Vec<&'static str> {
    let power = &file.power;
    let program = |name, said: &Option<String>| (name, running.get(name) == said.as_deref());
    let idle = match power.suspend_time {
        SuspendTime::Never => None,
        SuspendTime::Seconds(seconds) => Some(Duration::from_secs(u64::from(seconds))),
    };
    let rate = running.get("ResumeRate").and_then(|rate| rate.split_whitespace().next());
    let words = |name| (words(file.get(name)), words(running.get(name)));
    let parameters = words("SlurmctldParameters");
    let (said, has) = words("PrivateData");
    // Only this value of PrivateData matters.
    let hides = said.contains("cloud") && !has.contains("cloud");
    let all = [
        program("ResumeProgram", &power.resume_program),
        program("SuspendProgram", &power.suspend_program),
        program("ResumeFailProgram", &power.resume_fail_program),
        program("RebootProgram", &power.reboot_program),
        ("SuspendTime", running.suspend_time() == idle),
        ("ResumeTimeout", running.resume_timeout() == Some(power.resume_timeout)),
        ("ResumeRate", rate.is_none_or(|rate| rate == power.resume_rate.to_string())),
        ("SlurmctldParameters", parameters.0 == parameters.1),
        ("PrivateData", !(hides && version.needs_cloud_parameters())),
    ];
    all.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
}

/// The values of a list, as a set.
fn words(list: Option<&str>) -> BTreeSet<String> {
    let words = list.unwrap_or_default().split(',').map(|word| word.trim().to_ascii_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Status;

    fn config(text: &str) -> Config {
        Config::parse(text).unwrap()
    }

    #[test]
    fn a_suspend_time_with_a_unit_is_reported() {
        let cases = [("10m", true), ("600.5", true), ("0600", false), ("infinite", false)];
        for (time, warns) in cases {
            let check = suspend_time(&config(&format!("SuspendTime={time}\n")));
            assert_eq!(check.is_some(), warns, "{time}");
        }
    }

    #[test]
    fn power_saving_of_one_partition_is_on() {
        let programs = "SuspendProgram=/bin/true\nResumeProgram=/bin/true\n";
        for (time, off) in [("600", false), ("INFINITE", true)] {
            let text = format!("{programs}PartitionName=burst Nodes=ALL SuspendTime={time}\n");
            let config = config(&text);
            let checks = facts(&config).power();
            assert_eq!(checks.iter().any(|check| check.text.contains("is off")), off, "{time}");
        }
    }

    fn facts(config: &Config) -> SlurmFacts<'_> {
        SlurmFacts {
            conf: Path::new("/etc/slurm/slurm.conf"),
            config,
            version: SlurmVersion::new(24, 11),
            answers: None,
            running: None,
            hidden_nodes: None,
            alias: |_| None,
            default_config: "/etc/citc/startnode.yaml",
        }
    }

    #[test]
    fn slurmctld_may_be_down_until_there_are_nodes() {
        for (text, is_ok) in [("", true), ("NodeName=n[1-4] State=CLOUD\n", false)] {
            let config = config(text);
            let down = SlurmFacts { answers: Some(false), ..facts(&config) };
            let check = down.controller().unwrap();
            assert_eq!(check.status == Status::Ok, is_ok, "{text}");
        }
    }

    #[test]
    fn a_rate_that_keeps_large_jobs_waiting_is_reported() {
        for (settings, nodes, warns) in [
            ("ResumeRate=20\nResumeTimeout=600\n", 201, true),
            ("ResumeRate=20\nResumeTimeout=600\n", 200, false),
            ("ResumeRate=0\nResumeTimeout=600\n", 10_000, false),
            // Slurm's defaults: 300 per minute, and one minute.
            ("", 300, false),
            ("", 301, true),
        ] {
            let text = format!("{settings}NodeName=login1\nNodeName=n[1-{nodes}] State=CLOUD\n");
            let found = resume_rate(&config(&text));
            assert_eq!(found.is_some(), warns, "{settings}{nodes}");
            assert!(found.is_none_or(|check| check.text.contains("ResumeRate=0")));
        }
    }

    /// The configuration of CitC 6.
    const RUNNING: &str = "\
ResumeProgram           = /usr/local/bin/startnode
SuspendProgram          = /usr/local/bin/stopnode
ResumeFailProgram       = (null)
RebootProgram           = (null)
SuspendTime             = 900 sec
ResumeTimeout           = 600 sec
ResumeRate              = 20 nodes/min
SlurmctldParameters     = idle_on_node_suspend,cloud_dns
PrivateData             = none
";

    #[test]
    fn lines_that_slurmctld_has_not_read_are_reported() {
        let same = "ResumeProgram=/usr/local/bin/startnode\nSuspendProgram=/usr/local/bin/stopnode\nSuspendTime=900\n\
            ResumeTimeout=600\nResumeRate=20\nSlurmctldParameters=cloud_dns,Idle_on_node_suspend\n";
        let (old, new) = (SlurmVersion::new(22, 5), SlurmVersion::new(24, 11));
        for (line, version, expected) in [
            ("", old, &[][..]),
            ("ResumeFailProgram=/usr/local/bin/startnode-failed", old, &["ResumeFailProgram"]),
            (
                "RebootProgram=/usr/local/bin/rebuild\nResumeRate=0",
                old,
                &["RebootProgram", "ResumeRate"],
            ),
            ("SuspendTime=NONE\nResumeTimeout=601", old, &["SuspendTime", "ResumeTimeout"]),
            ("SlurmctldParameters=cloud_dns", old, &["SlurmctldParameters"]),
            ("PrivateData=cloud", old, &["PrivateData"]),
            // It shows elastic nodes by default, and may not list the value.
            ("PrivateData=cloud", new, &[]),
            ("PrivateData=all", old, &[]),
        ] {
            let file = config(&format!("{same}{line}\n"));
            let running = ControllerConfig::parse(RUNNING);
            assert_eq!(differing(&file, &running, version), expected, "{line}");
        }
    }
}
