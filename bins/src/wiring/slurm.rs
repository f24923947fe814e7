//! Slurm, from the configuration.

use crate::args::Common;
use crate::config::Paths;
use crate::environment::Environment;
use crate::trouble::Trouble;
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

/// Finds Slurm's programs and reads slurm.conf; slurmctld is not asked.
pub async fn slurm(
    common: &Common,
    paths: &Paths,
    environment: &Environment,
) -> Result<Slurm, Trouble> {
    let path = conf_path(common, paths, environment);
    let controller = controller(paths, &path, environment).await?;
    let read = |path: &Path| std::fs::read(path);
    let config = Config::load(&path, controller.version(), read)
        .map_err(|error| Trouble::from_error(&error))?;
    Ok(Slurm { controller, path, config })
}

/// What stands for a Slurm that is not there or whose file cannot be read: no nodes, and whatever is asked fails.
#[must_use]
pub fn no_slurm(common: &Common, paths: &Paths, environment: &Environment) -> Slurm {
    let nowhere = |name: &str| Path::new("/nonexistent").join(name);
    let programs = Programs {
        scontrol: nowhere("scontrol"),
        squeue: nowhere("squeue"),
        sbatch: nowhere("sbatch"),
    };
    let controller = Scontrol::new(ScontrolConfig::new(programs), SlurmVersion::new(23, 11));
    let path = conf_path(common, paths, environment);
    Slurm { controller, path, config: Config::default() }
}

/// Where slurm.conf is: as told, as configured, as slurmctld says, or in its usual place.
#[must_use]
fn conf_path(common: &Common, paths: &Paths, environment: &Environment) -> PathBuf {
    let told = common.slurm_conf.clone();
    let configured = || paths.slurm_conf.as_deref().map(|path| environment.expand(path));
    let given = || environment.get("SLURM_CONF").map(PathBuf::from);
    told.or_else(configured).or_else(given).unwrap_or_else(|| PathBuf::from(SLURM_CONF))
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
) -> Result<Scontrol, Trouble> {
    let configured = paths.slurm_bin.as_deref().map(|path| environment.expand(path));
    let usual = Programs::USUAL.map(Path::new);
    let directories: Vec<&Path> = configured.as_deref().into_iter().chain(usual).collect();
    let programs = Programs::find(&directories, Path::is_file).map_err(|error| {
        Trouble::new(format!("{error}; say in the configuration where: slurm_bin: /path/to/bin"))
    })?;
    let mut config = ScontrolConfig::new(programs);
    config.slurm_conf = Some(conf.to_owned());
    if !paths.restart.is_empty() {
        config.restart.clone_from(&paths.restart);
    }
    Scontrol::connect(config).await.map_err(|error| Trouble::from_error(&error))
}
