//! Random worlds and requests.

use cloud_core::{
    ImageId, Instance, InstanceId, InstanceName, InstanceState, ShapeName, Tags, Zone,
};
use hostlist::{Hostlist, NodeName};
use proptest::prelude::*;
use provision::plan::{
    Finish, Gaps, GroupSize, ImageWish, JobForm, JobGroup, RebuildOptions, Resize, Rollout,
    RolloutHow, Sightings, Target, Vars,
};
use provision::{
    Cause, Cooldowns, Fallback, Fleet, Identity, OnPartial, Pool, RebuildHow, Roster, Site,
    Stopped, World,
};
use slurmconf::{Cluster, Config, Document, Limits, SlurmVersion, generate};
use slurmctl::{Job, JobId, JobState, Node, NodeReason, NodeState};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const STATES: [&str; 17] = [
    "IDLE+CLOUD",
    "IDLE",
    "ALLOCATED+CLOUD",
    "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP",
    "ALLOCATED+CLOUD+NOT_RESPONDING",
    "IDLE+CLOUD+POWERED_DOWN",
    "IDLE+CLOUD+POWERING_DOWN",
    "DOWN+CLOUD+POWERED_DOWN",
    "DOWN+CLOUD+NOT_RESPONDING",
    "DOWN+CLOUD+POWERING_UP",
    "IDLE+CLOUD+DRAIN",
    "IDLE+DRAIN",
    "ALLOCATED+DRAIN",
    "DOWN+DRAIN+REBOOT_ISSUED",
    "DOWN+CLOUD+DRAIN+REBOOT_ISSUED",
    "IDLE+CLOUD+REBOOT_REQUESTED",
    "WHAT+EVER",
];

const REASONS: [&str; 8] = [
    "",
    "bad fan",
    "ResumeTimeout reached",
    "Not responding",
    "rebuild image:img-2 : reboot issued",
    "rebuild image:img-2 : reboot issued : reboot timed out",
    "elastic: drained for resize",
    "elastic: drained for finish",
];

/// A world and requests, all of them at once.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    instances: Vec<Instance>,
    complete: bool,
    slurm: Option<Vec<(usize, usize)>>,
    jobs: Vec<(u32, BTreeSet<u8>, bool)>,
    asked: BTreeSet<u8>,
    pools: Vec<(u8, i64)>,
    resting: Vec<(u8, i64)>,
    switches: u16,
    size: usize,
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(1000)
}

fn at(seconds: i64) -> SystemTime {
    let shift = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { now() - shift } else { now() + shift }
}

fn name(number: u8) -> NodeName {
    NodeName::new(&format!("n{number}")).unwrap()
}

prop_compose! {
    fn instance()(
        number in 1_u8..11, state in 0_usize..8, owner in 0_u8..8, image in 0_u8..3, age in 0_u64..900, address in any::<Option<u8>>(),
    ) -> Instance {
        let states = [
            InstanceState::Pending,
            InstanceState::Running,
            InstanceState::Stopping,
            InstanceState::Stopped,
            InstanceState::Terminating,
            InstanceState::Terminated,
            InstanceState::Failed,
            InstanceState::Other("RESCUE".to_owned()),
        ];
        let shown = InstanceName::new(format!("n{number}"));
        let mut instance = Instance::new(InstanceId::new(""), shown, states[state].clone());
        instance.tags = match owner {
            0 => Tags::new(),
            1 => Tags::from([("cluster", "green"), ("type", "compute")]),
            2 => Tags::from([("cluster", "blue"), ("type", "mgmt")]),
            3 => Tags::from([("cluster", "blue"), ("type", "compute"), ("node", "no node!")]),
            _ => Tags::from([("cluster", "blue"), ("type", "compute")]),
        };
        instance.image = (image > 0).then(|| ImageId::new(format!("img-{image}")));
        instance.address = address.map(|last| std::net::Ipv4Addr::new(10, 0, 0, last).into());
        instance.created = Some(now() - Duration::from_secs(age));
        instance
    }
}

