//! Machines that are kept warm: which may be stopped, and which of those may be started again.

use cloud_core::{ImageId, Instance, InstanceState};
use fastrand::Rng;
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// The nodes whose machines are kept, and the image that the site wants, since when.
#[derive(Clone, Debug)]
pub(crate) struct Warm {
    nodes: BTreeSet<NodeName>,
    images: BTreeMap<Instant, ImageId>,
}

impl Warm {
    /// Every other cluster keeps machines of its first nodes; in every other of those the image changes once.
    pub(crate) fn draw(rng: &mut Rng, nodes: &[NodeName], begun: Instant) -> Self {
        let kept = if rng.bool() { rng.usize(1..=nodes.len()) } else { 0 };
        let mut images = BTreeMap::from([(begun, ImageId::new("image-1"))]);
        if kept > 0 && rng.bool() {
            images.insert(begun + Duration::from_secs(rng.u64(120..900)), ImageId::new("image-2"));
        }
        Self { nodes: nodes.iter().take(kept).cloned().collect(), images }
    }

    /// The nodes' lines of slurm.conf; with `all`, every machine is kept.
    pub(crate) fn lines(&self, nodes: &[NodeName], features: &str, all: bool) -> String {
        let line = |node: &NodeName| {
            let warm = if all || self.nodes.contains(node) { ",warm" } else { "" };
            format!("NodeName={node} State=CLOUD CPUs=2 Features={features}{warm}\n")
        };
        nodes.iter().map(line).collect()
    }

    /// The image that a program which begins now is to use.
    pub(crate) fn image(&self) -> ImageId {
        let now = Instant::now();
        let mut since = self.images.range(..=now);
        since.next_back().map_or_else(|| ImageId::new("image-1"), |(_, image)| image.clone())
    }

    /// True if machines are kept at all.
    pub(crate) fn is_any(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// True if the image that the site wants has yet to change.
    pub(crate) fn changes(&self) -> bool {
        self.images.last_key_value().is_some_and(|(at, _)| *at > Instant::now())
    }

    /// True if the instance's node is one whose machine is kept.
    pub(crate) fn has(&self, instance: &Instance) -> bool {
        let node = instance.tags.get("node").unwrap_or_default();
        self.nodes.iter().any(|kept| kept.as_str() == node)
    }

    /// True for a stopped machine that the next start of its node may use.
    pub(crate) fn keeps(&self, instance: &Instance) -> bool {
        let off = matches!(instance.state, InstanceState::Stopping | InstanceState::Stopped);
        off && self.has(instance) && instance.image == Some(self.image())
    }
}
