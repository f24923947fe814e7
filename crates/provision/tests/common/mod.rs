//! A cloud, a controller and a cluster in memory, for tests of whole runs.

pub(crate) mod run;

use cloud_core::memory::{MemoryCloud, MemoryCloudSettings, RequestOutcome};
use cloud_core::{ApiOperation, ImageId, Instance, Provider};
use hostlist::{Hostlist, NodeName};
use provision::plan::JobGroup;
use provision::run::Run;
use provision::state::{MemoryState, State};
use provision::{Cancel, Files, Tools};
use provision::{Identity, Roster, Site};
use slurmconf::Config;
use slurmctl::memory::{Call, JobSpec, MemorySlurm, MemorySlurmSettings};
use slurmctl::{Controller, ResumeRequest};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, advance};

/// What the cloud in memory calls 1970, so that all clocks agree.
const EPOCH: Duration = Duration::from_secs(1_700_000_000);

pub(crate) struct Bed {
    pub(crate) cloud: MemoryCloud,
    pub(crate) slurm: MemorySlurm,
    pub(crate) state: Box<dyn State>,
    pub(crate) site: Site,
    pub(crate) config: Config,
    pub(crate) files: Files,
    pub(crate) cancel: Cancel,
    pub(crate) begun: Instant,
}

impl Bed {
    /// A cluster of elastic nodes with these names.
    pub(crate) fn new(nodes: &str) -> Self {
        Self::with(nodes, MemoryCloudSettings::default())
    }

    pub(crate) fn with(nodes: &str, cloud: MemoryCloudSettings) -> Self {
        let begun = Instant::now();
        let list: Hostlist = nodes.parse().unwrap();
        let mut slurm = MemorySlurmSettings::cloud(&list);
        slurm.epoch = SystemTime::UNIX_EPOCH + EPOCH;
        let mut site = Site::new(Identity::cluster("blue"));
        site.image = Some(ImageId::new("image-1"));
        site.zone_root = Some("zone-".to_owned());
        site.policies.deadline = slurm.resume_timeout.saturating_sub(Duration::from_secs(20));
        Self {
            cloud: MemoryCloud::new(cloud),
            slurm: MemorySlurm::new(slurm),
            state: Box::new(MemoryState::new()),
            site,
            config: conf(&format!("NodeName={nodes} State=CLOUD CPUs=2 Features=shape=small,ad=1")),
            files: Files::default(),
            cancel: Cancel::never(),
            begun,
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + EPOCH + Instant::now().saturating_duration_since(self.begun)
    }

    pub(crate) async fn run<T>(&self, work: impl AsyncFnOnce(&Run<'_>) -> T) -> T {
        self.run_on(&self.cloud, &self.slurm, work).await
    }

    /// A run with another cloud or controller.
    pub(crate) async fn run_on<T>(
        &self,
        cloud: &dyn Provider,
        slurm: &dyn Controller,
        work: impl AsyncFnOnce(&Run<'_>) -> T,
    ) -> T {
        let roster = Roster::new(&self.config);
        let clock = || self.now();
        let tools = Tools {
            cloud,
            slurm,
            state: &*self.state,
            clock: &clock,
            progress: &(),
            files: &self.files,
            run: "test",
            cancel: self.cancel.clone(),
        };
        work(&Run { tools, site: &self.site, conf: &roster }).await
    }

    /// Queues a job and returns the call that slurmctld makes for it.
    pub(crate) async fn job(&self, nodes: usize) -> (slurmctl::JobId, ResumeRequest) {
        let job = self.slurm.submit_job(JobSpec::new(nodes, Duration::from_mins(1)));
        for _ in 0..10 {
            for call in self.slurm.tick() {
                if let Call::Resume { request, .. } = call {
                    return (job, request);
                }
            }
            advance(Duration::from_secs(1)).await;
        }
        panic!("slurmctld calls nobody for job {job}");
    }

    /// The instances with our tags that are not on their way out.
    pub(crate) fn live(&self) -> Vec<Instance> {
        let all = self.cloud.instances().into_iter();
        all.filter(|one| self.site.identity.owns(one) && !one.state.is_leaving()).collect()
    }

    pub(crate) fn requests(&self, operation: ApiOperation) -> usize {
        self.cloud.history().iter().filter(|event| event.operation == operation).count()
    }

    pub(crate) fn done(&self, operation: ApiOperation) -> usize {
        let events = self.cloud.history();
        let done = |event: &&cloud_core::memory::LoggedRequest| {
            event.operation == operation
                && matches!(
                    event.outcome,
                    RequestOutcome::Done | RequestOutcome::DoneUnacknowledged
                )
        };
        events.iter().filter(done).count()
    }
}

pub(crate) fn conf(nodes: &str) -> Config {
    Config::parse(&format!("{nodes}\nPartitionName=main Nodes=ALL Default=YES\n")).unwrap()
}

pub(crate) fn names(nodes: &str) -> Vec<NodeName> {
    nodes.parse::<Hostlist>().unwrap().node_names().unwrap()
}

pub(crate) fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn groups(request: &ResumeRequest) -> Vec<JobGroup> {
    let group = |job: &slurmctl::JobNodes| JobGroup::new(job.id, job.nodes.node_names().unwrap());
    request.jobs.iter().map(group).collect()
}
