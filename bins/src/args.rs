//! The options that all programs have.

use crate::config::duration;
use crate::output::Volume;
use clap::{ArgAction, Args, ValueEnum};
use hostlist::{ErrorKind, Hostlist, Parser};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Where the configuration is looked for.
pub const CONFIG: &str = "/etc/citc/startnode.yaml";

const HEADING: &str = "Options of all programs";

/// The options that all programs have; they stand before the host list, as 26.05's PowerAction puts them.
#[derive(Args, Clone, Debug, Default)]
pub struct Common {
    /// The configuration [default: /etc/citc/startnode.yaml].
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    pub config: Option<PathBuf>,

    /// slurm.conf [default: $SLURM_CONF, else /etc/slurm/slurm.conf].
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    pub slurm_conf: Option<PathBuf>,

    /// Where locks, cool-downs and events are kept [default: /var/lib/slurm-elastic].
    #[arg(long, value_name = "DIR", global = true, help_heading = HEADING)]
    pub state_dir: Option<PathBuf>,

    /// Print the plan and change nothing.
    #[arg(long, global = true, help_heading = HEADING)]
    pub dry_run: bool,

    /// Print for machines, as JSON: one value, or where something is done a line for each event and the report as the last.
    #[arg(long, global = true, help_heading = HEADING)]
    pub json: bool,

    /// The log [default: /var/log/slurm/elastic.log]; - for standard error.
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    pub log: Option<PathBuf>,

    /// How lines of the log look.
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true, help_heading = HEADING)]
    pub log_format: LogFormat,

    /// Say more: the log also has everything that the cloud is asked.
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "quiet", help_heading = HEADING)]
    pub verbose: u8,

    /// Say nothing but errors and warnings.
    #[arg(short, long, global = true, help_heading = HEADING)]
    pub quiet: bool,
}

/// How lines of the log look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// As Cluster in the Cloud's.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Common {
    /// How much to say.
    #[must_use]
    pub fn volume(&self) -> Volume {
        match (self.quiet, self.verbose) {
            (true, _) => Volume::Quiet,
            (false, 0) => Volume::Normal,
            (false, _) => Volume::Verbose,
        }
    }
}

/// A time as an argument, within bounds: seconds, or a number with its unit, as in the configuration.
pub fn time(least: Duration, most: Duration) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let time = duration(text).ok_or("expected a time such as 90, 90s, 15m or 2h")?;
        if (least..=most).contains(&time) {
            return Ok(time);
        }
        Err(format!("not between {} and {} seconds", least.as_secs(), most.as_secs()))
    }
}

/// A number as an argument, of at least one.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number of at least 1".to_owned())
}

/// Most nodes that one call can be about; Slurm has no more.
const MOST_NODES: u64 = 1 << 16;

/// A host list as an argument: at least one node, and no more than Slurm can have.
pub fn nodes(text: &str) -> Result<Hostlist, String> {
    let list = Parser::new().max_hosts(MOST_NODES).parse(text);
    let list = list.map_err(|error| match error.kind() {
        ErrorKind::TooManyHosts => format!("more than the {MOST_NODES} nodes that Slurm can have"),
        _ => error.to_string(),
    })?;
    if list.is_empty() {
        return Err("no node in it".to_owned());
    }
    Ok(list)
}
