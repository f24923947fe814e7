//! A start or a rebuild that could not begin: Slurm waits for the nodes, and learns that they will not come.
//!
//! Where the configuration cannot be read, or the cloud lets nobody in, the jobs of these nodes need not wait for
//! ResumeTimeout.

use crate::plan::Operation;
use crate::run::{Run, notify_not_rebuilt};
use crate::site::{Identity, Site};
use crate::state::{MemoryState, NodeRecord, State};
use crate::world::Roster;
use crate::{Cancel, Cause, Files, NodeReport, Report, Tools};
use cloud_core::Unreachable;
use hostlist::{Hostlist, NodeName};
use slurmconf::Config;
use slurmctl::{Controller, ErrorKind, NodeAction, Reason};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// How long a slurmctld that does not answer is tried: where its resume file is gone it is often being restarted, and back
/// within that time.
const SLURMCTLD_WAIT: Duration = Duration::from_mins(1);

/// The first pause between two tries; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Nodes that could not even begin to start, to be returned to Slurm.
#[derive(Debug)]
pub struct UnstartedNodes<'a> {
    /// The controller.
    pub slurm: &'a dyn Controller,
    /// The state, if the configuration says where it is: without it, whoever else is called for these nodes cannot read the
    /// configuration either.
    pub state: Option<&'a dyn State>,
    /// The nodes.
    pub nodes: &'a Hostlist,
    /// Why they did not start.
    pub reason: Reason,
    /// When we were called.
    pub begun: Instant,
}

