//! The clouds that a cluster can be in, as far as all of them are alike.

use crate::wait::PATIENCE;
use std::time::Duration;

/// A cloud.
pub trait TestCloud {
    /// The machines that are there, or on their way.
    fn present(&self) -> Vec<Machine>;

    /// How long something may take in it.
    fn patience(&self) -> Duration {
        PATIENCE
    }
}

/// A machine, as its cloud tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What the cloud calls it.
    pub id: String,
    /// The node that it is for.
    pub name: String,
    /// Its state, in the cloud's own word.
    pub state: String,
    /// Where it is.
    pub zone: String,
    /// Its address; empty if it has none yet.
    pub address: String,
    /// The id of its image.
    pub image: String,
}
