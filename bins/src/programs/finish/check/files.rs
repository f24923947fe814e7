//! Who may read and write our files.

use super::Point::{self, Odd, Well, Wrong};
use crate::args::{CONFIG, Common};
use crate::context::{Context, log_path};
use crate::environment::user_called;
use nix::unistd::{Gid, Uid, User, getgrouplist, getuid};
use std::ffi::CString;
use std::fs::{File, Metadata, OpenOptions, metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Whether the configuration is only ours to write, and whether the user that slurmctld runs our programs as can write what
/// they write.
pub(super) fn points(context: &Context, common: &Common) -> Vec<Point> {
    let config = common.config.as_deref().unwrap_or(Path::new(CONFIG));
    let mut points = others_write(config);
    let name = context.slurm.config.get("SlurmUser").unwrap_or("root");
    let Some(user) = Whose::named(name) else {
        points.push(Wrong(format!("SlurmUser={name}: there is no such user on this host")));
        return points;
    };
    let state = &context.state_path;
    if user.writes(state) {
        points.push(Well(format!("state directory {}", state.display())));
    } else {
        points.push(Wrong(format!(
            "{name}, as whom slurmctld runs our programs, cannot write {0}, so that two of them could work on one node: \
             install -d -o {name} {0}",
            state.display()
        )));
    }
    let log = log_path(common);
    if log != Path::new("-") && !user.writes(&log) {
        points.push(Odd(format!(
            "{name}, as whom slurmctld runs our programs, cannot write {0}: chown {name} {0}",
            log.display()
        )));
    }
    points
}

/// Whoever can write the configuration can have any machine launched, and whoever calls us runs the commands that it names.
fn others_write(path: &Path) -> Vec<Point> {
    let Ok(found) = metadata(path) else { return Vec::new() };
    let (mode, owner) = (found.mode(), Uid::from_raw(found.uid()));
    let path = path.display();
    let by_mode = (mode & 0o022 != 0).then(|| {
        let mode = mode & 0o7777;
        Odd(format!("{path} can be written by others (mode {mode:o}): chmod go-w {path}"))
    });
    // Also if it is the caller's own: root calls finish and resize, whoever checks.
    let by_owner = (!owner.is_root()).then(|| {
        let user = User::from_uid(owner).ok().flatten();
        let group = user.as_ref().map_or(Gid::from_raw(found.gid()), |user| user.gid);
        let name = user.map_or_else(|| owner.to_string(), |user| user.name);
        Odd(format!(
            "{path} belongs to {name}, who can have root run any command by its restart_command or slurm_bin: chown \
             root:{group} {path}, and chmod g+r {path}"
        ))
    });
    by_mode.into_iter().chain(by_owner).collect()
}

/// Whether a file can be replaced as a whole.
pub(super) fn writable(path: &Path) -> io::Result<()> {
    let real = std::fs::canonicalize(path)?;
    let _: File = OpenOptions::new().append(true).open(&real)?;
    let folder = real.parent().unwrap_or(Path::new("/"));
    let user = User::from_uid(getuid()).ok().flatten().map(Whose::of);
    match user {
        Some(user) if !user.writes(folder) => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    }
}

/// A user, with the groups it is in.
struct Whose {
    id: Uid,
    groups: Vec<Gid>,
}

impl Whose {
    fn named(name: &str) -> Option<Self> {
        user_called(name).map(Self::of)
    }

    fn of(user: User) -> Self {
        let groups = CString::new(user.name).ok();
        let groups = groups.and_then(|name| getgrouplist(&name, user.gid).ok());
        Self { id: user.uid, groups: groups.unwrap_or_else(|| vec![user.gid]) }
    }

    /// True if it can write there, or make it where it is to be.
    fn writes(&self, path: &Path) -> bool {
        let mut there = path.ancestors().filter_map(|path| metadata(path).ok());
        self.id.is_root() || there.next().is_some_and(|found| self.may_write(&found))
    }

    fn may_write(&self, found: &Metadata) -> bool {
        let bit = if found.uid() == self.id.as_raw() {
            0o200
        } else if self.groups.iter().any(|group| group.as_raw() == found.gid()) {
            0o020
        } else {
            0o002
        };
        found.mode() & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn a_configuration_of_slurms_user_whose_commands_root_runs_was_well() {
        // Only root can give it away.
        if !getuid().is_root() {
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(others_write(file.path()).is_empty());
        set_permissions(file.path(), Permissions::from_mode(0o664)).unwrap();
        assert_eq!(others_write(file.path()).len(), 1);
        set_permissions(file.path(), Permissions::from_mode(0o744)).unwrap();
        chown(file.path(), Some(12_345), Some(12_346)).unwrap();
        let points = others_write(file.path());
        assert!(matches!(&points[..], [Odd(text)] if text.contains("chown root:12346 ")));
    }
}
