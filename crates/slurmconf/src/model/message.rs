//! How long Slurm's own programs wait for slurmctld.

use super::{Config, value::whole};
use std::time::Duration;

impl Config {
    /// `MessageTimeout`: how long one of Slurm's programs waits for an answer; 10 seconds where slurm.conf says nothing that is
    /// a number.
    ///
    /// ```
    /// use slurmconf::Config;
    /// use std::time::Duration;
    ///
    /// let time = |text| Config::parse(text).map(|config| config.message_timeout());
    /// assert_eq!(time("MessageTimeout=60\n")?, Duration::from_secs(60));
    /// assert_eq!(time("")?, Duration::from_secs(10));
    /// # Ok::<(), slurmconf::Error>(())
    /// ```
    #[must_use]
    pub fn message_timeout(&self) -> Duration {
        let said = self.get("MessageTimeout").and_then(whole).and_then(|it| u16::try_from(it).ok());
        Duration::from_secs(said.unwrap_or(10).into())
    }
}
