//! Verifies that slurmctld runs with the expected nodes.

use hostlist::{Hostlist, NodeName};
use slurmconf::{Config, ConfiguredState, NodeDef};
use slurmctl::{Controller, Error, ErrorKind, Node};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Interval between two observations.
const PAUSE: Duration = Duration::from_millis(500);

/// The nodes that slurmctld should run with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    /// Nodes that slurmctld always shows.
    fixed: Vec<Hostlist>,
    /// Nodes that slurmctld may hide while they are powered down.
    elastic: Vec<Hostlist>,
    gone: BTreeSet<NodeName>,
}

/// How long to wait for slurmctld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Total time until it has the nodes.
    pub(crate) total: Duration,
    /// Part of that during which it may not answer.
    pub(crate) silence: Duration,
}

impl Patience {
    /// For a slurmctld that has confirmed that it reads its file. Each unresolvable node name may take it ten seconds.
    pub(crate) const USUAL: Self =
        Self { total: Duration::from_secs(90), silence: Duration::from_secs(40) };

    /// For a slurmctld that did not answer: before it reads its file, it waits for the programs that it has called, which
    /// may be waiting for slurmctld.
    pub(crate) const LONG: Self =
        Self { total: Duration::from_mins(4), silence: Duration::from_mins(2) };
}

impl Expected {
    /// Expects the nodes of this configuration, and none of the removed ones.
    pub(crate) fn new(config: &Config, gone: impl IntoIterator<Item = NodeName>) -> Self {
        let of = |wanted: fn(&NodeDef) -> bool| -> Vec<Hostlist> {
            config.nodes.iter().filter(|def| wanted(def)).map(|def| def.names.clone()).collect()
        };
        Self {
            fixed: of(is_fixed),
            elastic: of(NodeDef::is_cloud),
            gone: gone.into_iter().collect(),
        }
    }

    /// Ignores the persistent nodes of the previous configuration: slurmctld leaves out nodes whose name it cannot resolve,
    /// with either file.
    pub(crate) fn but_for_kept(mut self, before: &Config) -> Self {
        let kept: Hostlist = before
            .nodes
            .iter()
            .filter(|def| is_fixed(def))
            .flat_map(|def| def.names.iter())
            .collect();
        for names in &mut self.fixed {
            *names = names.difference(&kept);
        }
        self
    }

    /// True once slurmctld has answered twice with these nodes: it confirms a file before it reads it, and exits if the
    /// file is invalid.
    pub(crate) async fn runs(&self, slurm: &dyn Controller, patience: Patience) -> bool {
        self.differing(slurm, patience).await.is_ok_and(|nodes| nodes.is_empty())
    }

    /// Waits until slurmctld has answered twice with these nodes. After the timeout, returns the nodes that differ, or an
    /// error if it does not answer.
    pub(crate) async fn differing(
        &self,
        slurm: &dyn Controller,
        patience: Patience,
    ) -> slurmctl::Result<Hostlist> {
        let until = Instant::now() + patience.total;
        let mut last = Err(Error::new(ErrorKind::Unavailable, "slurmctld"));
        let mut good = 0;
        let mut answered = Instant::now();
        while good < 2 && Instant::now() < until && answered.elapsed() < patience.silence {
            sleep(PAUSE).await;
            last = self.observe(slurm, &mut answered).await;
            good = if last.as_ref().is_ok_and(Hostlist::is_empty) { good + 1 } else { 0 };
        }
        match last {
            Ok(nodes) if nodes.is_empty() && good < 2 => {
                let only = "it has answered but once";
                Err(Error::new(ErrorKind::Unavailable, "slurmctld").because(only))
            }
            last => last,
        }
    }

    /// The nodes that differ in one observation of a slurmctld that has just answered.
    pub(crate) async fn differing_now(&self, slurm: &dyn Controller) -> slurmctl::Result<Hostlist> {
        self.observe(slurm, &mut Instant::now()).await
    }

    /// One observation.
    async fn observe(
        &self,
        slurm: &dyn Controller,
        answered: &mut Instant,
    ) -> slurmctl::Result<Hostlist> {
        let nodes = slurm.nodes(None).await?;
        *answered = Instant::now();
        let unlike = self.unlike(&nodes, slurm.version().needs_cloud_parameters());
        if unlike.is_empty() && !slurm.ping().await? {
            return Err(Error::new(ErrorKind::Unavailable, "scontrol ping").because("it is down"));
        }
        Ok(unlike)
    }

