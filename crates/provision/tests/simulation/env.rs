//! The stage: a cloud, a controller and a cluster, all of them made from a seed.

use crate::simulation::disk::{Backup, Disk};
use crate::simulation::judge::Judge;
use crate::simulation::line::Line;
use crate::simulation::warm::Warm;
use crate::simulation::wire::{Launches, Weather, Wire};
use cloud_core::memory::{MemoryCloud, MemoryCloudSettings, Span};
use cloud_core::{
    Capability, ImageId, Instance, InstanceName, InstanceSpec, Provider, ShapeName, Tags, Zone,
};
use fastrand::Rng;
use hostlist::{Hostlist, NodeName};
use provision::run::Run;
use provision::state::{MemoryState, State};
use provision::{Cancel, Files, Tools};
use provision::{Fallback, Identity, Roster, Site};
use slurmconf::{Config, SlurmVersion};
use slurmctl::memory::{MemorySlurm, MemorySlurmSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// What the cloud calls 1970, so that all clocks agree.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_700_000_000);

/// How many instances are not ours, and look as if they were.
pub(crate) const FOREIGN: usize = 4;

/// A controller: the one where slurmctld runs, or its backup.
pub(crate) type Host = usize;

/// What differs between the controllers.
pub(crate) struct Controller {
    /// How far its clock is ahead, in milliseconds.
    pub(crate) ahead: AtomicI64,
    /// True while it can only read the state.
    pub(crate) read_only: Arc<AtomicBool>,
    pub(crate) seen_state: Disk,
}

/// How far the clocks of two controllers are apart, in milliseconds.
const SKEW: i64 = 20_000;

pub(crate) struct Env {
    pub(crate) cloud: MemoryCloud,
    /// What the programs see of the cloud: the same, or one with a planted bug.
    pub(crate) seen: Wire,
    pub(crate) slurm: MemorySlurm,
    pub(crate) seen_slurm: Line,
    pub(crate) state: MemoryState,
    pub(crate) backup: Backup,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) site: Site,
    /// What is ours, whatever the programs take for it.
    identity: Identity,
    pub(crate) judge: Arc<Judge>,
    pub(crate) config: Config,
    pub(crate) files: Files,
    pub(crate) begun: Instant,
    pub(crate) nodes: Vec<NodeName>,
    pub(crate) warm: Warm,
    /// The programs take no notice of a new image.
    keeps_image: bool,
    /// True if what is forgotten can be found out: the cloud knows launch tokens.
    pub(crate) may_forget: bool,
}

impl Env {
    /// The time by the clock of a controller.
    pub(crate) fn now(&self, host: Host) -> SystemTime {
        let ahead = self.controllers[host].ahead.load(Ordering::Relaxed);
        let shift = Duration::from_millis(ahead.unsigned_abs());
        let now =
            SystemTime::UNIX_EPOCH + EPOCH + Instant::now().saturating_duration_since(self.begun);
        if ahead < 0 { now - shift } else { now + shift }
    }

    pub(crate) fn owns(&self, instance: &Instance) -> bool {
        self.identity.owns(instance)
    }

    /// The instances that carry our tags.
    pub(crate) fn ours(&self) -> Vec<Instance> {
        let all = self.cloud.instances();
        all.into_iter().filter(|instance| self.owns(instance)).collect()
    }

    /// Runs a program with all its tools on a controller.
    pub(crate) async fn program<T>(
        &self,
        host: Host,
        cancel: Cancel,
        work: impl AsyncFnOnce(&Run<'_>) -> T,
    ) -> T {
        let roster = Roster::new(&self.config);
        let mut site = self.site.clone();
        self.judge.wants(self.warm.image());
        if !self.keeps_image {
            site.image = Some(self.warm.image());
        }
        let clock = || self.now(host);
        let tools = Tools {
            cloud: &self.seen,
            slurm: &self.seen_slurm,
            state: &self.controllers[host].seen_state,
            clock: &clock,
            progress: &(),
            files: &self.files,
            run: "sim",
            cancel,
        };
        work(&Run { tools, site: &site, conf: &roster }).await
    }
}

/// What the programs get to see: the cloud and the controller as they are, or with a planted bug.
pub(crate) struct Wrap {
    pub(crate) cloud: fn(MemoryCloud) -> Arc<dyn Provider>,
    pub(crate) state: fn(MemoryState, MemoryCloud) -> Box<dyn State>,
    /// What the programs do wrong themselves.
    pub(crate) fault: Option<Fault>,
}

/// What the programs do wrong themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The program for nodes that never came up does nothing, and nothing is reconciled.
    Idle,
    /// The program that stops nodes does not ask whether Slurm wants them again.
    StopsAll,
    /// What Slurm said of a node when it was asked for is not asked again.
    Outdated,
    /// Whatever has a node's name is taken for ours.
    OwnsAll,
    /// Nodes are not stopped, and nothing is reconciled.
    StopsNone,
    /// What has failed is reported as done.
    Pretends,
    /// A new image in the configuration is not noticed.
    KeepsImage,
    /// Machines of all nodes are kept.
    KeepsAll,
}

