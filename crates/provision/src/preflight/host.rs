//! Checks of this host: users, files, names and variables.

use super::Check;
use super::access::Unwritable;
use slurmconf::NodeDef;
use std::path::Path;

/// Observed facts about this host.
#[derive(Debug)]
pub struct HostFacts<'a> {
    /// The configuration file.
    pub config: &'a Path,
    /// The owner of the configuration file, if it exists.
    pub config_owner: Option<ConfigOwner>,
    /// The user that slurmctld runs its programs as.
    pub slurm_user: &'a str,
    /// The files that this user can write, if the user exists.
    pub access: Option<Access>,
    /// The state directory.
    pub state: &'a Path,
    /// The log, if it is a file.
    pub log: Option<&'a Path>,
    /// A persistent node whose name cannot be resolved.
    pub unresolved: Option<String>,
    /// Variables that are set here and that slurmctld does not pass on, with where to set them instead. Their values may be
    /// secret.
    pub variables: Vec<(Vec<&'static str>, String)>,
    /// True if the check runs as root.
    pub is_root: bool,
}

/// The access of slurmctld's user.
#[derive(Debug)]
pub struct Access {
    /// The state directory.
    pub state: Result<(), Unwritable>,
    /// The log.
    pub log: Result<(), Unwritable>,
}

/// The owner of the configuration.
#[derive(Clone, Debug)]
pub struct ConfigOwner {
    /// Its permission bits.
    pub mode: u32,
    /// The owner, unless it is root.
    pub user: Option<String>,
    /// The group for the remedy.
    pub group: String,
}

/// Finds a persistent node whose name cannot be resolved. It checks only one, because each may take seconds.
#[must_use]
pub fn unresolved(nodes: &[NodeDef], resolves: impl Fn(&str) -> bool) -> Option<String> {
    let first = nodes.iter().find(|node| !node.is_cloud())?.names.iter().next()?;
    (!resolves(&first)).then_some(first)
}

