//! Settings of the cloud in memory.

use crate::{Capabilities, Image, ImageId, ImageName, Shape, ShapeName, Zone};
use std::time::Duration;

/// A random duration between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The minimum.
    pub least: Duration,
    /// The maximum.
    pub most: Duration,
}

impl Span {
    /// Creates a range from milliseconds.
    #[must_use]
    pub const fn millis(least: u64, most: u64) -> Self {
        Self { least: Duration::from_millis(least), most: Duration::from_millis(most) }
    }

    /// No duration.
    #[must_use]
    pub const fn zero() -> Self {
        Self::millis(0, 0)
    }

    pub(super) fn draw(self, random: &mut fastrand::Rng) -> Duration {
        let width = self.most.saturating_sub(self.least);
        self.least.saturating_add(width.mul_f64(random.f64()))
    }
}

/// The rate limit of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    /// The sustained rate per second.
    pub rate: f64,
    /// The burst.
    pub burst: f64,
}

/// Settings of a [`MemoryCloud`](super::MemoryCloud).
///
/// The default is a cloud with all capabilities, three zones, two shapes and two images, where
/// machines come up in about half a minute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryCloudSettings {
    /// The seed of all randomness.
    pub seed: u64,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// Maximum number of launches per request.
    pub batch: usize,
    /// The shapes, and the zones that offer them.
    pub shapes: Vec<Shape>,
    /// The images.
    pub images: Vec<Image>,
    /// Latency of a request.
    pub latency: Span,
    /// Time from the launch to running, or to a late failure.
    pub boot: Span,
    /// Time from running to an address.
    pub address: Span,
    /// True if listings have addresses; otherwise they need a request, as with OCI.
    pub shows_addresses: bool,
    /// Time from terminating to terminated.
    pub terminate: Span,
    /// Duration of a reboot, a rebuild, a start or a snapshot.
    pub work: Span,
    /// Time for which a terminated instance is still listed.
    pub linger: Duration,
    /// Lag of listings.
    pub lag: Duration,
    /// True if each page of a listing lags by a random time up to `lag`, and is in no order: a later listing may show an
    /// earlier time.
    pub reorders: bool,
    /// Maximum number of instances per page of a listing. Each page is a request.
    pub page: usize,
    /// Maximum number of instances.
    pub quota: Option<u32>,
    /// The rate limit, if any.
    pub throttle: Option<Throttle>,
    /// Lifetime of a launch token.
    pub token_life: Duration,
    /// True if a launch without capacity is accepted and fails later, as with Nova.
    pub late_capacity: bool,
}

impl Default for MemoryCloudSettings {
    fn default() -> Self {
        let zones = ["zone-1", "zone-2", "zone-3"].map(Zone::new).to_vec();
        let mut small = Shape::new(ShapeName::new("small"), 2, 15_000);
        small.zones.clone_from(&zones);
        let mut flex = Shape::new(ShapeName::new("flex"), 2, 1_000);
        flex.flexible = true;
        flex.zones = zones;
        let image = |id, name| Image::new(ImageId::new(id), ImageName::new(name));
        Self {
            seed: 0,
            capabilities: Capabilities::all(),
            batch: 1,
            shapes: vec![small, flex],
            images: vec![image("image-1", "compute-v1"), image("image-2", "compute-v2")],
            latency: Span::millis(20, 80),
            boot: Span::millis(20_000, 40_000),
            address: Span::millis(500, 3_000),
            shows_addresses: true,
            terminate: Span::millis(5_000, 15_000),
            work: Span::millis(10_000, 20_000),
            linger: Duration::from_hours(1),
            lag: Duration::from_secs(2),
            reorders: false,
            page: 100,
            quota: None,
            throttle: None,
            token_life: Duration::from_hours(24),
            late_capacity: false,
        }
    }
}
