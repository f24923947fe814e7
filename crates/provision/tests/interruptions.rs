//! Announcements of the cloud to a machine, and what reconcile makes of them.

use crate::common::run;
use crate::common::{Bed, names, node};
use async_trait::async_trait;
use cloud_core::{Interruption, InterruptionKind};
use hostlist::Hostlist;
use provision::{InterruptionPolicy, interrupt, preview_interrupt};
use slurmconf::SlurmVersion;
use slurmctl::memory::MemorySlurm;
use slurmctl::{
    BatchJob, Controller, ControllerConfig, Job, JobFilter, JobId, JobState, Node, NodeAction,
    NodeAddress, Reason, Reservation, Result,
};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// A controller that also knows signals, requeues and reservations, and records the calls with their time.
#[derive(Debug)]
struct Whole {
    slurm: MemorySlurm,
    reserved: Vec<Reservation>,
    begun: Instant,
    calls: Mutex<Vec<(u64, String)>>,
}

impl Whole {
    fn new(slurm: &MemorySlurm, reserved: Vec<Reservation>) -> Self {
        let (slurm, begun) = (slurm.clone(), Instant::now());
        Self { slurm, reserved, begun, calls: Mutex::default() }
    }

    fn record(&self, call: String) {
        self.calls.lock().unwrap().push((self.begun.elapsed().as_secs(), call));
    }

    fn calls(&self) -> Vec<(u64, String)> {
        self.calls.lock().unwrap().clone()
    }
}

#[async_trait]
impl Controller for Whole {
    fn version(&self) -> SlurmVersion {
        self.slurm.version()
    }

    async fn nodes(&self, which: Option<&Hostlist>) -> Result<Vec<Node>> {
        self.slurm.nodes(which).await
    }

    async fn jobs(&self, which: JobFilter) -> Result<Vec<Job>> {
        self.slurm.jobs(which).await
    }

    async fn config(&self) -> Result<ControllerConfig> {
        self.slurm.config().await
    }

    async fn set_addresses(&self, addresses: &[NodeAddress]) -> Result<()> {
        self.slurm.set_addresses(addresses).await
    }

    async fn set_state(
        &self,
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&Reason>,
    ) -> Result<()> {
        self.record(format!("{to} {nodes}"));
        self.slurm.set_state(nodes, to, reason).await
    }

    async fn comment(&self, job: JobId, text: &str) -> Result<()> {
        self.slurm.comment(job, text).await
    }

    async fn reboot(&self, nodes: &Hostlist, reason: &Reason) -> Result<()> {
        self.slurm.reboot(nodes, reason).await
    }

    async fn signal(&self, job: JobId, signal: &str) -> Result<()> {
        self.record(format!("signal {signal} {job}"));
        Ok(())
    }

    async fn requeue(&self, job: JobId) -> Result<()> {
        self.record(format!("requeue {job}"));
        Ok(())
    }

    async fn reservations(&self) -> Result<Vec<Reservation>> {
        Ok(self.reserved.clone())
    }

    async fn release_reservation(&self, node: &hostlist::NodeName) -> Result<()> {
        self.record(format!("release {node}"));
        Ok(())
    }

    async fn submit(&self, job: &BatchJob) -> Result<JobId> {
        self.slurm.submit(job).await
    }

    async fn ping(&self) -> Result<bool> {
        self.slurm.ping().await
    }

    async fn reconfigure(&self) -> Result<()> {
        self.slurm.reconfigure().await
    }

    async fn restart(&self) -> Result<()> {
        self.slurm.restart().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_preempted_node_is_drained_before_its_jobs_get_their_time() {
    let bed = Bed::new("n1");
    let (job, _) = bed.job(1).await;
    bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    let address = bed.live().remove(0).address.unwrap().to_string();
    let _ = bed.slurm.register(&node("n1"), &address, Instant::now());
    let _ = bed.slurm.tick();
    assert_eq!(bed.slurm.job(job).unwrap().state, JobState::Running);
    let slurm = Whole::new(&bed.slurm, Vec::new());
    let policy = InterruptionPolicy {
        signal: Some(("USR1".to_owned(), Duration::from_mins(1))),
        maintenance: Duration::from_hours(1),
    };
    let preempted = Some(Interruption { kind: InterruptionKind::Preemption, at: None });
    let shown = preview_interrupt(&slurm, &node("n1"), preempted, &policy).await.unwrap();
    assert!(slurm.calls().is_empty(), "a preview changes nothing");
    let lines = interrupt(&slurm, &node("n1"), preempted, &policy).await.unwrap();
    assert_eq!(lines, shown);
    let calls = slurm.calls();
    let calls: Vec<(u64, &str)> = calls.iter().map(|(at, what)| (*at, what.as_str())).collect();
    let (signal, requeue) = (format!("signal USR1 {job}"), format!("requeue {job}"));
    assert_eq!(calls, [(0, "drain n1"), (0, signal.as_str()), (60, requeue.as_str())]);
}

#[tokio::test(start_paused = true)]
async fn a_preview_of_reconcile_shows_the_reservations_that_it_would_release() {
    let bed = Bed::new("n[1-2]");
    let (start, duration) = (SystemTime::UNIX_EPOCH, Duration::from_hours(1));
    let slurm = Whole::new(&bed.slurm, vec![Reservation { node: node("n1"), start, duration }]);
    let preview = async |run: &run::Run<'_>| run::preview_reconcile(run).await;
    let (plan, _) = bed.run_on(&bed.cloud, &slurm, preview).await;
    assert!(plan.to_string().contains("release reservation n1"), "{plan}");
    assert!(slurm.calls().is_empty(), "a preview changes nothing");
    bed.run_on(&bed.cloud, &slurm, async |run| run::reconcile(run).await).await;
    assert_eq!(slurm.calls(), [(0, "release n1".to_owned())]);
}
