//! What is learned about the pace that a cloud takes, as values to keep.

use std::time::Duration;

/// How many requests are under way at first where nothing is known.
pub(super) const FIRST_WINDOW: f64 = 4.0;

/// How long an experience counts, less and less.
const LIFE: Duration = Duration::from_hours(1);

/// What is known about both lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Experience {
    /// Requests that change something.
    pub writes: LaneExperience,
    /// Requests that look.
    pub reads: LaneExperience,
}

/// What is known about one lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneExperience {
    /// How many requests under way at a time the cloud has taken.
    pub window: f64,
    /// Requests per second that it takes, if it has refused more.
    pub limit: Option<f64>,
}

impl Default for LaneExperience {
    fn default() -> Self {
        Self { window: FIRST_WINDOW, limit: None }
    }
}

impl LaneExperience {
    /// What is left of it after this time: a limit may be another by then, and so may what a cloud takes at once. After an
    /// hour nothing is left.
    ///
    /// ```
    /// use cloud_core::pace::LaneExperience;
    /// use std::time::Duration;
    ///
    /// let known = LaneExperience { window: 32.0, limit: Some(20.0) };
    /// let later = known.after(Duration::from_mins(30));
    /// assert_eq!(later, LaneExperience { window: 18.0, limit: Some(40.0) });
    /// assert_eq!(known.after(Duration::from_mins(60)), LaneExperience::default());
    /// ```
    #[must_use]
    pub fn after(self, age: Duration) -> Self {
        let trust = 1.0 - age.as_secs_f64() / LIFE.as_secs_f64();
        if trust <= 0.0 || !self.window.is_finite() {
            return Self::default();
        }
        let window = FIRST_WINDOW + (self.window - FIRST_WINDOW) * trust;
        let limit = self.limit.filter(|limit| limit.is_finite() && *limit > 0.0);
        Self { window, limit: limit.map(|limit| limit / trust) }
    }
}
