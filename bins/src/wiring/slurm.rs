//! Connects Slurm from the configuration.

use crate::args::Common;
use crate::config::Paths;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use provision::conf::MarkedFile;
use slurmconf::{Config, Document, SlurmVersion, Statement};
use slurmctl::{Controller as _, Programs, Scontrol, ScontrolConfig};
use std::path::{Path, PathBuf};

/// Default path of slurm.conf.
const SLURM_CONF: &str = "/etc/slurm/slurm.conf";

/// The controller and its configuration.
#[derive(Debug)]
pub struct Slurm {
    /// The controller.
    pub controller: Scontrol,
    /// Path of slurm.conf.
    pub path: PathBuf,
    /// The content of slurm.conf and the files that it includes.
    pub config: Config,
}

impl Slurm {
    /// Finds the file with the markers: slurm.conf or one that it includes.
    pub fn marked_file(&self) -> Result<MarkedFile, Diagnostic> {
        let found = MarkedFile::find(&self.path, self.controller.version());
        found.map_err(Diagnostic::from)
    }
}

/// Finds Slurm's programs and reads slurm.conf, without a request to slurmctld.
pub async fn slurm(
    common: &Common,
    paths: &Paths,
    environment: &Environment,
) -> Result<Slurm, Diagnostic> {
    let path = conf_path(common, paths, environment);
    // Without the file, scontrol searches elsewhere for a long time, and its error does not name the file.
    std::fs::File::open(&path).map_err(|error| {
        let remedy = "set its path with --slurm-conf, or in the configuration: slurm_conf: /path/to/slurm.conf";
        Diagnostic::new(format!("cannot read slurm.conf {}: {error}; {remedy}", path.display()))
    })?;
    let controller = controller(paths, &path, environment).await?;
    let read = |path: &Path| std::fs::read(path);
    let config = Config::load(&path, controller.version(), read)?;
    let controller = controller.with_message_timeout(config.message_timeout());
    Ok(Slurm { controller, path, config })
}

/// Stands in for a Slurm that cannot be opened. It has no nodes, and all requests fail.
#[must_use]
pub fn no_slurm(common: &Common, paths: &Paths, environment: &Environment) -> Slurm {
    let path = conf_path(common, paths, environment);
    Slurm {
        controller: unreachable_controller(SlurmVersion::new(23, 11)),
        path,
        config: Config::default(),
    }
}

/// A controller whose requests all fail immediately.
#[must_use]
pub fn unreachable_controller(version: SlurmVersion) -> Scontrol {
    let nowhere = |name: &str| Path::new("/nonexistent").join(name);
    let programs = Programs {
        scontrol: nowhere("scontrol"),
        squeue: nowhere("squeue"),
        sbatch: nowhere("sbatch"),
        sacct: nowhere("sacct"),
    };
    Scontrol::new(ScontrolConfig::new(programs), version)
}

/// Path of slurm.conf, in this order: option, configuration, `SLURM_CONF`, default.
#[must_use]
fn conf_path(common: &Common, paths: &Paths, environment: &Environment) -> PathBuf {
    let option = common.slurm_conf.clone();
    let configured = || paths.slurm_conf.as_deref().map(|path| environment.expand(path));
    let variable = || environment.get("SLURM_CONF").map(PathBuf::from);
    let path = option.or_else(configured).or_else(variable).unwrap_or_else(|| SLURM_CONF.into());
    // scontrol runs in another directory.
    std::path::absolute(&path).unwrap_or(path)
}

/// `SlurmUser`, if slurm.conf itself sets it. Included files are not read.
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
        Diagnostic::new(format!(
            "{error}; set their directory in the configuration: slurm_bin: /path/to/bin"
        ))
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