impl HostFacts<'_> {
    /// Checks that persistent nodes can be resolved, because slurmctld leaves out others.
    pub(super) fn unresolved(&self) -> Option<Check> {
        let name = self.unresolved.as_ref()?;
        Some(Check::warn(format!(
            "{name} is persistent, and slurmctld cannot resolve its name: set hosts_file: /etc/hosts in startnode.yaml, unless \
             DNS will have the name when its machine is up"
        )))
    }

    pub(super) fn variables(&self) -> Vec<Check> {
        let set = self.variables.iter().filter(|(names, _)| !names.is_empty());
        let warn = |(names, place): &(Vec<&str>, String)| {
            let names = names.join(", ");
            Check::warn(format!(
                "what this shell has in {names} counts here, but slurmctld does not pass it to startnode and stopnode: write \
                 it into {place}"
            ))
        };
        set.map(warn).collect()
    }

    /// Checks that only root can write the configuration, and that slurmctld's user can write state directory and log.
    pub(super) fn files(&self) -> Vec<Check> {
        let mut checks =
            self.config_owner.as_ref().map(|it| self.others_write(it)).unwrap_or_default();
        let name = self.slurm_user;
        let Some(access) = &self.access else {
            checks
                .push(Check::fail(format!("SlurmUser={name}: there is no such user on this host")));
            return checks;
        };
        checks.push(self.state_directory(&access.state));
        checks.extend(self.log.and_then(|log| self.log_file(log, &access.log)));
        checks
    }

    fn state_directory(&self, access: &Result<(), Unwritable>) -> Check {
        let (name, state) = (self.slurm_user, self.state.display());
        match access {
            Ok(()) => Check::ok(format!("state directory {state}")),
            Err(Unwritable::Missing) => Check::fail(format!(
                "state directory {state} does not exist, so that two programs could work on one node: install -d -o {name} \
                 {state}, or change state_dir"
            )),
            Err(Unwritable::NotAllowed) => Check::fail(format!(
                "{name}, the user of slurmctld and its programs, cannot write {state}, so that two programs could work on one \
                 node: install -d -o {name} {state}"
            )),
            Err(Unwritable::Failed(error)) => Check::fail(format!(
                "cannot write state directory {state}: {error}; make room there, or mount it writable (see df and mount)"
            )),
        }
    }

    fn log_file(&self, log: &Path, access: &Result<(), Unwritable>) -> Option<Check> {
        let (name, path) = (self.slurm_user, log.display());
        let folder = log.parent().unwrap_or(Path::new("/")).display();
        Some(match access {
            Ok(()) => return None,
            Err(Unwritable::Missing) => Check::warn(format!(
                "the directory of the log {path} does not exist: install -d -o {name} {folder}"
            )),
            Err(Unwritable::NotAllowed) => Check::warn(format!(
                "{name}, the user of slurmctld and its programs, cannot write {path}: chown {name} {path}"
            )),
            Err(Unwritable::Failed(error)) => Check::fail(format!(
                "cannot write the log {path}: {error}; make room there, or mount it writable (see df and mount)"
            )),
        })
    }

    /// Anybody who can write the configuration can launch machines and choose commands that the caller runs, which may be
    /// root.
    fn others_write(&self, owner: &ConfigOwner) -> Vec<Check> {
        let (path, ConfigOwner { mode, user, group }) = (self.config.display(), owner);
        let by_mode = (mode & 0o022 != 0).then(|| {
            let mode = mode & 0o7777;
            Check::warn(format!("{path} is writable by others (mode {mode:o}): chmod go-w {path}"))
        });
        let by_owner = user.as_ref().map(|user| {
            Check::warn(format!(
                "{path} belongs to {user}, who can have root run any command by its restart_command or slurm_bin: chown \
                 root:{group} {path}, and chmod g+r {path}"
            ))
        });
        by_mode.into_iter().chain(by_owner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use slurmconf::Config;

    fn facts() -> HostFacts<'static> {
        HostFacts {
            config: Path::new("/etc/citc/startnode.yaml"),
            config_owner: None,
            slurm_user: "slurm",
            access: Some(Access { state: Ok(()), log: Ok(()) }),
            state: Path::new("/var/lib/slurm-elastic"),
            log: None,
            unresolved: None,
            variables: Vec::new(),
            is_root: true,
        }
    }

    #[test]
    fn a_persistent_node_that_cannot_be_resolved_is_reported() {
        let both = "NodeName=n[1-4] State=CLOUD\nNodeName=web-[1-2]\n";
        for (text, resolves, expected) in [
            (both, false, Some("web-1")),
            (both, true, None),
            // Slurm gets the addresses of elastic nodes.
            ("NodeName=n[1-4] State=CLOUD\n", false, None),
        ] {
            let nodes = Config::parse(text).unwrap().nodes;
            let found = HostFacts { unresolved: unresolved(&nodes, |_| resolves), ..facts() };
            let warning = found.unresolved().map(|check| (check.status, check.text));
            match expected {
                None => assert_eq!(warning, None, "{text}"),
                Some(name) => {
                    let (status, text) = warning.unwrap();
                    assert_eq!(status, Status::Warn);
                    assert!(text.starts_with(&format!("{name} is persistent")), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_configuration_that_others_write_is_reported() {
        let slurm = || Some("slurm".to_owned());
        for (mode, user, expected) in [
            (0o100_644, None, &[][..]),
            (0o100_664, None, &["writable by others (mode 664)"]),
            (0o100_646, None, &["writable by others (mode 646)"]),
            (0o100_744, slurm(), &["chown root:12346 "]),
            (0o100_664, slurm(), &["chmod go-w", "chown root:12346 "]),
        ] {
            let owner = ConfigOwner { mode, user, group: "12346".to_owned() };
            let mut checks = HostFacts { config_owner: Some(owner), ..facts() }.files();
            assert_eq!(checks.pop().unwrap().status, Status::Ok, "the state directory");
            assert_eq!(checks.len(), expected.len(), "{checks:?}");
            for (check, words) in checks.iter().zip(expected) {
                assert!(check.status == Status::Warn && check.text.contains(words), "{check:?}");
            }
        }
    }

    #[test]
    fn variables_of_this_shell_alone_are_reported() {
        let place = "/etc/citc/startnode.yaml as proxy and no_proxy";
        let variables =
            vec![(vec!["http_proxy", "ALL_PROXY"], place.to_owned()), (Vec::new(), String::new())];
        let checks = HostFacts { variables, ..facts() }.variables();
        let [check] = &checks[..] else { panic!("{checks:?}") };
        assert_eq!(check.status, Status::Warn);
        assert!(check.text.contains("http_proxy, ALL_PROXY") && check.text.ends_with(place));
    }
}
