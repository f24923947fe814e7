//! Starts that could not even begin, and for which Slurm waits.

use super::Arguments;
use crate::context;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::log::Level;
use crate::wiring;
use hostlist::Hostlist;
use provision::plan;
use provision::state::{NodeRecord, State};
use slurmctl::{Controller, ErrorKind, NodeAction, Reason};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// How long a slurmctld that does not answer is tried: where its resume file is gone it is often being restarted, and back
/// within that time.
const SLURMCTLD_WAIT: Duration = Duration::from_mins(1);

/// The first pause between two tries; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Gives the nodes back to Slurm where nothing could be begun: their jobs need not wait for ResumeTimeout.
pub(super) async fn give_back(
    arguments: &Arguments,
    environment: &Environment,
    diagnostic: &Diagnostic,
    begun: Instant,
) {
    let common = &arguments.common;
    let (level, text) = match given_back(arguments, environment, diagnostic, begun).await {
        Ok(nodes) if nodes.is_empty() => return,
        Ok(nodes) => (Level::Info, format!("given back to Slurm: {nodes}")),
        Err(why) => (Level::Error, format!("not given back to Slurm, which waits for them: {why}")),
    };
    context::output(common, environment).complain(&text);
    crate::programs::note("startnode", common, level, &[text]);
}

/// The nodes that Slurm waited for, and does no more.
async fn given_back(
    arguments: &Arguments,
    environment: &Environment,
    diagnostic: &Diagnostic,
    begun: Instant,
) -> Result<Hostlist, Diagnostic> {
    // No node has such a name, and Slurm is not asked for it.
    if arguments.nodes.node_names().is_err() {
        return Ok(Hostlist::new());
    }
    let common = &arguments.common;
    let mut environment = environment.clone();
    let settings = context::settings(common).ok().map(|(settings, _)| settings);
    let (paths, before) = match &settings {
        Some(settings) => {
            environment = context::own_environment(common, settings, environment);
            (settings.paths.clone(), "")
        }
        None => (context::legible_paths(common), "configuration: "),
    };
    let slurm = wiring::slurm(common, &paths, &environment).await?;
    // Without: whoever else is called for these nodes cannot read the configuration either.
    let state =
        settings.map(|settings| context::state(common, &settings, &environment, &slurm.config).0);
    let why = format!("{before}{}", diagnostic.messages().first().map_or("", String::as_str));
    let back = Back {
        slurm: &slurm.controller,
        state: state.as_deref(),
        nodes: &arguments.nodes,
        // By our mark reconcile knows that no administrator has said so, and returns the node to service.
        reason: plan::our_reason(&why),
        begun,
    };
    let given_up = begun + wiring::before_timeout(&slurm.config, &arguments.nodes);
    let told = back.give(given_up.min(Instant::now() + SLURMCTLD_WAIT)).await;
    told.map_err(|error| Diagnostic::from_error(&error))
}

/// The nodes that are to go back, and with what words.
struct Back<'a> {
    slurm: &'a dyn Controller,
    state: Option<&'a dyn State>,
    nodes: &'a Hostlist,
    reason: Reason,
    begun: Instant,
}

