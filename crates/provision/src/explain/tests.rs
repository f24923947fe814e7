//! One row for each thing that can keep a job waiting or a node out of service.

mod rows;

use super::*;
use crate::budget::Allowance;
use crate::cause::Cause;
use crate::cooldown::Cooldowns;
use crate::site::{Identity, Pool, Site};
use crate::world::{Fleet, Roster};
use cloud_core::{
    Instance, InstanceId, InstanceName, InstanceState, Limit, Room, ShapeName, Tags, Zone,
};
use history::cost::{Budget, Price, Prices, Spending};
use history::{Event, EventKind};
use hostlist::NodeName;
use slurmconf::Config;
use slurmctl::{Job, JobState, Node, NodeReason, NodeState};
use std::time::UNIX_EPOCH;

const CONF: &str = "SlurmctldParameters=cloud_dns,max_powered_nodes=3
NodeName=n[1-4] CPUs=2 Features=shape=m1.large,fast State=CLOUD
NodeName=g[1-2] CPUs=2 Features=shape=g1.a100 State=CLOUD
NodeName=x1 CPUs=2 State=CLOUD
PartitionName=main Nodes=n[1-4] MaxTime=60 MaxNodes=3
PartitionName=gpu Nodes=g[1-2]
PartitionName=odd Nodes=x1
";

const OFF: &str = "IDLE+CLOUD+POWERED_DOWN";

/// What Slurm, the cloud and the state directory say, all of which a row may change.
struct Scene {
    config: Config,
    site: Site,
    job: Job,
    nodes: Vec<Node>,
    instances: Vec<Instance>,
    cooldowns: Cooldowns,
    events: Vec<Event>,
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(10)
}

fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

fn pool(shape: &str) -> Pool {
    Pool { shape: ShapeName::new(shape), zone: None }
}

impl Scene {
    /// Job 7 waits for one node of partition main, and every node is off.
    fn new() -> Self {
        let mut job = Job::new(JobId::new(7), JobState::Pending);
        (job.node_count, job.partition) = (1, "main".to_owned());
        job.reason = Some("Resources".to_owned());
        let names = ["n1", "n2", "n3", "n4", "g1", "g2", "x1"];
        let node = |text: &&str| {
            let mut node = Node::new(name(text), NodeState::from(OFF));
            if text.starts_with('n') {
                node.features = vec!["shape=m1.large".to_owned(), "fast".to_owned()];
            }
            node
        };
        Self {
            config: Config::parse(CONF).unwrap(),
            site: Site::new(Identity::cluster("c1")),
            job,
            nodes: names.iter().map(node).collect(),
            instances: Vec::new(),
            cooldowns: Cooldowns::new(),
            events: Vec::new(),
        }
    }

    fn reason(mut self, word: &str) -> Self {
        self.job.reason = Some(word.to_owned());
        self
    }

