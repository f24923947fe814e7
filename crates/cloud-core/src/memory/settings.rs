//! What a cloud in memory is like.

use crate::{Capabilities, Image, ImageId, ImageName, Shape, ShapeName, Zone};
use std::time::Duration;

/// How long something takes: between two times, as the seed has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// At least this.
    pub least: Duration,
    /// At most this.
    pub most: Duration,
}

impl Span {
    /// Between so many milliseconds and so many.
    #[must_use]
    pub const fn millis(least: u64, most: u64) -> Self {
        Self { least: Duration::from_millis(least), most: Duration::from_millis(most) }
    }

    /// No time at all.
    #[must_use]
    pub const fn zero() -> Self {
        Self::millis(0, 0)
    }

    pub(super) fn draw(self, random: &mut fastrand::Rng) -> Duration {
        let width = self.most.saturating_sub(self.least);
        self.least.saturating_add(width.mul_f64(random.f64()))
    }
}

/// How many requests are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    /// In the long run, per second.
    pub rate: f64,
    /// At once, after a rest.
    pub burst: f64,
}

/// What a [`MemoryCloud`](super::MemoryCloud) is like.
///
/// The default is a cloud with all capabilities, three zones, two shapes and two images, where
/// machines come up in about half a minute.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemoryCloudSettings {
    /// Where all that is left to chance comes from.
    pub seed: u64,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Most launches in one request.
    pub batch: usize,
    /// The shapes on offer, and in which zones.
    pub shapes: Vec<Shape>,
    /// The images there are.
    pub images: Vec<Image>,
    /// From one end of a request to the other.
    pub latency: Span,
    /// From the launch to running, or to a late failure.
    pub boot: Span,
    /// From running to an address.
    pub address: Span,
    /// Instances are shown with their addresses; else these have to be asked for, as with OCI.
    pub shows_addresses: bool,
    /// From terminating to terminated.
    pub terminate: Span,
    /// How long a reboot, a rebuild, a start or a snapshot takes.
    pub work: Span,
    /// How long a terminated instance is still shown.
    pub linger: Duration,
    /// How far listings are behind.
    pub lag: Duration,
    /// Most instances on one page of a listing; each page is a request.
    pub page: usize,
    /// Most instances at a time.
    pub quota: Option<u32>,
    /// How many requests are taken, if not all.
    pub throttle: Option<Throttle>,
    /// How long a launch token is remembered.
    pub token_life: Duration,
    /// A launch without capacity is accepted and fails later, as with Nova.
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
            page: 100,
            quota: None,
            throttle: None,
            token_life: Duration::from_hours(24),
            late_capacity: false,
        }
    }
}
