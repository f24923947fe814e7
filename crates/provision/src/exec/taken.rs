//! Whether slurmctld runs with the nodes that it was told of.

use hostlist::{Hostlist, NodeName};
use slurmconf::{Config, NodeDef, NodeState};
use slurmctl::{Controller, Node};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// The nodes that slurmctld is to run with.
///
/// ```
/// use provision::exec::Expected;
/// use slurmconf::Config;
///
/// let new = Config::parse("NodeName=n[1-2] State=CLOUD\n")?;
/// let expected = Expected::new(&new, ["n3".parse()?]);
/// # let _ = expected;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// Those that are always shown.
    fixed: Vec<Hostlist>,
    /// Those that may be hidden while they are powered down.
    elastic: Vec<Hostlist>,
    gone: BTreeSet<NodeName>,
}

/// How long slurmctld is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until it has the nodes.
    pub whole: Duration,
    /// Of that, how long it may say nothing at all.
    pub silence: Duration,
}

impl Patience {
    /// For one that has said that it reads its file. It may take ten seconds over each name of a node
    /// that nobody can resolve yet.
    pub const USUAL: Self =
        Self { whole: Duration::from_secs(90), silence: Duration::from_secs(40) };

    /// For one that did not answer: slurmctld before it reads its file waits for the programs that it
    /// has called, and those may be waiting for slurmctld.
    pub const LONG: Self = Self { whole: Duration::from_mins(4), silence: Duration::from_mins(2) };
}

impl Expected {
    /// The nodes of this configuration, and none of those that are gone.
    #[must_use]
    pub fn new(config: &Config, gone: impl IntoIterator<Item = NodeName>) -> Self {
        let of = |wanted: fn(&NodeDef) -> bool| -> Vec<Hostlist> {
            config.nodes.iter().filter(|def| wanted(def)).map(|def| def.names.clone()).collect()
        };
        Self {
            fixed: of(|def| !def.is_cloud() && def.state != Some(NodeState::Future)),
            elastic: of(NodeDef::is_cloud),
            gone: gone.into_iter().collect(),
        }
    }

    /// True once slurmctld answers with these nodes, twice: it says that it has taken a file before it
    /// reads it, and ends if the file is no good.
    pub async fn runs(&self, slurm: &dyn Controller, patience: Patience) -> bool {
        let until = Instant::now() + patience.whole;
        let mut good = 0;
        let mut answered = Instant::now();
        while good < 2 && Instant::now() < until && answered.elapsed() < patience.silence {
            sleep(PAUSE).await;
            let Ok(nodes) = slurm.nodes(None).await else {
                good = 0;
                continue;
            };
            answered = Instant::now();
            let hides = slurm.version().needs_cloud_parameters();
            let fits = self.fits(&nodes, hides) && slurm.ping().await.unwrap_or(false);
            good = if fits { good + 1 } else { 0 };
        }
        good == 2
    }

    /// True if nothing that slurmctld shows speaks against it. One before 23.11 `hides` elastic nodes
    /// while they are powered down, unless it is told not to: then others in that state are shown.
    fn fits(&self, shown: &[Node], hides: bool) -> bool {
        let names: BTreeSet<&str> = shown.iter().map(|node| node.name.as_str()).collect();
        let asleep = |node: &Node| node.state.is_cloud() && node.state.is_powered_down();
        let all = !hides || shown.iter().any(asleep);
        let there = |list: &Hostlist| list.iter().all(|name| names.contains(name.as_str()));
        self.fixed.iter().all(there)
            && (!all || self.elastic.iter().all(there))
            && !self.gone.iter().any(|name| names.contains(name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmctl::memory::{MemorySlurm, NodeSpec, Settings};

    #[tokio::test(start_paused = true)]
    async fn one_that_comes_to_answer_late_has_taken_the_file() {
        let slurm = MemorySlurm::new(Settings::cloud(&"n1".parse().unwrap()));
        let new = Config::parse("NodeName=n[1-2] State=CLOUD\n").unwrap();
        let expected = Expected::new(&new, []);
        assert!(!expected.runs(&slurm, Patience::LONG).await, "it has one node");
        slurm.set_unreachable(true);
        let begun = Instant::now();
        assert!(!expected.runs(&slurm, Patience::LONG).await, "it does not answer");
        assert!(begun.elapsed() < Patience::LONG.whole, "the dead are not waited for as long");
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
        assert!(none.fits(&shown(&["p1"]), true));
        assert!(!none.fits(&shown(&["p1"]), false), "nothing is hidden here");
        assert!(!none.fits(&shown(&["n1"]), true), "a node that is always there is missing");
        assert!(!gone.fits(&shown(&["p1", "n4"]), true));
        assert!(gone.fits(&shown(&["p1", "n1", "n2", "n3"]), false));
    }
}
