//! Checks of the programs that slurmctld calls.

use super::{Check, Status};
use slurmconf::{Config, SlurmVersion};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The executable that has every program as a subcommand.
const EXECUTABLE: &str = "slurm-elastic";

/// The program for each parameter, and whether it is for failed nodes.
const MEANT: [(&str, &str, bool); 4] = [
    ("ResumeProgram", "startnode", false),
    ("SuspendProgram", "stopnode", false),
    ("ResumeFailProgram", "startnode", true),
    ("RebootProgram", "rebuild", false),
];

/// Resolves an alias: the program, and the arguments that come first.
pub type Alias = fn(&str) -> Option<(&'static str, &'static [&'static str])>;

/// Problems of the programs that slurm.conf names, one sentence each.
#[must_use]
pub fn program_problems(config: &Config, version: SlurmVersion, alias: Alias) -> Vec<String> {
    let checks = MEANT.iter().filter_map(|(key, _, _)| program(config, key, version, alias));
    checks.filter(|check| check.status == Status::Fail).map(|check| check.text).collect()
}

/// Checks a program that slurm.conf names. slurmctld silently disables power saving if others can write to it.
pub(super) fn program(
    config: &Config,
    key: &str,
    version: SlurmVersion,
    alias: Alias,
) -> Option<Check> {
    let power = &config.power;
    let setting = match key {
        "ResumeProgram" => &power.resume_program,
        "SuspendProgram" => &power.suspend_program,
        "ResumeFailProgram" => &power.resume_fail_program,
        _ => &power.reboot_program,
    };
    let command = config.program(setting.as_ref()?);
    let first = command.split_whitespace().next().unwrap_or(command);
    let path = if splits_commands(config, key, version) { first } else { command };
    let mode = std::fs::metadata(path).map(|found| found.permissions().mode());
    Some(match mode {
        Err(_) if path != first => Check::fail(format!(
            "{key}={command}: Slurm {version} takes no arguments there, and looks for a file of that whole name; see finish \
             --print-power"
        )),
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

/// True if the parameter may have arguments after the path. Before 26.05, slurmctld takes the whole value for the path;
/// only slurmd, which reboots its own node, uses a shell.
fn splits_commands(config: &Config, key: &str, version: SlurmVersion) -> bool {
    let from_controller = |word: &String| word.eq_ignore_ascii_case("reboot_from_controller");
    version.has_power_actions()
        || key == "RebootProgram" && !config.power.slurmctld_parameters.iter().any(from_controller)
}

/// The program of this project that a command calls, with its arguments.
pub(super) fn call(command: &str, alias: Alias) -> Option<(&str, Vec<&str>)> {
    let mut words = command.split_whitespace();
    let first = Path::new(words.next()?).file_name()?.to_str()?;
    let mut rest: Vec<&str> = words.collect();
    let is_executable = first == EXECUTABLE;
    // Common options may come before the subcommand.
    let subcommand = rest.iter().position(|word| named(word, alias, true).is_some());
    let name = match subcommand.filter(|_| is_executable) {
        Some(place) => rest.remove(place),
        None => first,
    };
    match named(name, alias, is_executable) {
        Some((program, given)) => Some((program, given.iter().copied().chain(rest).collect())),
        None => is_executable.then_some((first, rest)),
    }
}

/// The program of this project that a name stands for, with the arguments that come first.
fn named(
    name: &str,
    alias: Alias,
    is_subcommand: bool,
) -> Option<(&'static str, &'static [&'static str])> {
    let is_short = |meant: &str| is_subcommand && meant.strip_suffix("node") == Some(name);
    let (name, given) = alias(name).unwrap_or((name, &[]));
    let meant = MEANT.iter().find(|(_, meant, _)| *meant == name || is_short(meant));
    meant.map(|(_, meant, _)| (*meant, given))
}

/// The expected program, if the parameter names another one of this project.
fn misplaced(key: &str, command: &str, alias: Alias) -> Option<&'static str> {
    let (program, arguments) = call(command, alias)?;
    let &(_, meant, failed) = MEANT.iter().find(|(it, _, _)| *it == key)?;
    let is_meant = program == meant && arguments.contains(&"--failed") == failed;
    (!is_meant).then_some(if failed { "startnode-failed" } else { meant })
}

/// The configuration file among the arguments.
pub(super) fn config_argument<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let behind = arguments.iter().position(|word| *word == "--config");
    let behind = behind.and_then(|place| arguments.get(place + 1).copied());
    behind.or_else(|| arguments.iter().find_map(|word| word.strip_prefix("--config=")))
}

/// True if both paths are the same file, also through a link.
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
            ("ResumeProgram", "/usr/local/bin/slurm-elastic start", true),
            ("ResumeProgram", "/usr/local/bin/slurm-elastic --config /x.yaml startnode", true),
            ("ResumeProgram", "/usr/local/bin/slurm-elastic stop", false),
            ("ResumeProgram", "/usr/local/bin/slurm-elastic start --failed", false),
            ("ResumeProgram", "/usr/local/bin/slurm-elastic", false),
            ("ResumeProgram", "/usr/local/bin/slurm-elastic list", false),
            ("ResumeFailProgram", "/usr/local/bin/slurm-elastic start --failed", true),
            ("ResumeFailProgram", "/usr/local/bin/slurm-elastic startnode-failed", true),
            ("RebootProgram", "/usr/local/bin/slurm-elastic rebuild", true),
            ("SuspendProgram", "/opt/bin/start", true),
            ("ResumeProgram", "/root/wrapper.sh", true),
            ("ResumeProgram", "", true),
        ] {
            assert_eq!(misplaced(key, command, alias).is_none(), well, "{key}={command}");
        }
    }

    #[test]
    fn a_program_has_arguments_only_where_slurm_splits_its_command() {
        let (old, new) = (SlurmVersion::new(24, 11), SlurmVersion::new(26, 5));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slurm-elastic");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = path.display();
        let action = "PowerAction=up Location=slurmctld Program";
        for (key, lines, version, expected) in [
            ("ResumeProgram", format!("ResumeProgram=\"{path} start\""), old, Status::Fail),
            ("ResumeProgram", format!("ResumeProgram=\"{path} start\""), new, Status::Ok),
            ("ResumeProgram", format!("ResumeProgram=\"{path} stop\""), new, Status::Fail),
            (
                "ResumeProgram",
                format!("{action}=\"{path} start\"\nResumeProgram=up"),
                new,
                Status::Ok,
            ),
            ("RebootProgram", format!("RebootProgram=\"{path} rebuild\""), old, Status::Ok),
            (
                "RebootProgram",
                format!(
                    "SlurmctldParameters=reboot_from_controller\nRebootProgram=\"{path} rebuild\""
                ),
                old,
                Status::Fail,
            ),
        ] {
            let config = Config::parse(&lines).unwrap();
            let check = program(&config, key, version, alias).unwrap();
            assert_eq!(check.status, expected, "{version} {lines}: {}", check.text);
            assert_eq!(
                check.text.contains("takes no arguments"),
                version == old && expected == Status::Fail,
                "{}",
                check.text
            );
        }
    }

    #[test]
    fn a_configuration_is_named_in_two_ways() {
        assert_eq!(config_argument(&["--config", "/a"]), Some("/a"));
        assert_eq!(config_argument(&["--failed", "--config=/a"]), Some("/a"));
        assert_eq!(config_argument(&["--config"]), None);
    }
}
