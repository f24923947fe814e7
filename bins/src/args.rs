//! Options that all programs have.

use crate::diagnostic::Diagnostic;
use crate::output::Volume;
use clap::{ArgAction, Args, ValueEnum};
use history::{TimeZone, moment};
use hostlist::{ErrorKind, Hostlist, Parser};
use slurmconf::yaml::duration;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Default path of the configuration.
pub const CONFIG: &str = "/etc/citc/startnode.yaml";

const HEADING: &str = "Common options";

/// Options that all programs have. They come before the host list, where a `PowerAction` of Slurm 26.05 puts them.
#[derive(Args, Clone, Debug, Default)]
pub struct Common {
    /// Configuration file [default: /etc/citc/startnode.yaml].
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    pub config: Option<PathBuf>,

    /// Path of slurm.conf [default: $SLURM_CONF, else /etc/slurm/slurm.conf].
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    pub slurm_conf: Option<PathBuf>,

    /// Directory for locks, cool-downs and events [default: /var/lib/slurm-elastic].
    #[arg(long, value_name = "DIR", global = true, help_heading = HEADING)]
    pub state_dir: Option<PathBuf>,

    /// Print the plan and change nothing.
    #[arg(long, global = true, help_heading = HEADING)]
    pub dry_run: bool,

    /// Print JSON: one value, or one line for each event and then the report.
    #[arg(long, global = true, help_heading = HEADING)]
    pub json: bool,

    /// Log file [default: /var/log/slurm/elastic.log]; - for standard error.
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    pub log: Option<PathBuf>,

    /// Format of the log.
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true, help_heading = HEADING)]
    pub log_format: LogFormat,

    /// Verbose: also log every cloud API request.
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "quiet", help_heading = HEADING)]
    pub verbose: u8,

    /// Print only errors and warnings.
    #[arg(short, long, global = true, help_heading = HEADING)]
    pub quiet: bool,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Cluster in the Cloud's format.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl Common {
    /// How much to print.
    #[must_use]
    pub fn volume(&self) -> Volume {
        match (self.quiet, self.verbose) {
            (true, _) => Volume::Quiet,
            (false, 0) => Volume::Normal,
            (false, _) => Volume::Verbose,
        }
    }
}

/// The time that is looked at.
#[derive(Args, Clone, Debug, Default)]
pub struct Window {
    /// From when: 2026-11-18, 2026-11-18T10:00, or 2h for two hours ago.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Until when [default: now].
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

impl Window {
    /// Its begin, if one is given, and its end, in milliseconds since 1970; days are those of the zone.
    pub fn read(&self, now: u64, zone: TimeZone) -> Result<(Option<u64>, u64), Diagnostic> {
        let at =
            |text: &Option<String>| text.as_deref().map(|text| moment(text, now, zone)).transpose();
        let (since, until) = (at(&self.since)?, at(&self.until)?.unwrap_or(now));
        if since.is_some_and(|since| since >= until) {
            return Err(Diagnostic::new("--since is not before --until"));
        }
        Ok((since, until))
    }
}

/// The time at a number of milliseconds since 1970.
#[must_use]
pub fn time_at(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

/// Returns a parser for a duration within bounds: seconds, or a number with its unit, as in the configuration.
pub fn time(least: Duration, most: Duration) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let time = duration(text).ok_or("expected a time such as 90, 90s, 15m or 2h")?;
        if (least..=most).contains(&time) {
            return Ok(time);
        }
        Err(format!("not between {} and {} seconds", least.as_secs(), most.as_secs()))
    }
}

/// Parses a number of at least 1.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number of at least 1".to_owned())
}

/// Maximum number of nodes in one call, which is also Slurm's own.
const MOST_NODES: u64 = 1 << 16;

/// Parses a host list of at least one node and at most as many as Slurm can have.
pub fn nodes(text: &str) -> Result<Hostlist, String> {
    let list = Parser::new().max_hosts(MOST_NODES).parse(text);
    let list = list.map_err(|error| match error.kind() {
        ErrorKind::TooManyHosts => {
            format!("more than {MOST_NODES} nodes, the most that Slurm can have")
        }
        _ => error.to_string(),
    })?;
    if list.is_empty() {
        return Err("the list is empty".to_owned());
    }
    Ok(list)
}
