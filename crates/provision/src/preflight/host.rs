//! Checks of this host: users, files, names and variables.

use super::Check;
use std::path::Path;

/// What was observed of this host.
#[derive(Debug)]
pub struct HostFacts<'a> {
    /// The configuration file.
    pub config: &'a Path,
    /// Whose it is, if it is there.
    pub config_owner: Option<ConfigOwner>,
    /// The user that slurmctld runs our programs as.
    pub slurm_user: &'a str,
    /// What that user may write, if there is such a user.
    pub access: Option<Access>,
    /// The state directory.
    pub state: &'a Path,
    /// The log, if it is a file.
    pub log: Option<&'a Path>,
    /// A persistent node whose name slurmctld could not look up.
    pub unresolved: Option<String>,
    /// Variables that this shell has and slurmctld's programs do not get, each with where to set them instead. Their values
    /// may be secret.
    pub variables: Vec<(Vec<&'static str>, String)>,
    /// True if root is asking.
    pub is_root: bool,
}

/// What slurmctld's user may write.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The state directory.
    pub state: bool,
    /// The log.
    pub log: bool,
}

/// Whose the configuration is.
#[derive(Clone, Debug)]
pub struct ConfigOwner {
    /// Its permission bits.
    pub mode: u32,
    /// The owner, unless that is root.
    pub user: Option<String>,
    /// The group to give it to.
    pub group: String,
}

impl HostFacts<'_> {
    /// What is missing for persistent nodes to be found by name: slurmctld leaves out those that it cannot look up.
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

    /// Whether the configuration is root's alone to write, and whether slurmctld's user can write what our programs write.
    pub(super) fn files(&self) -> Vec<Check> {
        let mut checks =
            self.config_owner.as_ref().map(|it| self.others_write(it)).unwrap_or_default();
        let name = self.slurm_user;
        let Some(access) = self.access else {
            checks
                .push(Check::fail(format!("SlurmUser={name}: there is no such user on this host")));
            return checks;
        };
        let state = self.state.display();
        checks.push(if access.state {
            Check::ok(format!("state directory {state}"))
        } else {
            Check::fail(format!(
                "{name}, the user of slurmctld and its programs, cannot write {state}, so that two programs could work on one \
                 node: install -d -o {name} {state}"
            ))
        });
        if let Some(log) = self.log.filter(|_| !access.log) {
            let log = log.display();
            checks.push(Check::warn(format!(
                "{name}, the user of slurmctld and its programs, cannot write {log}: chown {name} {log}"
            )));
        }
        checks
    }

    /// Whoever can write the configuration can have any machine launched, and whoever calls us runs the commands that it
    /// names: also if it is the caller's own, because root calls finish and resize.
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