    fn wants(mut self, count: u32) -> Self {
        self.job.node_count = count;
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Puts nodes into a state, for a reason that `alice` gave 5 minutes ago.
    fn nodes(mut self, which: &[&str], state: &str, reason: &str) -> Self {
        for node in self.nodes.iter_mut().filter(|node| which.contains(&node.name.as_str())) {
            node.state = NodeState::from(state);
            node.reason = (!reason.is_empty()).then(|| NodeReason {
                text: reason.to_owned(),
                by: Some("alice".to_owned()),
                at: now().checked_sub(Duration::from_mins(5)),
            });
        }
        self
    }

    /// The job was requeued, and its node returned for this reason.
    fn requeued(self, reason: &str) -> Self {
        let scene = self.reason("BeginTime").nodes(&["n1"], OFF, reason);
        scene.with(|scene| {
            scene.job.restarts = 1;
            scene.job.eligible = now().checked_add(Duration::from_secs(90));
        })
    }

    fn facts<T>(&self, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        let conf = Roster::new(&self.config);
        let fleet = Fleet::new(&self.site.identity, &conf, self.instances.clone(), true);
        let nodes = self.nodes.iter().map(|node| (node.name.clone(), node.clone()));
        ask(&Facts {
            site: &self.site,
            conf: &conf,
            configuration: None,
            nodes: Ok(nodes.collect()),
            jobs: Ok(vec![self.job.clone()]),
            fleet: Ok(fleet),
            cooldowns: Ok(self.cooldowns.clone()),
            events: Ok(self.events.clone()),
            limits: Ok(Vec::new()),
            rooms: Rooms::new(),
            spending: None,
            now: now(),
        })
    }

    fn job(&self) -> Explanation {
        self.facts(|facts| job(JobId::new(7).into(), facts))
    }

    fn node(&self, which: &str) -> Explanation {
        self.facts(|facts| node(&name(which), facts))
    }
}

fn machine(node: &str, id: &str) -> Instance {
    let state = InstanceState::Running;
    let mut one = Instance::new(InstanceId::new(id), InstanceName::new(node), state);
    one.tags = Tags::from([("cluster", "c1"), ("type", "compute"), ("node", node)]);
    one.created = now().checked_sub(Duration::from_mins(4));
    one
}

#[test]
fn a_waiting_job_has_one_sentence_with_its_cause_and_a_remedy() {
    for (scene, cause, words) in rows::waiting_jobs() {
        let told = scene.job();
        assert_eq!(told.cause, cause, "{told:#?}");
        assert!(told.sentence.starts_with("Job 7 waits: "), "{told:#?}");
        assert!(
            told.sentence.ends_with('.') && told.sentence.contains(words),
            "{words}: {told:#?}"
        );
        assert!(told.remedy.ends_with('.') && !told.evidence.is_empty(), "{told:#?}");
    }
}

#[test]
fn the_admin_comment_is_the_first_sentence() {
    let reason = "launch: out of capacity (m1.large): No valid host.";
    let scene = Scene::new().requeued(&format!("elastic: {reason}"));
    assert_eq!(waits(JobId::new(7), reason), scene.job().sentence);
    let cleared = Scene::new().requeued("").with(|scene| {
        scene.job.admin_comment = Some(waits(JobId::new(7), reason));
    });
    assert_eq!(cleared.job().sentence, waits(JobId::new(7), reason), "Slurm cleared the reason");
}

#[test]
fn a_pool_that_said_no_is_told_with_tries_and_the_next_one() {
    let cooling = |minutes: u64| {
        let at = now() - Duration::from_mins(minutes);
        let place =
            history::RecordedPlace { shape: Some("m1.large".to_owned()), ..Default::default() };
        Event::new(at, "r", EventKind::Cooling).in_place(place)
    };
    let scene = Scene::new().wants(2).with(|scene| {
        let begun = now() - Duration::from_mins(2);
        scene.cooldowns.close(pool("m1.large"), Cause::Capacity, begun, Duration::from_mins(10));
        scene.events = vec![cooling(22), cooling(12), cooling(2)];
    });
    let told = scene.job().paragraph();
    assert_eq!(
        told,
        "Job 7 waits: m1.large is out of capacity. It needs 2 nodes; of those of partition main that fit, 4 cooling down. \
         m1.large has said no for 22 minutes (tried 3 times, next try in 8 minutes)."
    );
}

#[test]
fn a_node_that_keeps_fewer_does_not_hide_the_one_that_keeps_most() {
    let scene = Scene::new().wants(3).nodes(&["n1"], "DOWN+CLOUD", "Not responding");
    let scene = scene.nodes(&["n2", "n3"], "IDLE+CLOUD+DRAIN", "fan broken");
    let told = scene.job();
    assert_eq!(told.cause, "held_node", "{told:#?}");
    assert!(told.details.concat().contains("1 not responding, 2 held by an administrator"));
}

#[test]
fn a_job_that_does_not_wait_is_told_so() {
    for (state, cause) in
        [("RUNNING", "running"), ("COMPLETED", "ended"), ("CONFIGURING", "starting")]
    {
        let scene = Scene::new().with(|scene| {
            scene.job.state = JobState::from(state);
            scene.job.nodes = "n1".parse().unwrap();
        });
        assert_eq!(scene.job().cause, cause);
    }
    let missing = Scene::new().facts(|facts| job(JobId::new(8).into(), facts));
    assert_eq!(missing.cause, "unknown_job");
}

#[test]
fn a_task_of_an_array_is_explained_by_its_name() {
    let scene = Scene::new().with(|scene| scene.job.shown_as = Some("7_[3-9%2]".to_owned()));
    let told = |text: &str| scene.facts(|facts| job(text.parse().unwrap(), facts));
    let task = told("7_4");
    assert_eq!(task.subject, "job 7_4");
    assert!(task.sentence.starts_with("Job 7_4 waits: "), "{task:#?}");
    assert!(task.evidence[0].text.starts_with("job 7_[3-9%2]: PENDING"), "{task:#?}");
    assert!(told("7").sentence.starts_with("Job 7_[3-9%2] waits: "));
    assert_eq!(told("7_2").cause, "unknown_job");
}

#[test]
fn each_state_of_a_node_has_a_sentence() {
    let rows = [
        (Scene::new(), "n1", "off", "Node n1 is off, and starts when a job needs it."),
        (Scene::new().nodes(&["n1"], "IDLE+CLOUD", ""), "n1", "ready", "Node n1 is up and free."),
        (
            Scene::new().nodes(&["n1"], "IDLE+CLOUD+POWERING_DOWN", ""),
            "n1",
            "stopping",
            "Node n1 is powering down.",
        ),
        (
            Scene::new().nodes(&["n1"], "IDLE+CLOUD+DRAIN", "fan"),
            "n1",
            "held_node",
            "Node n1 is out of service by alice (fan).",
        ),
        (
            Scene::new()
                .nodes(&["n1"], "ALLOCATED+CLOUD+POWERING_UP", "")
                .with(|it| it.instances = vec![machine("n1", "i-1")]),
            "n1",
            "starting",
            "Node n1 starts: its machine is running for 4 minutes, and slurmd has not registered.",
        ),
        (
            Scene::new().with(|it| it.instances = vec![machine("n1", "i-1"), machine("n1", "i-2")]),
            "n1",
            "duplicates",
            "Node n1 cannot be had: 2 machines have the name n1.",
        ),
        (Scene::new(), "z9", "unknown_node", "There is no node z9 in Slurm or slurm.conf."),
    ];
    for (scene, which, cause, sentence) in rows {
        let told = scene.node(which);
        assert_eq!((told.cause, told.sentence.as_str()), (cause, sentence));
    }
}

#[test]
fn what_could_not_be_learnt_is_named_and_not_guessed() {
    let scene = Scene::new().requeued("elastic: launch: quota exceeded (m1.large)");
    let told = scene.facts(|facts| {
        let unseen = || "permission denied".to_owned();
        let mut facts = facts.clone();
        facts.fleet = Err(unseen());
        facts.cooldowns = Err(unseen());
        facts.events = Err(unseen());
        job(JobId::new(7).into(), &facts)
    });
    assert_eq!(told.cause, "quota", "the reason that Slurm keeps is enough");
    let unseen = told.evidence.iter().filter(|seen| seen.source == "not seen");
    assert_eq!(unseen.count(), 3, "{told:#?}");
    let silent = scene.facts(|facts| {
        let facts = Facts { nodes: Err("no answer".to_owned()), ..facts.clone() };
        [job(JobId::new(7).into(), &facts), node(&name("n1"), &facts), cluster(&facts).remove(0)]
    });
    assert!(silent.iter().all(|told| told.cause == "slurmctld"), "{silent:#?}");
}

#[test]
fn a_used_up_limit_is_evidence_for_a_quota() {
    let scene = Scene::new().with(|scene| {
        scene.cooldowns.close(pool("m1.large"), Cause::Quota, now(), Duration::from_mins(10));
    });
    let limit = |name: &str, used| Limit {
        name: name.to_owned(),
        zone: Some(Zone::new("a")),
        most: Some(8),
        used: Some(used),
    };
    let told = scene.facts(|facts| {
        let facts = Facts { limits: Ok(vec![limit("cores", 8), limit("ram", 1)]), ..facts.clone() };
        job(JobId::new(7).into(), &facts)
    });
    let texts: Vec<&str> = told.evidence.iter().map(|seen| seen.text.as_str()).collect();
    assert!(texts.contains(&"limit cores in a: 8 of 8 used"), "{texts:#?}");
    assert!(!texts.iter().any(|text| text.contains("ram")), "{texts:#?}");
}

#[test]
fn a_pool_that_said_no_is_told_with_the_zones_that_have_room() {
    let in_zone = |zone: &str| Pool { zone: Some(Zone::new(zone)), ..pool("m1.large") };
    let told = |rooms: Rooms| {
        let scene = Scene::new();
        scene.facts(|facts| elsewhere::elsewhere(&in_zone("a"), &Facts { rooms, ..facts.clone() }))
    };
    let room = |zone: &str, room| ((ShapeName::new("m1.large"), Zone::new(zone)), room);
    assert_eq!(told(Rooms::new()), None);
    let rows = [
        room("a", Ok(Some(Room::Some))),
        room("b", Ok(Some(Room::Machines(1)))),
        room("c", Ok(Some(Room::None))),
        room("d", Err("not allowed".to_owned())),
    ];
    assert_eq!(
        told(Rooms::from(rows)).unwrap(),
        "By the cloud's own report, which counts no quotas, b has room for 1, c has none. Whether d has room is not known."
    );
    let silent = Rooms::from([room("b", Ok(None))]);
    assert_eq!(told(silent).unwrap(), "Whether b has room is not known.");
}

#[test]
fn the_cluster_is_told_with_what_is_left_of_the_budget() {
    let unit = |units: u64| Price::from_micros(units * 1_000_000);
    let scene = Scene::new().with(|scene| {
        let prices = Prices::read("p", "currency: USD\nshapes: {m1.large: 1}\n").unwrap();
        let budget = Budget { per_day: Some(unit(20)), ..Budget::default() };
        scene.site.allowance = Some(Allowance { budget, prices });
    });
    let told = |spent: u64| {
        let spending = Spending { day: unit(spent).amount(), month: unit(spent).amount() };
        scene.facts(|facts| cluster(&Facts { spending: Some(spending), ..facts.clone() }))
    };
    let budget = |spent| told(spent).first().unwrap().details.concat();
    assert_eq!(budget(18), "Of the budget, 18.00 of 20.00 USD spent this day; 2.00 left.");
    let reached = "Of the budget, 20.00 of 20.00 USD spent this day; no machine is started before 1970-01-02T00:00:00Z.";
    assert_eq!(budget(20), reached);
    let unknown = scene.facts(cluster);
    assert!(unknown.first().unwrap().details.is_empty(), "what was spent could not be read");
}

#[test]
fn the_cluster_is_told_job_by_job_and_by_kinds_of_nodes() {
    let told = Scene::new().nodes(&["n1", "n2"], "IDLE+CLOUD+DRAIN", "fan").facts(cluster);
    let sentences: Vec<String> = told.iter().map(Explanation::paragraph).collect();
    assert_eq!(sentences.first().unwrap(), "1 job waits, and 3 nodes are out of service.");
    assert!(sentences.iter().any(|text| text.contains("The same holds for 2 nodes: n[1-2].")));
    let well = Scene::new().with(|scene| {
        scene.job.state = JobState::Running;
        scene.nodes.pop();
    });
    let told = well.facts(cluster);
    assert_eq!((told.len(), told.first().unwrap().cause), (1, "well"));
}
