//! Records of nodes.

use crate::time::is_ahead;
use cloud_core::{InstanceId, LaunchToken};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// Time for which an instance counts as terminating after a terminate request.
pub(crate) const LEAVING: Duration = Duration::from_mins(3);

/// Maximum number of earlier terminated instances in a record.
const MOST_TERMINATED: usize = 8;

/// The last requests to the cloud for a node, written before they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The generation of the launch, which is part of the launch token.
    #[serde(default)]
    pub generation: u32,
    /// The last launch, until its instance is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// The last instance that was terminated. Listings may show it running for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<String>,
    /// Time of the terminate request, in milliseconds since 1970.
    #[serde(default)]
    pub terminated_at: u64,
    /// Earlier terminated instances and their times, because a listing may lag by several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub terminated_before: Vec<(String, u64)>,
    /// The last instance whose image the cloud refused to replace in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
}

/// A launch request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Time of the request, in milliseconds since 1970.
    at: u64,
    /// The instance; none while there is no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The launch token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl Launch {
    /// Creates the record of a launch that is about to be requested.
    #[must_use]
    pub fn asked(at: SystemTime) -> Self {
        Self { at: millis(at), id: None, token: None }
    }

    /// Sets the launch token.
    #[must_use]
    pub(crate) fn with_token(mut self, token: Option<&LaunchToken>) -> Self {
        self.token = token.map(|token| token.as_str().to_owned());
        self
    }

    /// Adds the instance from the response.
    #[must_use]
    pub fn answered(at: SystemTime, id: &InstanceId) -> Self {
        Self { at: millis(at), id: Some(id.as_str().to_owned()), token: None }
    }

    /// The launch token, if there is no response yet.
    #[must_use]
    pub(crate) fn open_token(&self) -> Option<&str> {
        self.token.as_deref().filter(|_| self.id.is_none())
    }

    /// The instance, if there was a response.
    #[must_use]
    pub fn id(&self) -> Option<InstanceId> {
        self.id.as_ref().map(InstanceId::new)
    }

    /// Time since the request.
    #[must_use]
    pub(crate) fn age(&self, now: SystemTime) -> Duration {
        Duration::from_millis(millis(now).saturating_sub(self.at))
    }
}

impl NodeRecord {
    /// Serializes the record as one line.
    #[must_use]
    pub(crate) fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses the first line. An unreadable record counts as empty.
    #[must_use]
    pub(crate) fn from_line(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_default()
    }

    /// The instance of the last launch, as far as it is known.
    #[must_use]
    pub(crate) fn instance(&self) -> Option<InstanceId> {
        self.launch.as_ref().and_then(Launch::id)
    }

    /// The last instance whose image the cloud refused to replace in place.
    #[must_use]
    pub(crate) fn fixed_instance(&self) -> Option<InstanceId> {
        self.fixed.as_ref().map(InstanceId::new)
    }

    /// True if the outcome of a launch request is unknown.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.launch.is_some()
    }

    /// True if this instance was terminated recently. Later, the listing counts again.
    #[must_use]
    pub(crate) fn is_terminated(&self, id: &InstanceId, now: SystemTime) -> bool {
        self.recently_terminated(now).any(|terminated| terminated == id.as_str())
    }

    /// The instances that were terminated recently.
    pub(crate) fn recently_terminated(&self, now: SystemTime) -> impl Iterator<Item = &str> {
        let last = self.terminated.iter().map(|id| (id, self.terminated_at));
        let before = self.terminated_before.iter().map(|(id, at)| (id, *at));
        let recent = move |at: u64| {
            let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(at));
            let age = |at: SystemTime| now.duration_since(at).unwrap_or_default();
            at.is_some_and(|at| !is_ahead(at, now) && age(at) < LEAVING)
        };
        last.chain(before).filter(move |(_, at)| recent(*at)).map(|(id, _)| id.as_str())
    }

    /// Forgets a launch whose instance was terminated, so that the next launch gets a new token.
    pub fn terminate(&mut self, id: &InstanceId, now: SystemTime) {
        self.forget(id);
        if let Some(last) = self.terminated.replace(id.as_str().to_owned())
            && last != id.as_str()
        {
            self.terminated_before.insert(0, (last, self.terminated_at));
            self.terminated_before.truncate(MOST_TERMINATED);
        }
        self.terminated_at = millis(now);
    }

    /// Skips used tokens, so that the next launch is not a repeat.
    ///
    /// If the record is lost, generation 0 is used already. The next generation comes from the clock, so that the number of
    /// attempts does not grow with the number of launches: first the current ten minutes, during which a repeated launch
    /// without the record gets the same token, then the minute, then the second.
    pub(crate) fn skip_generation(&mut self, now: SystemTime) {
        let seconds = millis(now) / 1000;
        let of_clock = [600, 60, 1].map(|unit| u32::try_from(seconds / unit).unwrap_or(u32::MAX));
        let later = of_clock.into_iter().find(|generation| *generation > self.generation);
        self.generation = later.unwrap_or_else(|| self.generation.wrapping_add(1));
        self.launch = None;
    }

    /// Forgets a launch whose instance does not exist or lost its tags, so that the next launch gets a new token.
    ///
    /// A launch without a response, or with another instance, is kept.
    pub(crate) fn forget(&mut self, id: &InstanceId) {
        let made = self.launch.as_ref().map(Launch::id);
        match made {
            None => {}
            Some(Some(made)) if made == *id => self.launch = None,
            Some(_) => return,
        }
        self.generation = self.generation.wrapping_add(1);
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_an_empty_record() {
        let record = NodeRecord { generation: 3, ..NodeRecord::default() };
        assert_eq!(NodeRecord::from_line(&record.to_line()), record);
        assert_eq!(NodeRecord::from_line("{\"gener"), NodeRecord::default());
    }

    #[test]
    fn a_clock_that_was_ahead_does_not_hide_an_instance_that_stayed() {
        let (one, year) = (InstanceId::new("i-1"), Duration::from_hours(365 * 24));
        let now = SystemTime::UNIX_EPOCH + year;
        let mut record = NodeRecord::default();
        record.terminate(&one, now + year);
        assert!(!record.is_terminated(&one, now));
        record.terminate(&one, now);
        assert!(record.is_terminated(&one, now));
        assert!(!record.is_terminated(&one, now + LEAVING));
    }

    #[test]
    fn the_end_of_one_instance_does_not_forget_the_open_launch_of_another() {
        let (one, two) = (InstanceId::new("i-1"), InstanceId::new("i-2"));
        let at = SystemTime::UNIX_EPOCH;
        let mut record = NodeRecord { launch: Some(Launch::asked(at)), ..NodeRecord::default() };
        record.terminate(&one, at);
        assert!(record.is_open(), "not answered");
        record.launch = Some(Launch::answered(at, &two));
        record.terminate(&one, at);
        assert_eq!(record.instance(), Some(two.clone()));
        assert_eq!(record.generation, 0, "the same launch");
        record.terminate(&two, at);
        assert!(!record.is_open());
        assert_eq!(record.generation, 1);
        record.terminate(&one, at);
        assert_eq!(record.generation, 2);
    }
}