    /// The nodes that slurmctld lacks, or still has. With `hides`, powered-down elastic nodes are ignored: slurmctld before
    /// 23.11 hides them by default.
    fn unlike(&self, shown: &[Node], hides: bool) -> Hostlist {
        let names: BTreeSet<&str> = shown.iter().map(|node| node.name.as_str()).collect();
        let asleep = |node: &Node| node.state.is_cloud() && node.state.is_powered_down();
        let all = !hides || shown.iter().any(asleep);
        let elastic = self.elastic.iter().filter(|_| all);
        let wanted = self.fixed.iter().chain(elastic).flat_map(Hostlist::iter);
        let lacking = wanted.filter(|name| !names.contains(name.as_str()));
        let gone = self.gone.iter().map(NodeName::as_str).filter(|name| names.contains(name));
        lacking.chain(gone.map(str::to_owned)).collect()
    }
}

/// True for nodes that slurmctld always shows if it can resolve their names.
fn is_fixed(def: &NodeDef) -> bool {
    !def.is_cloud() && def.state != Some(ConfiguredState::Future)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmctl::memory::{MemorySlurm, MemorySlurmSettings, NodeSpec};

    #[tokio::test(start_paused = true)]
    async fn one_that_comes_to_answer_late_has_taken_the_file() {
        let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&"n1".parse().unwrap()));
        let new = Config::parse("NodeName=n[1-2] State=CLOUD\n").unwrap();
        let expected = Expected::new(&new, []);
        assert!(!expected.runs(&slurm, Patience::LONG).await, "it has one node");
        slurm.set_unreachable(true);
        let begun = Instant::now();
        assert!(!expected.runs(&slurm, Patience::LONG).await, "it does not answer");
        assert!(begun.elapsed() < Patience::LONG.total, "the dead are not waited for as long");
        slurm
            .set_conf_nodes(["n1", "n2"].map(|name| NodeSpec::cloud(name.parse().unwrap())).into());
        let late = async {
            sleep(Duration::from_mins(1)).await;
            slurm.set_unreachable(false);
            slurm.reconfigure().await.unwrap();
        };
        let (taken, ()) = tokio::join!(expected.runs(&slurm, Patience::LONG), late);
        assert!(taken);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_lacked_a_node_was_not_told_from_one_that_does_not_answer() {
        let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&"n[1-2]".parse().unwrap()));
        let new = Config::parse("NodeName=n[2-3] State=CLOUD\n").unwrap();
        let expected = Expected::new(&new, [NodeName::new("n1").unwrap()]);
        let differing = expected.differing(&slurm, Patience::USUAL).await.unwrap();
        assert_eq!(differing.to_string(), "n[3,1]", "lacked, and gone");
        slurm.set_unreachable(true);
        let error = expected.differing(&slurm, Patience::USUAL).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn an_old_slurmctld_that_hides_what_is_powered_down_has_taken_the_file() {
        let text = "NodeName=n[1-3] State=CLOUD\nNodeName=p1\nNodeName=nonesuch State=FUTURE\n";
        let config = Config::parse(text).unwrap();
        let none = Expected::new(&config, []);
        let gone = Expected::new(&config, [NodeName::new("n4").unwrap()]);
        let shown = |names: &[&str]| -> Vec<Node> {
            let state: slurmctl::NodeState = "IDLE".parse().unwrap();
            names
                .iter()
                .map(|name| Node::new(NodeName::new(name).unwrap(), state.clone()))
                .collect()
        };
        let unlike = |expected: &Expected, names: &[&str], hides| {
            expected.unlike(&shown(names), hides).to_string()
        };
        assert_eq!(unlike(&none, &["p1"], true), "");
        assert_eq!(unlike(&none, &["p1"], false), "n[1-3]", "nothing is hidden here");
        assert_eq!(unlike(&none, &["n1"], true), "p1", "it is always there");
        assert_eq!(unlike(&gone, &["p1", "n4"], true), "n4");
        assert_eq!(unlike(&gone, &["p1", "n1", "n2", "n3"], false), "");
    }

    #[test]
    fn a_file_was_not_taken_for_a_node_that_nobody_could_look_up_before_either() {
        let before = Config::parse("NodeName=p[1-2]\nNodeName=n[1-2] State=CLOUD\n").unwrap();
        let after = Config::parse("NodeName=p[1-3],n1\nNodeName=n2 State=CLOUD\n").unwrap();
        let none = |expected: Expected| expected.unlike(&[], false).to_string();
        assert_eq!(none(Expected::new(&after, [])), "p[1-3],n[1-2]");
        let new = Expected::new(&after, []).but_for_kept(&before);
        assert_eq!(none(new), "n1,p3,n2", "new, or elastic before");
    }
}