/// How far listings lag at most where machines are kept.
const WARM_LAG: Duration = Duration::from_secs(3);

/// One controller or two, which share the state, and whose clocks are not quite the same.
fn controllers(
    rng: &mut Rng,
    (wrap, state, cloud): (&Wrap, &MemoryState, &MemoryCloud),
    judge: &Arc<Judge>,
) -> Vec<Controller> {
    let files = Arc::default();
    let controller = |ahead| {
        let read_only = Arc::new(AtomicBool::new(false));
        let seen_state = Disk {
            state: (wrap.state)(state.clone(), cloud.clone()),
            judge: Arc::clone(judge),
            read_only: Arc::clone(&read_only),
            files: Arc::clone(&files),
        };
        Controller { ahead: AtomicI64::new(ahead), read_only, seen_state }
    };
    let mut all = vec![controller(0)];
    if rng.bool() {
        all.push(controller(rng.i64(-SKEW..SKEW)));
    }
    all
}

pub(crate) async fn make(rng: &mut Rng, wrap: &Wrap) -> Arc<Env> {
    let begun = Instant::now();
    let count = rng.usize(1..=5);
    let list: Hostlist = format!("n[1-{count}]").parse().unwrap();
    let nodes = list.node_names().unwrap();
    let warm = Warm::draw(rng, &nodes, begun);
    let tokens = rng.bool();
    let cloud_settings = cloud_settings(rng, tokens, &warm);
    let lag = cloud_settings.lag;
    let cloud = MemoryCloud::new(cloud_settings);
    let slurm_settings = slurm_settings(rng, &list);
    let resume_timeout = slurm_settings.resume_timeout;
    let slurm = MemorySlurm::new(slurm_settings);
    let zoned = rng.bool();
    let features = if zoned { "shape=small,ad=1" } else { "shape=small" };
    let lines = warm.lines(&nodes, features, wrap.fault == Some(Fault::KeepsAll));
    let config =
        Config::parse(&format!("{lines}PartitionName=main Nodes=ALL Default=YES\n")).unwrap();
    let foreign = foreign(&cloud, &list).await;
    let mut site = site(rng, zoned, resume_timeout);
    let identity = site.identity.clone();
    if wrap.fault == Some(Fault::OwnsAll) {
        site.identity = Identity::by_name();
    }
    let judge = Judge::new(&cloud, &slurm, foreign, (lag, warm.clone()));
    let seen = Wire {
        cloud: (wrap.cloud)(cloud.clone()),
        judge: Arc::clone(&judge),
        sends_on: rng.bool(),
        shows_all: rng.bool() || wrap.fault == Some(Fault::OwnsAll),
        weather: Weather::of(rng),
        launches: Launches::default(),
    };
    let state = MemoryState::new();
    let controllers = controllers(rng, (wrap, &state, &cloud), &judge);
    Arc::new(Env {
        seen,
        seen_slurm: Line {
            slurm: slurm.clone(),
            judge: Arc::clone(&judge),
            outdated: wrap.fault == Some(Fault::Outdated),
        },
        backup: Backup::default(),
        controllers,
        cloud,
        slurm,
        state,
        site,
        identity,
        judge,
        config,
        files: Files::default(),
        begun,
        nodes,
        warm,
        keeps_image: wrap.fault == Some(Fault::KeepsImage),
        may_forget: tokens,
    })
}

