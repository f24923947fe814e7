//! Checks of the programs that slurmctld calls: are they there, and is each in its place?

use super::{Check, Status};
use slurmconf::Config;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The program of ours that each parameter calls, and whether it is for nodes that failed.
const MEANT: [(&str, &str, bool); 4] = [
    ("ResumeProgram", "startnode", false),
    ("SuspendProgram", "stopnode", false),
    ("ResumeFailProgram", "startnode", true),
    ("RebootProgram", "rebuild", false),
];

/// What a name stands for: the program, and the arguments that come first.
pub type Alias = fn(&str) -> Option<(&'static str, &'static [&'static str])>;

/// What is wrong with the programs that slurm.conf names, a sentence for each.
#[must_use]
pub fn program_problems(config: &Config, alias: Alias) -> Vec<String> {
    let checks = MEANT.iter().filter_map(|(key, _, _)| program(config, key, alias));
    checks.filter(|check| check.status == Status::Fail).map(|check| check.text).collect()
}

/// Checks a program that slurm.conf names; slurmctld switches power saving off without a word if others may write to it.
pub(super) fn program(config: &Config, key: &str, alias: Alias) -> Option<Check> {
    let power = &config.power;
    let setting = match key {
        "ResumeProgram" => &power.resume_program,
        "SuspendProgram" => &power.suspend_program,
        "ResumeFailProgram" => &power.resume_fail_program,
        _ => &power.reboot_program,
    };
    let command = config.program(setting.as_ref()?);
    let path = command.split_whitespace().next().unwrap_or(command);
    let mode = std::fs::metadata(path).map(|found| found.permissions().mode());
    Some(match mode {
        Err(error) => Check::fail(format!(
            "{key}={path}: {error}; install it there, or name where it is: finish --print-power"
        )),
        Ok(mode) if mode & 0o022 != 0 => Check::fail(format!(
            "{key}={path} is writable by others, and slurmctld will not run it: chmod go-w {path}"
        )),
        Ok(mode) if mode & 0o111 == 0 => {
            Check::fail(format!("{key}={path} cannot be executed: chmod +x {path}"))
        }
        Ok(_) => match misplaced(key, command, alias) {
            Some(wanted) => Check::fail(format!(
                "{key}={command}: {wanted} is meant to be there; see finish --print-power"
            )),
            None => Check::ok(format!("{key}={path}")),
        },
    })
}

/// The program of ours that a command calls, with its arguments.
pub(super) fn call(command: &str, alias: Alias) -> Option<(&str, Vec<&str>)> {
    let mut words = command.split_whitespace();
    let name = Path::new(words.next()?).file_name()?.to_str()?;
    let (program, given) = alias(name).unwrap_or((name, &[]));
    let is_ours = MEANT.iter().any(|(_, meant, _)| *meant == program);
    is_ours.then(|| (program, given.iter().copied().chain(words).collect()))
}

/// The program that is meant where another of ours stands.
fn misplaced(key: &str, command: &str, alias: Alias) -> Option<&'static str> {
    let (program, arguments) = call(command, alias)?;
    let &(_, meant, failed) = MEANT.iter().find(|(it, _, _)| *it == key)?;
    let is_meant = program == meant && arguments.contains(&"--failed") == failed;
    (!is_meant).then_some(if failed { "startnode-failed" } else { meant })
}

/// The configuration that arguments name.
pub(super) fn config_argument<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let behind = arguments.iter().position(|word| *word == "--config");
    let behind = behind.and_then(|place| arguments.get(place + 1).copied());
    behind.or_else(|| arguments.iter().find_map(|word| word.strip_prefix("--config=")))
}

/// True for one file, also if one of the paths is a link.
pub(super) fn is_same(path: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    path == other || real(path).is_some_and(|path| real(other).is_some_and(|other| path == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(name: &str) -> Option<(&'static str, &'static [&'static str])> {
        match name {
            "startnode-failed" => Some(("startnode", &["--failed"])),
            "slurm-openstack-resume" => Some(("startnode", &[])),
            _ => None,
        }
    }

    #[test]
    fn programs_of_ours_in_each_other_s_places_are_misplaced() {
        for (key, command, well) in [
            ("ResumeProgram", "/usr/local/bin/startnode", true),
            ("ResumeProgram", "/usr/local/bin/startnode --config /etc/x.yaml", true),
            ("ResumeProgram", "/opt/slurm-openstack-resume", true),
            ("ResumeProgram", "/usr/local/bin/stopnode", false),
            ("ResumeProgram", "/usr/local/bin/startnode-failed", false),
            ("SuspendProgram", "/usr/local/bin/startnode", false),
            ("SuspendProgram", "/usr/local/bin/stopnode", true),
            ("ResumeFailProgram", "/usr/local/bin/startnode", false),
            ("ResumeFailProgram", "/usr/local/bin/startnode --failed", true),
            ("ResumeFailProgram", "/usr/local/bin/startnode-failed", true),
            ("RebootProgram", "/usr/local/bin/rebuild", true),
            ("RebootProgram", "/usr/local/bin/stopnode", false),
            ("ResumeProgram", "/root/wrapper.sh", true),
            ("ResumeProgram", "", true),
        ] {
            assert_eq!(misplaced(key, command, alias).is_none(), well, "{key}={command}");
        }
    }

    #[test]
    fn a_configuration_is_named_in_two_ways() {
        assert_eq!(config_argument(&["--config", "/a"]), Some("/a"));
        assert_eq!(config_argument(&["--failed", "--config=/a"]), Some("/a"));
        assert_eq!(config_argument(&["--config"]), None);
    }
}
