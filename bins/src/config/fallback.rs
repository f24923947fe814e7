//! Where else to launch when a node's own shape and zone have no capacity.

use serde::Deserialize;

/// One more place to try: another shape, another zone, or both.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Fallback {
    /// Another shape; else the node's own.
    pub shape: Option<String>,
    /// Another zone; else the node's own. On OCI a number is that of an availability domain.
    #[serde(alias = "ad")]
    pub zone: Option<String>,
    /// Machines that may be taken away at any time, or not; else as the node's own.
    pub preemptible: Option<bool>,
}