fn slurm_settings(rng: &mut Rng, nodes: &Hostlist) -> MemorySlurmSettings {
    let mut settings = MemorySlurmSettings::cloud(nodes);
    let versions = [(22, 5), (24, 11), (26, 5)].map(|(year, month)| SlurmVersion::new(year, month));
    settings.version = *rng.choice(&versions).unwrap();
    settings.needs_addresses = rng.bool();
    settings.resume_rate = rng.bool().then(|| rng.usize(1..=3));
    settings.epoch = SystemTime::UNIX_EPOCH + EPOCH;
    settings.resume_timeout = Duration::from_secs(rng.u64(120..=240));
    settings.suspend_time = Some(Duration::from_secs(rng.u64(30..=120)));
    settings.suspend_timeout = Duration::from_secs(rng.u64(20..=40));
    settings.slurmd_timeout = Duration::from_mins(1);
    settings.requeue_delay = Duration::from_secs(rng.u64(5..=60));
    settings.idle_on_node_suspend = rng.bool();
    settings
}

fn cloud_settings(rng: &mut Rng, tokens: bool, warm: &Warm) -> MemoryCloudSettings {
    let mut settings = MemoryCloudSettings::default();
    settings.seed = rng.u64(..);
    if rng.u8(0..8) == 0 {
        settings.capabilities = settings.capabilities.without(Capability::Stop);
    }
    if !tokens {
        settings.capabilities = settings.capabilities.without(Capability::LaunchToken);
    }
    settings.boot = Span::millis(10_000, rng.u64(15_000..60_000));
    settings.address = Span::millis(0, *rng.choice(&[500, 3_000, 15_000]).unwrap());
    settings.terminate = Span::millis(1_000, 10_000);
    settings.linger = Duration::from_secs(rng.u64(0..300));
    let longest = *rng.choice(&[3_000, 60_000]).unwrap();
    let lag = Duration::from_millis(rng.u64(0..longest));
    // A kept machine that a listing shows running a minute later is an orphan to reconcile, which terminates it.
    settings.lag = if warm.is_any() { lag.min(WARM_LAG) } else { lag };
    settings.reorders = rng.bool();
    settings.page = *rng.choice(&[2, 100]).unwrap();
    settings
}

fn site(rng: &mut Rng, zoned: bool, resume_timeout: Duration) -> Site {
    let mut site = Site::new(Identity::cluster("sim"));
    site.image = Some(ImageId::new("image-1"));
    site.zone_root = Some("zone-".to_owned());
    if !zoned && rng.bool() {
        site.zones = vec![Zone::new("zone-1"), Zone::new("zone-2")];
    }
    if rng.bool() {
        let other = Fallback { zone: Some(Zone::new("zone-3")), ..Fallback::default() };
        site.fallback = vec![other];
    }
    site.policies.cooldown = Duration::from_secs(rng.u64(30..=180));
    site.policies.concurrency = rng.usize(1..=4);
    site.policies.deadline = resume_timeout.saturating_sub(Duration::from_secs(20));
    site.policies.grace = Duration::from_mins(2);
    if rng.bool() {
        site.policies.on_partial = provision::OnPartial::Keep;
    }
    if rng.bool() {
        site.policies.stopped = provision::Stopped::Start;
    }
    site
}

/// Instances of others: with a node's name, with another cluster's tags, with half of ours.
async fn foreign(cloud: &MemoryCloud, nodes: &Hostlist) -> Vec<String> {
    let name = nodes.iter().next().unwrap();
    let tags: [Tags; FOREIGN] = [
        Tags::new(),
        Tags::from([("cluster", "other"), ("type", "compute"), ("node", name.as_str())]),
        Tags::from([("cluster", "sim"), ("type", "management"), ("node", name.as_str())]),
        Tags::from([("type", "compute"), ("node", name.as_str())]),
    ];
    let mut ids = Vec::new();
    for tags in tags {
        let shape = ShapeName::new("small");
        let mut spec =
            InstanceSpec::new(InstanceName::new(name.as_str()), shape, ImageId::new("image-1"));
        spec.tags = tags;
        ids.push(cloud.launch(&spec).await.unwrap().id.as_str().to_owned());
    }
    ids
}
