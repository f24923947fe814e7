//! The configuration that slurmctld runs with.

use std::{collections::BTreeMap, time::Duration};

/// The configuration that slurmctld runs with, as `scontrol show config` prints it.
///
/// ```
/// use slurmctl::ControllerConfig;
/// use std::time::Duration;
///
/// let config = ControllerConfig::parse("ResumeTimeout           = 300 sec\nSuspendTime = NONE\n");
/// assert_eq!(config.resume_timeout(), Some(Duration::from_secs(300)));
/// assert_eq!(config.suspend_time(), None);
/// assert_eq!(config.get("suspendtime"), Some("NONE"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerConfig(BTreeMap<String, String>);

impl ControllerConfig {
    /// Reads any text; lines that are not `name = value` are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pair = |line: &str| {
            let (name, value) = line.split_once('=')?;
            let name = name.trim();
            let word = !name.is_empty() && !name.contains(char::is_whitespace);
            word.then(|| (name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Self(text.lines().filter_map(pair).collect())
    }

    /// The value of a parameter, the case of its name ignored.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(&name.to_ascii_lowercase())?;
        (value != "(null)").then_some(value)
    }

    /// `ResumeTimeout`: how long a node may take to register; `None` is no limit.
    ///
    /// A [`Controller`](crate::Controller) returns an error instead of a configuration that lacks a time.
    #[must_use]
    pub fn resume_timeout(&self) -> Option<Duration> {
        self.seconds("ResumeTimeout")
    }

    /// `SuspendTime`: how long a node is idle before it is powered down; `None` is for ever.
    #[must_use]
    pub fn suspend_time(&self) -> Option<Duration> {
        self.seconds("SuspendTime")
    }

    /// The name of a time that is missing or cannot be read. That is not the same as no limit.
    pub(crate) fn unreadable(&self) -> Option<&'static str> {
        let readable = |name: &str| {
            let endless = ["NONE", "INFINITE", "UNLIMITED"];
            let word = self.get(name).and_then(|value| value.split_whitespace().next());
            self.seconds(name).is_some()
                || word.is_some_and(|word| endless.iter().any(|end| word.eq_ignore_ascii_case(end)))
        };
        ["ResumeTimeout", "SuspendTimeout", "SuspendTime"].into_iter().find(|name| !readable(name))
    }

    fn seconds(&self, name: &str) -> Option<Duration> {
        let number = self.get(name)?.split_whitespace().next()?;
        number.parse().ok().map(Duration::from_secs)
    }
}

impl<K: AsRef<str>, V: Into<String>> FromIterator<(K, V)> for ControllerConfig {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let lower = |(name, value): (K, V)| (name.as_ref().to_ascii_lowercase(), value.into());
        Self(pairs.into_iter().map(lower).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_missing_is_not_one_without_end() {
        let text = |time: &str| {
            format!("ResumeTimeout = {time}\nSuspendTimeout = 30 sec\nSuspendTime = INFINITE\n")
        };
        for time in ["60 sec", "NONE", "INFINITE", "UNLIMITED"] {
            assert_eq!(ControllerConfig::parse(&text(time)).unreadable(), None, "{time}");
        }
        for time in ["", "(null)", "soon", "-1 sec"] {
            let config = ControllerConfig::parse(&text(time));
            assert_eq!(config.unreadable(), Some("ResumeTimeout"), "{time}");
        }
        let cut = ControllerConfig::parse("ResumeTimeout = 60 sec\nSuspendTimeo");
        assert_eq!(cut.unreadable(), Some("SuspendTimeout"));
        assert_eq!(ControllerConfig::parse("").unreadable(), Some("ResumeTimeout"));
    }
}
