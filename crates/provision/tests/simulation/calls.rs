//! The programs that slurmctld and timers call.

use crate::common::run::{self, Run};
use crate::simulation::env::{Fault, Host};
use crate::simulation::judge::Who;
use crate::simulation::kill::Killable;
use crate::simulation::world::{Ended, RECONCILE, Sim};
use hostlist::{Hostlist, NodeName};
use provision::plan::JobGroup;

use provision::{Cancel, Outcome, Report};
use slurmctl::ResumeRequest;
use slurmctl::memory::Call;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

impl Sim {
    /// The timer of each controller.
    pub(crate) fn timers(&mut self) {
        for host in 0..self.timers.len() {
            if Instant::now() < self.timers[host] {
                continue;
            }
            self.timers[host] += RECONCILE;
            if self.reconciling.insert(host) {
                self.reconcile(host, true);
            }
        }
    }

    /// Reconciles, by a timer or by hand.
    pub(crate) fn reconcile(&mut self, host: Host, by_timer: bool) {
        if matches!(self.fault, Some(Fault::Idle | Fault::StopsNone)) {
            return;
        }
        let env = Arc::clone(&self.env);
        let (cancel, fault) = (self.cancel(), self.fault);
        let who = self.env.judge.reconciles();
        let process = async move {
            Box::pin(cancelled(cancel, async |cancel| {
                let report = env.program(host, cancel, async |run| run::reconcile(run).await).await;
                pretended(report, fault)
            }))
            .await
        };
        let judge = Arc::clone(&self.env.judge);
        let process = Killable::new(process, self.kill(), Arc::clone(&judge), who);
        let begun = Instant::now();
        self.programs.push(Box::pin(async move {
            if let Some(report) = process.await {
                judge.reports((who, begun), &report);
            }
            Ended::Reconcile(who, by_timer.then_some(host))
        }));
    }

    /// After how many waits the next process is killed, if it is: as often early as late.
    fn kill(&mut self) -> Option<u32> {
        (!self.calm && self.rng.u8(0..10) < 3).then(|| {
            let most = 1 << self.rng.u32(1..10);
            self.rng.u32(0..most)
        })
    }

    /// When the next process is told to stop, if it is.
    fn cancel(&mut self) -> Option<Duration> {
        let told = !self.calm && self.rng.u8(0..10) == 0;
        told.then(|| Duration::from_millis(self.rng.u64(0..60_000)))
    }

    pub(crate) fn call(&mut self, call: Call, fresh: bool) {
        if self.story.is_some() {
            self.note(format!("{call:?}"));
        }
        if fresh {
            self.calls.push(call.clone());
            self.doubles(&call);
        }
        let env = Arc::clone(&self.env);
        let called = call.clone();
        match (self.fault, &call) {
            (Some(Fault::Idle | Fault::StopsNone), Call::ResumeFail { .. })
            | (Some(Fault::StopsNone), Call::Suspend { .. }) => return,
            _ => {}
        }
        // A call that comes again may come from the other controller.
        let hosts = self.timers.len();
        let host = if fresh { self.active } else { self.rng.usize(0..hosts) };
        let (cancel, fault) = (self.cancel(), self.fault);
        let process = async move {
            Box::pin(cancelled(cancel, async |cancel| {
                let called = async |run: &Run<'_>| program(run, &called, fault).await;
                pretended(env.program(host, cancel, called).await, fault)
            }))
            .await
        };
        let judge = Arc::clone(&self.env.judge);
        self.begun += 1;
        let (who, begun) = (Who::Program(self.begun), Instant::now());
        let process = Killable::new(process, self.kill(), Arc::clone(&judge), who);
        self.programs.push(Box::pin(async move {
            match process.await {
                Some(report) => {
                    judge.reports((who, begun), &report);
                    Ended::Well
                }
                None => Ended::Killed(call),
            }
        }));
    }

    /// A process has ended; one that was killed is called again, at times.
    pub(crate) fn ended(&mut self, ended: Ended) {
        match ended {
            Ended::Reconcile(who, host) => {
                self.env.judge.ended(who);
                if let Some(host) = host {
                    self.reconciling.remove(&host);
                }
            }
            Ended::Well => {}
            Ended::Killed(call) => {
                if self.rng.bool() {
                    self.call(call, false);
                }
            }
        }
    }
}

/// The program that slurmctld calls.
async fn program(run: &Run<'_>, call: &Call, fault: Option<Fault>) -> Report {
    match call {
        Call::Resume { nodes, request } => run::start(run, &names(nodes), &groups(request)).await,
        Call::Suspend { nodes } if fault == Some(Fault::StopsAll) => {
            run::stop_now(run, &names(nodes)).await
        }
        Call::Suspend { nodes } => run::stop(run, &names(nodes)).await,
        Call::ResumeFail { nodes } => run::failed(run, &names(nodes)).await,
        Call::RebootJob { nodes, .. } | Call::Reboot { nodes } => {
            panic!("no reboots here: {nodes}")
        }
    }
}

/// A report with what has failed as done, if the programs are so.
fn pretended(mut report: Report, fault: Option<Fault>) -> Report {
    if fault == Some(Fault::Pretends) {
        let failed = report.nodes.values_mut().filter(|it| it.outcome == Outcome::Failed);
        failed.for_each(|it| it.outcome = Outcome::Up);
    }
    report
}

/// A process that is told to stop after a while, if it is.
async fn cancelled<T>(after: Option<Duration>, process: impl AsyncFnOnce(Cancel) -> T) -> T {
    let Some(after) = after else {
        return process(Cancel::never()).await;
    };
    let (signal, cancel) = Cancel::new();
    let mut process = pin!(process(cancel));
    tokio::select! {
        biased;
        ended = &mut process => return ended,
        () = sleep(after) => signal.cancel(),
    }
    process.await
}

fn names(nodes: &Hostlist) -> Vec<NodeName> {
    nodes.node_names().unwrap()
}

fn groups(request: &ResumeRequest) -> Vec<JobGroup> {
    let group = |job: &slurmctl::JobNodes| JobGroup::new(job.id, names(&job.nodes));
    request.jobs.iter().map(group).collect()
}
