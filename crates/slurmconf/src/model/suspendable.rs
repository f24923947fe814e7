//! Which nodes slurmctld suspends when they are idle.

use super::{Config, PartitionDef, SuspendTime};
use crate::version::SlurmVersion;
use hostlist::Hostlist;

impl Config {
    /// The nodes that a slurmctld of this version suspends when they are idle, elastic or not.
    ///
    /// Nodes of `SuspendExcNodes` and `SuspendExcParts` are excluded; nodes with a count after a colon may be suspended.
    /// A node's own `SuspendTime` counts, or else the longest of its partitions, or else the cluster's.
    #[must_use]
    pub fn suspendable(&self, nodes: &Hostlist, version: SlurmVersion) -> Hostlist {
        if !self.has_power_saving() {
            return Hostlist::new();
        }
        let excluded = self.excluded(version);
        let own = |partition: &PartitionDef| {
            Some((self.partition_nodes(partition), partition.suspend_time?))
        };
        let own: Vec<(Hostlist, SuspendTime)> = self.partitions.iter().filter_map(own).collect();
        let alone: Vec<(&Hostlist, SuspendTime)> =
            self.nodes.iter().filter_map(|def| Some((&def.names, def.suspend_time?))).collect();
        let is_stopped = |node: &String| {
            if let Some((_, time)) = alone.iter().find(|(names, _)| names.contains(node)) {
                return *time != SuspendTime::Never;
            }
            let mut times = own.iter().filter(|(nodes, _)| nodes.contains(node)).peekable();
            let whole = times.peek().is_none().then_some(self.power.suspend_time);
            let mut times = times.map(|(_, time)| *time).chain(whole);
            times.all(|time| time != SuspendTime::Never)
        };
        nodes.difference(&excluded).iter().filter(is_stopped).collect()
    }

    /// The nodes that a value of `SuspendExcNodes` excludes for certain: those without a count.
    #[must_use]
    pub fn suspend_exclusions(&self, value: &str, version: SlurmVersion) -> Hostlist {
        if version.excludes_item_by_item() {
            let names: Hostlist = value.parse().unwrap_or_default();
            return self.resolved(names.iter().filter(|word| !word.contains(':')));
        }
        let after_counts = match value.rsplit_once(':') {
            Some((_, count)) => count.split_once(',').unwrap_or_default().1,
            None => value,
        };
        after_counts.parse().unwrap_or_default()
    }

    /// The nodes of `SuspendExcNodes` and `SuspendExcParts`.
    fn excluded(&self, version: SlurmVersion) -> Hostlist {
        let value = self.power.suspend_exc_nodes.as_deref().unwrap_or_default();
        let mut excluded = self.suspend_exclusions(value, version);
        let is_spared =
            |partition: &&PartitionDef| self.power.suspend_exc_parts.contains(&partition.name);
        for partition in self.partitions.iter().filter(is_spared) {
            excluded.append(&self.partition_nodes(partition));
        }
        excluded
    }
}
