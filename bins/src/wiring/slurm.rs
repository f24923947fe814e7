//! Slurm, from the configuration.

use crate::args::Common;
use crate::config::Paths;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use provision::conf::MarkedFile;
use slurmconf::{Config, Document, SlurmVersion, Statement};
use slurmctl::{Controller as _, Programs, Scontrol, ScontrolConfig};
use std::path::{Path, PathBuf};

/// Where slurm.conf is looked for.
const SLURM_CONF: &str = "/etc/slurm/slurm.conf";

/// The controller, and what its configuration says.
#[derive(Debug)]
pub struct Slurm {
    /// The controller.
    pub controller: Scontrol,
    /// Where slurm.conf is.
    pub path: PathBuf,
    /// What it says, its includes followed.
    pub config: Config,
}

impl Slurm {
    /// The file with the markers, in slurm.conf and what it includes.
    pub fn marked_file(&self) -> Result<MarkedFile, Diagnostic> {
        let found = MarkedFile::find(&self.path, self.controller.version());
        found.map_err(Diagnostic::from)
    }
}

/// Finds Slurm's programs and reads slurm.conf; slurmctld is not asked.
pub async fn slurm(
    common: &Common,
    paths: &Paths,
    environment: &Environment,
) -> Result<Slurm, Diagnostic> {
    let path = conf_path(common, paths, environment);
    // scontrol would look for it elsewhere for a long time, and then not say what it misses.
    std::fs::File::open(&path).map_err(|error| {
        let remedy = "say where it is with --slurm-conf, or in the configuration: slurm_conf: /path/to/slurm.conf";
        Diagnostic::new(format!("cannot read slurm.conf {}: {error}; {remedy}", path.display()))
    })?;
    let controller = controller(paths, &path, environment).await?;
    let read = |path: &Path| std::fs::read(path);
    let config = Config::load(&path, controller.version(), read)?;
    let controller = controller.with_message_timeout(config.message_timeout());
    Ok(Slurm { controller, path, config })
}

/// What stands for a Slurm that is not there or whose file cannot be read: no nodes, and whatever is asked fails.
#[must_use]
pub fn no_slurm(common: &Common, paths: &Paths, environment: &Environment) -> Slurm {
    let path = conf_path(common, paths, environment);
    Slurm { controller: nobody(SlurmVersion::new(23, 11)), path, config: Config::default() }
}

/// Whom nothing can be asked; that is found out at once.
#[must_use]
pub fn nobody(version: SlurmVersion) -> Scontrol {
    let nowhere = |name: &str| Path::new("/nonexistent").join(name);
    let programs = Programs {
        scontrol: nowhere("scontrol"),
        squeue: nowhere("squeue"),
        sbatch: nowhere("sbatch"),
        sacct: nowhere("sacct"),
    };
    Scontrol::new(ScontrolConfig::new(programs), version)
}

/// Where slurm.conf is: as told, as configured, as slurmctld says, or in its usual place.
#[must_use]
fn conf_path(common: &Common, paths: &Paths, environment: &Environment) -> PathBuf {
    let told = common.slurm_conf.clone();
    let configured = || paths.slurm_conf.as_deref().map(|path| environment.expand(path));
    let given = || environment.get("SLURM_CONF").map(PathBuf::from);
    let path = told.or_else(configured).or_else(given).unwrap_or_else(|| SLURM_CONF.into());
    // scontrol runs elsewhere.
    std::path::absolute(&path).unwrap_or(path)
}

/// The user that slurmctld runs as, where slurm.conf says it itself: nothing else can be known of it yet.
#[must_use]
pub fn slurm_user(common: &Common, paths: &Paths, environment: &Environment) -> Option<String> {
    let text = std::fs::read(conf_path(common, paths, environment)).ok()?;
    let document = Document::parse(text);
    let users = document.lines().filter_map(|line| match line.read() {
        Ok(Statement::Parameter(pair)) if pair.key.eq_ignore_ascii_case("SlurmUser") => {
            Some(pair.value.to_string())
        }
        _ => None,
    });
    users.last()
}

async fn controller(
    paths: &Paths,
    conf: &Path,
    environment: &Environment,
) -> Result<Scontrol, Diagnostic> {
    let configured = paths.slurm_bin.as_deref().map(|path| environment.expand(path));
    let usual = Programs::USUAL.map(Path::new);
    let directories: Vec<&Path> = configured.as_deref().into_iter().chain(usual).collect();
    let programs = Programs::find(&directories, Path::is_file).map_err(|error| {
        Diagnostic::new(format!("{error}; say in the configuration where: slurm_bin: /path/to/bin"))
    })?;
    let mut config = ScontrolConfig::new(programs);
    config.slurm_conf = Some(conf.to_owned());
    if !paths.restart.is_empty() {
        config.restart.clone_from(&paths.restart);
    }
    Scontrol::connect(config).await.map_err(Diagnostic::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_slurmctld_is_waited_for_as_slurm_conf_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["scontrol", "squeue", "sbatch"] {
            std::fs::write(path(name), "#!/bin/sh\necho slurm 24.11.5\n").unwrap();
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path(name), executable).unwrap();
        }
        let bin = Some(dir.path().display().to_string());
        let paths = Paths { slurm_bin: bin, ..Paths::default() };
        let common = Common { slurm_conf: Some(path("slurm.conf")), ..Common::default() };
        for (text, seconds) in [("MessageTimeout=60\n", 120), ("MessageTimeout=5\n", 20), ("", 20)]
        {
            std::fs::write(path("slurm.conf"), text).unwrap();
            let slurm = slurm(&common, &paths, &Environment::default()).await.unwrap();
            assert_eq!(slurm.controller.timeout().as_secs(), seconds, "{text}");
        }
    }
}