prop_compose! {
    pub(crate) fn chance()(
        mut instances in prop::collection::vec(instance(), 0..14),
        complete in prop::bool::weighted(0.85),
        slurm in prop::option::weighted(0.85, prop::collection::vec((0..STATES.len(), 0..REASONS.len()), 9)),
        jobs in prop::collection::vec((1_u32..5, prop::collection::btree_set(1_u8..10, 0..4), any::<bool>()), 0..4),
        asked in prop::collection::btree_set(1_u8..11, 0..8),
        pools in prop::collection::vec((0_u8..4, -900_i64..900), 0..3),
        resting in prop::collection::vec((1_u8..10, -900_i64..900), 0..3),
        switches in any::<u16>(),
        size in 0_usize..6,
    ) -> Chance {
        for (place, instance) in instances.iter_mut().enumerate() {
            instance.id = InstanceId::new(format!("i-{place}"));
        }
        Chance { instances, complete, slurm, jobs, asked, pools, resting, switches, size }
    }
}

/// Elastic nodes 1 to 4, persistent 5 to 8, and 9 without a shape.
const CONF: &str = "# STARTNODES\n\
    NodeName=n[1-4] State=CLOUD CPUs=2 Features=shape=VM.S,ad=1\n\
    NodeName=n[5-8] State=UNKNOWN CPUs=2 Features=shape=VM.T\n\
    NodeName=n9 State=CLOUD\n\
    PartitionName=main Nodes=n[1-9]\n\
    # ENDNODES\n";

pub(crate) fn document() -> Document {
    Document::parse(CONF)
}

impl Chance {
    fn switch(&self, bit: u8) -> bool {
        self.switches >> bit & 1 == 1
    }

