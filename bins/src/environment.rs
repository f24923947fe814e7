//! The environment of the process: variables, home directory, host name, caller. No other module reads it.

use nix::unistd::{Uid, User, gethostname, getuid};
use slurmctl::{CallSigns, Caller, ProgramRole, is_called_by_daemon};
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

/// Where Linux shows what the firmware says.
const FIRMWARE: &str = "/sys/class/dmi/id";

/// The environment of the process, as a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Environment variables with a value in UTF-8.
    pub variables: BTreeMap<String, String>,
    /// The home directory of the user that slurmctld runs as, or else of the caller.
    pub home: Option<PathBuf>,
    /// The host name without its domain.
    pub hostname: String,
    /// True if a Slurm daemon started this process, directly or through a script, or if there is no /proc to find out.
    pub by_slurm: bool,
    /// True if standard error is a terminal.
    pub terminal: bool,
}

impl Environment {
    /// Reads the environment of this process.
    #[must_use]
    pub fn read() -> Self {
        let text = |(key, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((key.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<_, _> = std::env::vars_os().filter_map(text).collect();
        let home = variables.get("HOME").filter(|home| home.starts_with('/')).map(PathBuf::from);
        let hostname = gethostname().ok().and_then(|name| name.into_string().ok());
        let hostname = hostname.unwrap_or_default();
        let hostname = hostname.split('.').next().unwrap_or_default().to_owned();
        // slurmctld does not set HOME.
        let home = home.or_else(home_of_user);
        Self {
            home,
            hostname,
            variables,
            by_slurm: is_called_by_daemon(),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// For root, takes the home directory of the user that slurmctld runs as, whose files the programs read.
    ///
    /// `user` is `SlurmUser` of slurm.conf; root if it is not set.
    #[must_use]
    pub fn on_behalf_of(self, user: Option<&str>) -> Self {
        let Some(user) = user.filter(|user| getuid().is_root() && *user != "root") else {
            return self;
        };
        let home = find_user(user).map(|user| user.dir);
        Self { home: home.or(self.home), ..self }
    }

    /// Who called this program, which has this role in slurm.conf.
    #[must_use]
    pub fn caller(&self, role: ProgramRole) -> Caller {
        let signs = CallSigns { by_daemon: self.by_slurm, terminal: self.terminal };
        Caller::of(role, signs, |name| self.get(name).is_some())
    }

    /// Returns a variable that is set and not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Expands a leading `~` to [`home`](Self::home).
    #[must_use]
    pub fn expand(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }
}

/// Finds a user by name or number.
#[must_use]
pub fn find_user(name: &str) -> Option<User> {
    let by_number = || User::from_uid(Uid::from_raw(name.parse().ok()?)).ok().flatten();
    User::from_name(name).ok().flatten().or_else(by_number)
}

/// The name of the user that this process runs as.
#[must_use]
pub fn this_user() -> String {
    let user = User::from_uid(getuid()).ok().flatten();
    user.map_or_else(|| "root".to_owned(), |user| user.name)
}

/// What the firmware of this machine says of itself: vendor, product, chassis and BIOS, a line each; empty where nobody may
/// read it.
#[must_use]
pub fn firmware() -> String {
    let files = ["sys_vendor", "product_name", "chassis_asset_tag", "bios_version"];
    let texts = files.map(|file| read_to_string(Path::new(FIRMWARE).join(file)));
    texts.map(Result::unwrap_or_default).concat()
}

fn home_of_user() -> Option<PathBuf> {
    User::from_uid(getuid()).ok().flatten().map(|user| user.dir)
}
