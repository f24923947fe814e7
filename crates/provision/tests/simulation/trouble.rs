//! What the cloud does wrong, until it is calm again.

use crate::simulation::env::{Env, FOREIGN};
use cloud_core::memory::{InjectedFault, Throttle};
use cloud_core::{ApiOperation, ErrorKind, ShapeName, Zone};
use fastrand::Rng;
use std::time::Duration;

/// Faults of the cloud, until it is calm again.
pub(crate) fn trouble(rng: &mut Rng, env: &Env) {
    let cloud = &env.cloud;
    let mut chance = |operation, trouble, most: f64| {
        if rng.bool() {
            cloud.inject_randomly(operation, trouble, rng.f64() * most);
        }
    };
    chance(None, InjectedFault::Refuse(ErrorKind::Throttled), 0.3);
    chance(None, InjectedFault::Refuse(ErrorKind::Unavailable), 0.3);
    chance(None, InjectedFault::LoseResponse, 0.2);
    chance(None, InjectedFault::LoseRequest, 0.2);
    chance(None, InjectedFault::Delay(Duration::from_secs(7)), 0.2);
    chance(Some(ApiOperation::Launch), InjectedFault::Refuse(ErrorKind::Capacity), 0.6);
    chance(Some(ApiOperation::Launch), InjectedFault::Refuse(ErrorKind::Quota), 0.3);
    chance(Some(ApiOperation::Launch), InjectedFault::FailLater(ErrorKind::Capacity), 0.5);
    chance(Some(ApiOperation::Launch), InjectedFault::FailLater(ErrorKind::Unavailable), 0.2);
    let foreign = u32::try_from(FOREIGN).unwrap();
    if rng.u8(0..4) == 0 {
        cloud.set_quota(Some(foreign + rng.u32(0..3)));
    }
    if rng.u8(0..4) == 0 {
        let zone = rng.bool().then(|| Zone::new("zone-1"));
        cloud.set_capacity(ShapeName::new("small"), zone, Some(foreign + rng.u32(0..3)));
        cloud.set_late_capacity(rng.bool());
    }
    if rng.u8(0..4) == 0 {
        cloud.set_throttle(Some(Throttle { rate: 2.0, burst: 3.0 }));
    }
}

/// The cloud is well again, and has room.
pub(crate) fn calm(env: &Env) {
    env.seen.calm();
    env.cloud.clear_faults();
    env.cloud.set_quota(None);
    env.cloud.set_throttle(None);
    env.cloud.set_late_capacity(false);
    for zone in [None, Some(Zone::new("zone-1"))] {
        env.cloud.set_capacity(ShapeName::new("small"), zone, None);
    }
}
