//! Whether what slurmctld calls is what is meant.

use super::Point::{self, Odd};
use crate::alias;
use crate::args::{CONFIG, Common};
use slurmconf::Config;
use std::path::Path;

/// What a call of ours does, by its program and whether it is for nodes that failed.
const MEANT: [(&str, &str, bool); 4] = [
    ("ResumeProgram", "startnode", false),
    ("SuspendProgram", "stopnode", false),
    ("ResumeFailProgram", "startnode", true),
    ("RebootProgram", "rebuild", false),
];

/// The program of ours that a command calls, with its arguments.
fn ours(command: &str) -> Option<(&str, Vec<&str>)> {
    let mut words = command.split_whitespace();
    let name = Path::new(words.next()?).file_name()?.to_str()?;
    let alias = alias::ALL.iter().find(|alias| alias.name == name);
    let (program, given) = alias.map_or((name, &[][..]), |alias| (alias.program, alias.arguments));
    let is_ours = MEANT.iter().any(|(_, meant, _)| *meant == program);
    is_ours.then(|| (program, given.iter().copied().chain(words).collect()))
}

/// What is wrong with a program of ours that stands where another is meant.
pub(super) fn misplaced(key: &str, command: &str) -> Option<String> {
    let (program, arguments) = ours(command)?;
    let &(_, meant, failed) = MEANT.iter().find(|(it, _, _)| *it == key)?;
    if program == meant && arguments.contains(&"--failed") == failed {
        return None;
    }
    let wanted = if failed { "startnode-failed" } else { meant };
    Some(format!("{key}={command}: {wanted} is meant to be there; see finish --print-power"))
}

/// Says that slurmctld's calls read another configuration than the one that is checked, if they do.
pub(super) fn configuration(config: &Config, common: &Common) -> Option<Point> {
    let given = common.config.as_deref().unwrap_or(Path::new(CONFIG));
    let given = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
    let power = &config.power;
    let all = [&power.resume_program, &power.suspend_program, &power.resume_fail_program];
    let read = all.into_iter().flatten().filter_map(|setting| {
        let (_, arguments) = ours(config.program(setting))?;
        Some(named(&arguments).unwrap_or(CONFIG).to_owned())
    });
    let other = read.into_iter().find(|path| !is_same(Path::new(path), &given))?;
    Some(Odd(format!(
        "slurmctld's calls read {other}, and not {} that is checked here: make it {CONFIG}, or give --config in a PowerAction \
         (Slurm 26.05; finish --print-power)",
        given.display()
    )))
}

/// The configuration that arguments name.
fn named<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let behind = arguments.iter().position(|word| *word == "--config");
    let behind = behind.and_then(|place| arguments.get(place + 1).copied());
    behind.or_else(|| arguments.iter().find_map(|word| word.strip_prefix("--config=")))
}

/// True for one file, also if one of the paths is a link.
fn is_same(path: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    path == other || real(path).is_some_and(|path| real(other).is_some_and(|other| path == other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_ours_in_each_other_s_places_were_all_well() {
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
            assert_eq!(misplaced(key, command).is_none(), well, "{key}={command}");
        }
    }

    #[test]
    fn a_configuration_was_named_in_two_ways() {
        assert_eq!(named(&["--config", "/a"]), Some("/a"));
        assert_eq!(named(&["--failed", "--config=/a"]), Some("/a"));
        assert_eq!(named(&["--config"]), None);
    }
}
