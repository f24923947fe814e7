//! What may be spent, and who is told.

use super::value::{amount, percent, secret};
use cloud_core::Secret;
use history::cost::{Budget, Price};
use provision::notice::Topic;
use serde::Deserialize;

/// What may be spent.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct BudgetLimits {
    /// In a day, in UTC.
    #[serde(deserialize_with = "amount")]
    pub per_day: Option<Price>,
    /// In a month, in UTC.
    #[serde(deserialize_with = "amount")]
    pub per_month: Option<Price>,
    /// From which hundredth of it on to warn.
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

/// Who is told of what.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Notify {
    /// Where to post; whoever knows the address may post there.
    #[serde(deserialize_with = "secret")]
    pub webhook: Option<Secret<String>>,
    /// About what.
    pub on: Vec<Topic>,
}

impl Default for Notify {
    fn default() -> Self {
        Self { webhook: None, on: Topic::ALL.to_vec() }
    }
}
