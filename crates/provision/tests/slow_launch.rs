//! A cloud that is still at work on a launch when nobody waits for its answer any more.

use crate::common::run::{self, Run};
use crate::common::{Bed, groups, names, node};
use async_trait::async_trait;
use cloud_core::memory::{InjectedFault, MemoryCloud, MemoryCloudSettings};
use cloud_core::{
    ApiOperation, Capability, Description, Error, ErrorKind, Instance, InstanceFilter, InstanceId,
    InstanceSpec, Provider, Reboot, Result,
};
use provision::Outcome;
use provision::plan::JobGroup;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long our client waits for an answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long the cloud takes for a launch.
const TAKES: Duration = Duration::from_secs(90);

/// As Nova behind a load balancer, on a busy day.
#[derive(Debug)]
struct Busy {
    cloud: MemoryCloud,
    asked: Mutex<Vec<(Instant, InstanceSpec)>>,
}

impl Busy {
    /// Carries out what is due.
    async fn work(&self) {
        let due: Vec<InstanceSpec> = {
            let mut asked = self.asked.lock().unwrap();
            let now = Instant::now();
            asked.extract_if(.., |(due, _)| *due <= now).map(|(_, spec)| spec).collect()
        };
        for spec in due {
            self.cloud.launch(&spec).await.unwrap();
        }
    }
}

#[async_trait]
impl Provider for Busy {
    fn describe(&self) -> Description {
        self.cloud.describe()
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        self.work().await;
        self.cloud.list(filter).await
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        self.cloud.get(id).await
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        self.asked.lock().unwrap().push((Instant::now() + TAKES, spec.clone()));
        sleep(PATIENCE).await;
        Err(Error::new(ErrorKind::Ambiguous, ApiOperation::Launch).because("no whole answer"))
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        self.cloud.terminate(id).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        self.cloud.reboot(id, how).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.cloud.addresses(ids).await
    }
}

/// A node in a cloud that does not know repeats of a launch.
fn without_tokens() -> Bed {
    let mut settings = MemoryCloudSettings::default();
    settings.capabilities = settings.capabilities.without(Capability::LaunchToken);
    Bed::with("n1", settings)
}

/// A start that was killed while the cloud was at work on its launch, which it still is.
async fn killed(bed: &Bed) -> Vec<JobGroup> {
    let (_, request) = bed.job(1).await;
    let (nodes, jobs) = (names("n1"), groups(&request));
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::DoneLater(Duration::from_secs(40)));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    assert!(timeout(Duration::from_secs(2), start).await.is_err(), "killed");
    assert!(bed.live().is_empty());
    jobs
}

#[tokio::test(start_paused = true)]
async fn a_launch_of_a_killed_start_is_not_requested_again() {
    let bed = without_tokens();
    let (nodes, jobs) = (names("n1"), killed(&bed).await);
    let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    let n1 = &report.nodes[&node("n1")];
    assert_eq!((n1.outcome, n1.launches), (Outcome::Up, 0), "{report:?}");
    sleep(TAKES).await;
    assert_eq!(bed.live().len(), 1, "and no other comes");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_machine_that_a_killed_start_still_gets() {
    let bed = without_tokens();
    let (nodes, _) = (names("n1"), killed(&bed).await);
    let report = bed.run(async |run| run::stop_now(run, &nodes).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Down, "{report:?}");
    sleep(TAKES).await;
    assert!(bed.live().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_the_cloud_still_works_on_is_not_requested_again() {
    let bed = without_tokens();
    let (_, request) = bed.job(1).await;
    let cloud = Busy { cloud: bed.cloud.clone(), asked: Mutex::default() };
    let (nodes, jobs) = (names("n1"), groups(&request));
    let start = async |run: &Run<'_>| run::start(run, &nodes, &jobs).await;
    let report = bed.run_on(&cloud, &bed.slurm, start).await;
    let n1 = &report.nodes[&node("n1")];
    assert_eq!((n1.outcome, n1.launches), (Outcome::Up, 1), "{report:?}");
    sleep(TAKES).await;
    cloud.work().await;
    assert_eq!(bed.live().len(), 1, "and no other comes");
}

/// A listing that is a minute behind, as eventually consistent clouds have it.
#[tokio::test(start_paused = true)]
async fn a_listing_a_minute_behind_causes_no_duplicate_and_loses_no_node() {
    for tokens in [true, false] {
        let mut settings = MemoryCloudSettings::default();
        settings.lag = Duration::from_mins(1);
        if !tokens {
            settings.capabilities = settings.capabilities.without(Capability::LaunchToken);
        }
        let bed = Bed::with("n1", settings);
        let nodes = names("n1");
        for round in 0..4 {
            if round == 2 {
                bed.cloud.inject(ApiOperation::Launch, InjectedFault::LoseResponse);
            }
            let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
            assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{round}: {report:?}");
            assert_eq!(bed.live().len(), 1, "round {round}, tokens {tokens}");
            let report = bed.run(async |run| run::stop(run, &nodes).await).await;
            assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Down, "{round}: {report:?}");
            assert!(bed.live().is_empty(), "round {round}, tokens {tokens}");
        }
    }
}