impl UnstartedNodes<'_> {
    /// Returns those of the nodes that Slurm waits for, before the deadline: at least one try, and further ones while
    /// slurmctld does not answer. Gives the nodes that were returned.
    pub async fn return_to_slurm(&self, deadline: Instant) -> slurmctl::Result<Hostlist> {
        let until = deadline.min(Instant::now() + SLURMCTLD_WAIT);
        let (mut returned, mut pause) = (Hostlist::new(), FIRST_PAUSE);
        loop {
            let again = pause > FIRST_PAUSE;
            match self.try_once(again, &mut returned).await {
                Err(error)
                    if error.kind() == ErrorKind::Unavailable && Instant::now() + pause < until => {
                }
                done => return done.map(|()| returned),
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Tries it once, and notes which nodes it is tried for. They are looked at anew each time: what got no answer may have
    /// been done, and done twice it would hit the job that has the node by then.
    async fn try_once(&self, again: bool, returned: &mut Hostlist) -> slurmctl::Result<()> {
        let known = self.slurm.nodes(Some(self.nodes)).await?;
        let (mut waiting, mut theirs, mut locks) = (Hostlist::new(), Hostlist::new(), Vec::new());
        for node in known.iter().filter(|node| node.state.is_powering_up()) {
            let lock = self.state.filter(|_| again).map(|state| state.try_lock(&node.name));
            // A slurmctld that is back after a crash asks for its nodes anew, and then another startnode has them in hand, or
            // has launched their machines already.
            let is_theirs = match &lock {
                Some(Ok(Some(lock))) => self.launched_since(&lock.record()),
                Some(Ok(None)) => true,
                Some(Err(_)) | None => false,
            };
            if is_theirs {
                theirs.extend([&node.name]);
                continue;
            }
            locks.push(lock);
            waiting.extend([&node.name]);
        }
        *returned = returned.difference(&theirs);
        if waiting.is_empty() {
            return Ok(());
        }
        let new: Vec<String> = waiting.iter().filter(|name| !returned.contains(name)).collect();
        returned.extend(new);
        let done =
            self.slurm.set_state(&waiting, NodeAction::PowerDownForce, Some(&self.reason)).await;
        drop(locks);
        done
    }

    /// True if somebody has launched a machine for the node since we were called.
    fn launched_since(&self, record: &NodeRecord) -> bool {
        let age = record.launch.as_ref().map(|launch| launch.age(SystemTime::now()));
        age.is_some_and(|age| age < self.begun.elapsed())
    }
}

/// Tells Slurm why nodes are not rebuilt, without asking the cloud: it may be why. Gives what Slurm could not be told.
pub async fn report_not_rebuilt(
    slurm: &dyn Controller,
    config: &Config,
    names: &[NodeName],
    reason: &str,
) -> Vec<String> {
    let cloud = Unreachable::new(cloud_core::ErrorKind::Invalid, reason);
    let (state, files) = (MemoryState::new(), Files::default());
    let (site, roster) = (Site::new(Identity::by_name()), Roster::new(config));
    let run = Run {
        tools: Tools {
            cloud: &cloud,
            slurm,
            state: &state,
            clock: &SystemTime::now,
            progress: &(),
            files: &files,
            run: "",
            cancel: Cancel::never(),
        },
        site: &site,
        conf: &roster,
    };
    let failed = NodeReport::failed(Cause::Refused, reason);
    let mut report = Report::new(Operation::Rebuild);
    report.nodes.extend(names.iter().map(|name| (name.clone(), failed.clone())));
    notify_not_rebuilt(&run, &mut report).await;
    report.warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Launch, MemoryState};
    use hostlist::NodeName;
    use slurmctl::memory::{JobSpec, MemorySlurm, MemorySlurmSettings};

    const NODES: &str = "n[1-2]";

    /// A slurmctld that waits for both nodes.
    fn waiting() -> MemorySlurm {
        let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&NODES.parse().unwrap()));
        let _ = slurm.submit_job(JobSpec::new(2, Duration::from_mins(1)));
        assert_eq!(slurm.tick().len(), 1, "startnode is called");
        slurm
    }

    fn is_waited_for(slurm: &MemorySlurm, node: &str) -> bool {
        slurm.node(node).unwrap().state.is_powering_up()
    }

    async fn returned(slurm: &MemorySlurm, state: &MemoryState) -> slurmctl::Result<String> {
        let nodes: Hostlist = NODES.parse().unwrap();
        let reason = crate::plan::our_reason("no resume file");
        let begun = Instant::now();
        let nodes = UnstartedNodes { slurm, state: Some(state), nodes: &nodes, reason, begun };
        let deadline = begun + Duration::from_mins(10);
        nodes.return_to_slurm(deadline).await.map(|returned| returned.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_are_returned_to_a_slurmctld_that_is_being_restarted() {
        let (slurm, state) = (waiting(), MemoryState::new());
        slurm.set_unreachable(true);
        let back = slurm.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(25)).await;
            back.set_unreachable(false);
        });
        assert_eq!(returned(&slurm, &state).await.unwrap(), NODES);
        assert!(!is_waited_for(&slurm, "n1") && !is_waited_for(&slurm, "n2"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_slurmctld_is_given_up_after_a_while() {
        let (slurm, state) = (waiting(), MemoryState::new());
        slurm.set_unreachable(true);
        let begun = Instant::now();
        assert_eq!(returned(&slurm, &state).await.unwrap_err().kind(), ErrorKind::Unavailable);
        // The last try may begin at the very end, and has a timeout of its own.
        assert!(begun.elapsed() < 2 * SLURMCTLD_WAIT, "{:?}", begun.elapsed());
        assert!(begun.elapsed() > SLURMCTLD_WAIT / 4, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_done_without_an_answer_is_not_done_again_and_is_reported() {
        let (slurm, state) = (waiting(), MemoryState::new());
        let deaf = slurm.clone();
        tokio::spawn(async move {
            // Behind the look, which takes 20.
            sleep(Duration::from_millis(25)).await;
            deaf.lose_answers(1);
        });
        assert_eq!(returned(&slurm, &state).await.unwrap(), NODES);
        assert!(!is_waited_for(&slurm, "n1") && !is_waited_for(&slurm, "n2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_another_has_in_hand_by_then_is_left_to_it() {
        let (slurm, state) = (waiting(), MemoryState::new());
        let lock = state.try_lock(&NodeName::new("n1").unwrap()).unwrap();
        slurm.lose_answers(1);
        assert_eq!(returned(&slurm, &state).await.unwrap(), "n2");
        assert!(is_waited_for(&slurm, "n1"));
        drop(lock);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_another_has_launched_by_then_is_left_to_boot() {
        let (slurm, state) = (waiting(), MemoryState::new());
        slurm.lose_answers(1);
        let mut lock = state.try_lock(&NodeName::new("n1").unwrap()).unwrap().unwrap();
        let launch = Some(Launch::asked(SystemTime::now()));
        lock.keep(&NodeRecord { launch, ..NodeRecord::default() }).unwrap();
        drop(lock);
        assert_eq!(returned(&slurm, &state).await.unwrap(), "n2");
        assert!(is_waited_for(&slurm, "n1"));
    }
}
