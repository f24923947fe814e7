//! The keys `budget` and `notify`.

use super::value::{amount, percent, secret};
use cloud_core::Secret;
use history::cost::{Budget, Price};
use provision::notice::Topic;
use serde::Deserialize;

/// Budget of a cluster.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct BudgetLimits {
    /// Limit for a day, in UTC.
    #[serde(deserialize_with = "amount")]
    pub per_day: Option<Price>,
    /// Limit for a month, in UTC.
    #[serde(deserialize_with = "amount")]
    pub per_month: Option<Price>,
    /// Percentage of a limit at which to warn.
    #[serde(deserialize_with = "percent")]
    pub warn_at: Option<u64>,
}

impl BudgetLimits {
    /// The budget; none if it has no limit.
    #[must_use]
    pub fn budget(self) -> Option<Budget> {
        let Self { per_day, per_month, warn_at } = self;
        let warn_at = warn_at.unwrap_or(Budget::default().warn_at);
        per_day.or(per_month).map(|_| Budget { per_day, per_month, warn_at })
    }
}

/// A webhook that gets notifications.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Notify {
    /// The address, which is secret: whoever knows it can post there.
    #[serde(deserialize_with = "secret")]
    pub webhook: Option<Secret<String>>,
    /// The topics to notify about.
    pub on: Vec<Topic>,
}

impl Default for Notify {
    fn default() -> Self {
        Self { webhook: None, on: Topic::ALL.to_vec() }
    }
}