    /// Shows the world to `seen`.
    pub(crate) fn look<T>(&self, seen: impl FnOnce(World<'_>) -> T) -> T {
        let config = Config::parse(CONF).unwrap();
        let conf = Roster::new(&config);
        let site = self.site();
        let fleet = Fleet::new(&site.identity, &conf, self.instances.clone(), self.complete)
            .with_named(&site.identity, self.named());
        let slurm = self.slurm.as_ref().map(|states| nodes(states));
        let jobs = self.jobs();
        let cooldowns = self.cooldowns();
        seen(World {
            site: &site,
            conf: &conf,
            fleet: &fleet,
            slurm: slurm.as_ref(),
            jobs: Some(&jobs),
            cooldowns: &cooldowns,
            spending: None,
            now: now(),
        })
    }

    /// What the files name: anything that has a node's name, of whomever it is.
    pub(crate) fn named(&self) -> BTreeMap<NodeName, Instance> {
        let by_name = |instance: &Instance| {
            Some((NodeName::new(instance.name.as_str()).ok()?, instance.clone()))
        };
        self.instances.iter().filter_map(by_name).collect()
    }

    /// The instances that carry our tags, by a rule of the test's own.
    pub(crate) fn ours(&self) -> BTreeSet<&InstanceId> {
        let carries = |instance: &&Instance| {
            let tag = |key| instance.tags.get(key);
            tag("cluster") == Some("blue") && tag("type") == Some("compute")
        };
        self.instances.iter().filter(carries).map(|instance| &instance.id).collect()
    }

    /// The instances that a file names and that no cluster's tags are on but, by half, ours.
    pub(crate) fn nobodys(&self) -> BTreeSet<InstanceId> {
        let named = self.named();
        let free = |instance: &&Instance| instance.tags.get("cluster") != Some("green");
        named.values().filter(free).map(|instance| instance.id.clone()).collect()
    }

    fn site(&self) -> Site {
        let mut site = Site::new(Identity::cluster("blue"));
        site.image = Some(ImageId::new("img-1"));
        site.zone_root = Some("AD-".to_owned());
        if self.switch(0) {
            let zone = Some(Zone::new("AD-2"));
            site.fallback.push(Fallback { zone, ..Fallback::default() });
        }
        if self.switch(1) {
            site.policies.stopped = Stopped::Start;
        }
        if self.switch(2) {
            site.policies.on_partial = OnPartial::Keep;
        }
        if self.switch(3) {
            site.policies.rebuild = RebuildHow::Recreate;
        }
        if self.switch(4) {
            site.policies.cooldown = Duration::ZERO;
        }
        site
    }

    fn jobs(&self) -> Vec<Job> {
        let job = |(id, nodes, reboot): &(u32, BTreeSet<u8>, bool)| {
            let mut job = Job::new(JobId::new(*id), JobState::Running);
            job.nodes = nodes.iter().map(|number| name(*number)).collect::<Hostlist>();
            job.reboot = *reboot;
            job
        };
        self.jobs.iter().map(job).collect()
    }

    fn cooldowns(&self) -> Cooldowns {
        let mut all = Cooldowns::new();
        let pools = [
            ("VM.S", Some("AD-1")),
            ("VM.S", Some("AD-2")),
            ("VM.T", None),
            ("VM.T", Some("AD-2")),
        ];
        for (pool, start) in &self.pools {
            let (shape, zone) = pools[usize::from(*pool)];
            let pool = Pool { shape: ShapeName::new(shape), zone: zone.map(Zone::new) };
            all.close(pool, Cause::Capacity, at(*start), Duration::from_mins(10));
        }
        for (node, start) in &self.resting {
            all.rest(name(*node), Cause::Timeout, at(*start), Duration::from_mins(10));
        }
        all
    }

    pub(crate) fn asked(&self) -> Vec<NodeName> {
        self.asked.iter().map(|number| name(*number)).collect()
    }

    pub(crate) fn groups(&self) -> Vec<JobGroup> {
        let group = |(id, nodes, _): &(u32, BTreeSet<u8>, bool)| {
            JobGroup::new(JobId::new(*id), nodes.iter().map(|number| name(*number)))
        };
        self.jobs.iter().map(group).collect()
    }

    pub(crate) fn targets(&self) -> Vec<Target> {
        let target = |node: NodeName| {
            let mut target = Target::new(node);
            if self.switch(5) {
                let image = ImageId::new("img-2");
                let instance = self.named().get(&target.node).map(|named| named.id.clone());
                target.reboot_vars = Some(Vars { image, instance });
            }
            if self.switch(6) {
                target.reason = Some(ImageWish::Unknown("rocky".to_owned()));
            }
            target
        };
        self.asked().into_iter().map(target).collect()
    }

    pub(crate) fn options(&self) -> RebuildOptions {
        RebuildOptions {
            leave_same: self.switch(7),
            launch_absent: self.switch(8),
            force: self.switch(9),
            slurm_asks: self.switch(15),
        }
    }

    pub(crate) fn rollout(&self) -> Rollout {
        let mut request = Rollout::new(ImageId::new("img-2"));
        request.batch = self.size;
        request.canary = usize::from(self.switch(10));
        request.max_unavailable = self.switch(11).then_some(3);
        request.stop_after = self.switch(12).then_some(1);
        if self.switch(13) {
            request.how = RolloutHow::Jobs(JobForm::new(["main".to_owned()]));
        }
        request
    }

    pub(crate) fn groups_to_resize(&self) -> Vec<GroupSize> {
        vec![GroupSize {
            partition: None,
            stem: "n".to_owned(),
            first: 5,
            width: 1,
            size: self.size,
        }]
    }

    pub(crate) fn resize<'a>(&self, document: &'a Document, groups: &'a [GroupSize]) -> Resize<'a> {
        Resize {
            groups,
            gaps: if self.switch(14) { Gaps::Fill } else { Gaps::Keep },
            document,
            version: SlurmVersion::new(24, 11),
            patience: Duration::from_hours(1),
        }
    }

    pub(crate) fn cluster(&self) -> Cluster {
        let text = format!("VM.Standard2.1: {}", self.size);
        let limits = Limits::read("limits.yaml", &text).unwrap();
        generate(&limits, &slurm_testbed::shapes(), &slurmconf::GenerateOptions::default()).unwrap()
    }

    pub(crate) fn finish<'a>(&self, document: &'a Document, cluster: &'a Cluster) -> Finish<'a> {
        let (version, patience) = (SlurmVersion::new(22, 5), Duration::from_mins(1));
        Finish {
            document,
            cluster,
            version,
            force: self.switch(15),
            reload: true,
            unapplied: false,
            patience,
        }
    }

    /// All that a run before may have seen of nodes and instances.
    pub(crate) fn sightings(&self) -> Sightings {
        self.look(|world| {
            let (_, seen) = provision::plan::reconcile(&Sightings::default(), world);
            let mut earlier = Sightings::default();
            for (kind, subject, _) in seen.iter() {
                earlier.see(kind, subject.to_owned(), now() - Duration::from_hours(1));
            }
            earlier
        })
    }
}

fn nodes(states: &[(usize, usize)]) -> BTreeMap<NodeName, Node> {
    let node = |(number, (state, reason)): (u8, &(usize, usize))| {
        let mut node = Node::new(name(number), NodeState::from(STATES[*state]));
        let reason = REASONS[*reason];
        node.reason = (!reason.is_empty()).then(|| NodeReason::new(reason));
        (node.name.clone(), node)
    };
    (1_u8..).zip(states).map(node).collect()
}
