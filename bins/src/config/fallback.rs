//! Fallback places for nodes whose own shape and zone have no capacity.

use serde::Deserialize;

/// A fallback place: another shape, another zone, or both.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Fallback {
    /// The shape; by default, the node's own.
    pub shape: Option<String>,
    /// The zone; by default, the node's own. On OCI, a number is that of an availability domain.
    #[serde(alias = "ad")]
    pub zone: Option<String>,
    /// True for preemptible machines, false for others; by default, as the node's own.
    pub preemptible: Option<bool>,
}