impl Back<'_> {
    /// Gives back those of the nodes that Slurm waits for: at least one try, and further ones until then while it does not
    /// answer.
    async fn give(&self, until: Instant) -> slurmctl::Result<Hostlist> {
        let (mut told, mut pause) = (Hostlist::new(), FIRST_PAUSE);
        loop {
            let again = pause > FIRST_PAUSE;
            match self.try_once(again, &mut told).await {
                Err(error)
                    if error.kind() == ErrorKind::Unavailable && Instant::now() + pause < until => {
                }
                done => return done.map(|()| told),
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Tries it once, and notes which nodes it is tried for. They are looked at anew each time: what got no answer may have
    /// been done, and done twice it would hit the job that has the node by then.
    async fn try_once(&self, again: bool, told: &mut Hostlist) -> slurmctl::Result<()> {
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
        *told = told.difference(&theirs);
        if waiting.is_empty() {
            return Ok(());
        }
        let new: Vec<String> = waiting.iter().filter(|name| !told.contains(name)).collect();
        told.extend(new);
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

#[cfg(test)]
mod tests {
    use super::*;
    use hostlist::NodeName;
    use provision::state::{Launch, MemoryState};
    use slurmctl::memory::{JobSpec, MemorySlurm, Settings};

    const NODES: &str = "n[1-2]";

    /// A slurmctld that waits for both nodes.
    fn waiting() -> MemorySlurm {
        let slurm = MemorySlurm::new(Settings::cloud(&NODES.parse().unwrap()));
        let _ = slurm.submit_job(JobSpec::new(2, Duration::from_mins(1)));
        assert_eq!(slurm.tick().len(), 1, "startnode is called");
        slurm
    }

    fn is_waited_for(slurm: &MemorySlurm, node: &str) -> bool {
        slurm.node(node).unwrap().state.is_powering_up()
    }

    async fn give(slurm: &MemorySlurm, state: &MemoryState) -> slurmctl::Result<String> {
        let nodes: Hostlist = NODES.parse().unwrap();
        let reason = plan::our_reason("no resume file");
        let begun = Instant::now();
        let back = Back { slurm, state: Some(state), nodes: &nodes, reason, begun };
        back.give(Instant::now() + SLURMCTLD_WAIT).await.map(|told| told.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn jobs_waited_for_their_timeout_as_slurmctld_was_just_being_restarted() {
        let (slurm, state) = (waiting(), MemoryState::new());
        slurm.set_unreachable(true);
        let back = slurm.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(25)).await;
            back.set_unreachable(false);
        });
        assert_eq!(give(&slurm, &state).await.unwrap(), NODES);
        assert!(!is_waited_for(&slurm, "n1") && !is_waited_for(&slurm, "n2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slurmctld_that_stays_away_is_given_up_after_a_while() {
        let (slurm, state) = (waiting(), MemoryState::new());
        slurm.set_unreachable(true);
        let begun = Instant::now();
        assert_eq!(give(&slurm, &state).await.unwrap_err().kind(), ErrorKind::Unavailable);
        // The last try may begin at the very end, and has a timeout of its own.
        assert!(begun.elapsed() < 2 * SLURMCTLD_WAIT, "{:?}", begun.elapsed());
        assert!(begun.elapsed() > SLURMCTLD_WAIT / 4, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_done_without_an_answer_is_not_done_again_and_is_told() {
        let (slurm, state) = (waiting(), MemoryState::new());
        let deaf = slurm.clone();
        tokio::spawn(async move {
            // Behind the look, which takes 20.
            sleep(Duration::from_millis(25)).await;
            deaf.lose_answers(1);
        });
        assert_eq!(give(&slurm, &state).await.unwrap(), NODES);
        assert!(!is_waited_for(&slurm, "n1") && !is_waited_for(&slurm, "n2"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_another_has_in_hand_by_then_is_left_to_it() {
        let (slurm, state) = (waiting(), MemoryState::new());
        let lock = state.try_lock(&NodeName::new("n1").unwrap()).unwrap();
        slurm.lose_answers(1);
        assert_eq!(give(&slurm, &state).await.unwrap(), "n2");
        assert!(is_waited_for(&slurm, "n1"));
        drop(lock);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_another_had_launched_by_then_was_powered_down_as_it_booted() {
        let (slurm, state) = (waiting(), MemoryState::new());
        slurm.lose_answers(1);
        let mut lock = state.try_lock(&NodeName::new("n1").unwrap()).unwrap().unwrap();
        let launch = Some(Launch::asked(SystemTime::now()));
        lock.keep(&NodeRecord { launch, ..NodeRecord::default() }).unwrap();
        drop(lock);
        assert_eq!(give(&slurm, &state).await.unwrap(), "n2");
        assert!(is_waited_for(&slurm, "n1"));
    }
}
