//! Power saving parameters.

use super::value::number;
use crate::{document::Pair, error::Problem};
use std::{fmt, time::Duration};

/// How long a node is idle before it is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendTime {
    /// `INFINITE`, `NONE` or −1.
    Never,
    /// A number of seconds.
    Seconds(u32),
}

impl SuspendTime {
    /// Slurm reads this value with `atoi`: `0600` is 600, `10m` is 10, and `UNLIMITED` is 0.
    pub(super) fn read(pair: &Pair<'_>) -> Result<Self, Problem> {
        let never = ["INFINITE", "NONE", "-1"];
        if never.iter().any(|word| word.eq_ignore_ascii_case(&pair.value)) {
            return Ok(Self::Never);
        }
        let seconds = leading_number(&pair.value).map(Self::Seconds);
        seconds.ok_or_else(|| Problem::BadNumber {
            key: pair.key.to_string(),
            value: pair.value.to_string(),
        })
    }
}

/// The number at the start of a text, 0 without one; `None` for a negative or too large number, which Slurm refuses.
fn leading_number(text: &str) -> Option<u32> {
    let text = text.trim_ascii_start();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(unsigned.len());
    let digits = unsigned.get(..end).filter(|digits| !digits.is_empty()).unwrap_or("0");
    let number = digits.parse().ok()?;
    (number == 0 || !text.starts_with('-')).then_some(number)
}

impl fmt::Display for SuspendTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("INFINITE"),
            Self::Seconds(seconds) => seconds.fmt(f),
        }
    }
}

/// The `Suspend…`, `Resume…` and `Reboot…` parameters, with Slurm's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerSettings {
    /// `SuspendProgram`
    pub suspend_program: Option<String>,
    /// `ResumeProgram`
    pub resume_program: Option<String>,
    /// `ResumeFailProgram`
    pub resume_fail_program: Option<String>,
    /// `RebootProgram`
    pub reboot_program: Option<String>,
    /// `SuspendTime`
    pub suspend_time: SuspendTime,
    /// `SuspendTimeout`
    pub suspend_timeout: Duration,
    /// `ResumeTimeout`
    pub resume_timeout: Duration,
    /// `SuspendRate` in nodes per minute; 0 is no limit
    pub suspend_rate: u32,
    /// `ResumeRate` in nodes per minute; 0 is no limit
    pub resume_rate: u32,
    /// `SuspendExcNodes`, which may have counts after a colon
    pub suspend_exc_nodes: Option<String>,
    /// `SuspendExcParts`
    pub suspend_exc_parts: Vec<String>,
    /// `SuspendExcStates`, since 23.02
    pub suspend_exc_states: Vec<String>,
    /// The values of `SlurmctldParameters`
    pub slurmctld_parameters: Vec<String>,
}

impl PowerSettings {
    /// Takes a parameter, if it is one of these.
    pub(super) fn apply(&mut self, pair: &Pair<'_>) -> Result<(), Problem> {
        let text = || Some(pair.value.to_string());
        let words =
            || pair.value.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let seconds = || number::<u32>(pair).map(|seconds| Duration::from_secs(u64::from(seconds)));
        match pair.key.to_ascii_lowercase().as_str() {
            "suspendprogram" => self.suspend_program = text(),
            "resumeprogram" => self.resume_program = text(),
            "resumefailprogram" => self.resume_fail_program = text(),
            "rebootprogram" => self.reboot_program = text(),
            "suspendtime" => self.suspend_time = SuspendTime::read(pair)?,
            "suspendtimeout" => self.suspend_timeout = seconds()?,
            "resumetimeout" => self.resume_timeout = seconds()?,
            "suspendrate" => self.suspend_rate = number(pair)?,
            "resumerate" => self.resume_rate = number(pair)?,
            "suspendexcnodes" => self.suspend_exc_nodes = text(),
            "suspendexcparts" => self.suspend_exc_parts = words(),
            "suspendexcstates" => self.suspend_exc_states = words(),
            "slurmctldparameters" => self.slurmctld_parameters = words(),
            _ => {}
        }
        Ok(())
    }
}

impl Default for PowerSettings {
    /// Slurm's defaults.
    fn default() -> Self {
        Self {
            suspend_program: None,
            resume_program: None,
            resume_fail_program: None,
            reboot_program: None,
            suspend_time: SuspendTime::Never,
            suspend_timeout: Duration::from_secs(30),
            resume_timeout: Duration::from_mins(1),
            suspend_rate: 60,
            resume_rate: 300,
            suspend_exc_nodes: None,
            suspend_exc_parts: Vec::new(),
            suspend_exc_states: Vec::new(),
            slurmctld_parameters: Vec::new(),
        }
    }
}
