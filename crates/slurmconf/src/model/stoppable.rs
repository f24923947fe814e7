//! Which nodes slurmctld stops when they are idle.

use super::{Config, PartitionDef, SuspendTime};
use hostlist::Hostlist;

impl Config {
    /// Those of the nodes that slurmctld stops when they are idle, elastic or not.
    ///
    /// It stops none without the programs for it, none that `SuspendExcNodes` or a partition of `SuspendExcParts` has,
    /// and none that is never idle for long enough: of several partitions with a `SuspendTime`, the longest counts. Nodes
    /// with a count after a colon are not surely spared, and count as stopped.
    ///
    /// ```
    /// use slurmconf::Config;
    ///
    /// let config = Config::parse(
    ///     "SuspendProgram=/s\nResumeProgram=/r\nSuspendTime=600\nSuspendExcNodes=n1,n[2-3]:1\nSuspendExcParts=kept\n\
    ///      NodeName=n[1-6]\nPartitionName=all Nodes=ALL\nPartitionName=kept Nodes=n4\n\
    ///      PartitionName=always Nodes=n5 SuspendTime=INFINITE\n",
    /// )?;
    /// let stopped = config.stoppable(&"n[1-6]".parse().unwrap_or_default());
    /// assert_eq!(stopped.to_string(), "n[2-3,6]");
    /// # Ok::<(), slurmconf::Error>(())
    /// ```
    #[must_use]
    pub fn stoppable(&self, nodes: &Hostlist) -> Hostlist {
        if !self.powers_nodes() {
            return Hostlist::new();
        }
        let spared = self.spared();
        let own = |partition: &PartitionDef| {
            Some((self.partition_nodes(partition), partition.suspend_time?))
        };
        let own: Vec<(Hostlist, SuspendTime)> = self.partitions.iter().filter_map(own).collect();
        let is_stopped = |node: &String| {
            let mut times = own.iter().filter(|(nodes, _)| nodes.contains(node)).peekable();
            let whole = times.peek().is_none().then_some(self.power.suspend_time);
            let mut times = times.map(|(_, time)| *time).chain(whole);
            times.all(|time| time != SuspendTime::Never)
        };
        nodes.difference(&spared).iter().filter(is_stopped).collect()
    }

    /// What `SuspendExcNodes` and `SuspendExcParts` name.
    fn spared(&self) -> Hostlist {
        let named = self.power.suspend_exc_nodes.as_deref().unwrap_or_default();
        // Names with a count are no names, and do no harm here.
        let mut spared: Hostlist = named.parse().unwrap_or_default();
        let is_spared =
            |partition: &&PartitionDef| self.power.suspend_exc_parts.contains(&partition.name);
        for partition in self.partitions.iter().filter(is_spared) {
            spared.append(&self.partition_nodes(partition));
        }
        spared
    }
}
