//! Which nodes slurmctld stops when they are idle.

use super::{Config, PartitionDef, SuspendTime};
use crate::version::SlurmVersion;
use hostlist::Hostlist;

impl Config {
    /// Those of the nodes that an slurmctld of this version stops when they are idle, elastic or not.
    ///
    /// It stops none without the programs for it, none that `SuspendExcNodes` or a partition of `SuspendExcParts` has,
    /// and none that is never idle for long enough: its own `SuspendTime` counts, or of several partitions with one the
    /// longest. Nodes with a count after a colon are not surely spared, and count as stopped.
    ///
    /// ```
    /// use slurmconf::{Config, SlurmVersion};
    ///
    /// let config = Config::parse(
    ///     "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=600\nSuspendExcNodes=n1,n[2-3]:1\nSuspendExcParts=kept\n\
    ///      NodeName=n[1-6]\nPartitionName=all Nodes=ALL\nPartitionName=kept Nodes=n4\n\
    ///      PartitionName=always Nodes=n5 SuspendTime=INFINITE\n",
    /// )?;
    /// let stopped = |version| config.suspendable(&"n[1-6]".parse().unwrap_or_default(), version).to_string();
    /// assert_eq!(stopped(SlurmVersion::new(23, 11)), "n[2-3,6]");
    /// // The count is one of all that stand before it.
    /// assert_eq!(stopped(SlurmVersion::new(22, 5)), "n[1-3,6]");
    /// # Ok::<(), slurmconf::Error>(())
    /// ```
    #[must_use]
    pub fn suspendable(&self, nodes: &Hostlist, version: SlurmVersion) -> Hostlist {
        if !self.has_power_saving() {
            return Hostlist::new();
        }
        let spared = self.spared(version);
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
        nodes.difference(&spared).iter().filter(is_stopped).collect()
    }

    /// The nodes that an slurmctld of this version surely spares for this `SuspendExcNodes`; those with a count it may stop.
    ///
    /// ```
    /// use slurmconf::{Config, SlurmVersion};
    ///
    /// let config = Config::parse("NodeName=n[1-2] Features=big\nNodeName=n3\nNodeSet=large Feature=big\n")?;
    /// let excluded = |said, version| config.suspend_exclusions(said, version).to_string();
    /// assert_eq!(excluded("large,n3:1", SlurmVersion::new(23, 11)), "n[1-2]");
    /// assert_eq!(excluded("n1,n2:1,n3", SlurmVersion::new(22, 5)), "n3");
    /// # Ok::<(), slurmconf::Error>(())
    /// ```
    #[must_use]
    pub fn suspend_exclusions(&self, said: &str, version: SlurmVersion) -> Hostlist {
        if version.excludes_item_by_item() {
            let words: Hostlist = said.parse().unwrap_or_default();
            return self.resolved(words.iter().filter(|word| !word.contains(':')));
        }
        let after_counts = match said.rsplit_once(':') {
            Some((_, count)) => count.split_once(',').unwrap_or_default().1,
            None => said,
        };
        after_counts.parse().unwrap_or_default()
    }

    /// What `SuspendExcNodes` and `SuspendExcParts` name.
    fn spared(&self, version: SlurmVersion) -> Hostlist {
        let said = self.power.suspend_exc_nodes.as_deref().unwrap_or_default();
        let mut spared = self.suspend_exclusions(said, version);
        let is_spared =
            |partition: &&PartitionDef| self.power.suspend_exc_parts.contains(&partition.name);
        for partition in self.partitions.iter().filter(is_spared) {
            spared.append(&self.partition_nodes(partition));
        }
        spared
    }
}
