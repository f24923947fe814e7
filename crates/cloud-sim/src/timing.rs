//! How long things take.

use serde::{Deserialize, Serialize};

/// How long things take, in seconds on the cloud's clock; infinity for what never happens.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    /// From launch until the VNIC is ATTACHED; from the middle of it on it is seen ATTACHING.
    pub vnic: f64,
    /// From launch to RUNNING.
    pub provision: f64,
    /// From STARTING to RUNNING.
    pub start: f64,
    /// From STOPPING to STOPPED.
    pub stop: f64,
    /// From TERMINATING to TERMINATED.
    pub terminate: f64,
    /// From a launch that will fail to its failure.
    pub fail: f64,
    /// Until a new image is AVAILABLE.
    pub image: f64,
    /// How long a TERMINATED instance is still listed.
    pub keep_terminated: f64,
    /// How long a retry token is remembered.
    pub keep_token: f64,
    /// How long a work request that has ended can be read.
    pub keep_work: f64,
}

/// Seconds that are as good as for ever, and still a number in JSON.
const NEVER: f64 = 1e12;

impl Timing {
    /// With all that is too long as never; the name and value of what is no time at all, if any is.
    pub(crate) fn checked(mut self) -> Result<Self, (&'static str, f64)> {
        let all = [
            ("vnic", &mut self.vnic),
            ("provision", &mut self.provision),
            ("start", &mut self.start),
            ("stop", &mut self.stop),
            ("terminate", &mut self.terminate),
            ("fail", &mut self.fail),
            ("image", &mut self.image),
            ("keep_terminated", &mut self.keep_terminated),
            ("keep_token", &mut self.keep_token),
            ("keep_work", &mut self.keep_work),
        ];
        for (name, value) in all {
            if value.is_nan() || *value < 0.0 {
                return Err((name, *value));
            }
            *value = value.min(NEVER);
        }
        Ok(self)
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            vnic: 2.0,
            provision: 10.0,
            start: 5.0,
            stop: 5.0,
            terminate: 5.0,
            fail: 3.0,
            image: 10.0,
            keep_terminated: 3600.0,
            keep_token: 24.0 * 3600.0,
            keep_work: 24.0 * 3600.0,
        }
    }
}
