//! What Slurm and the cloud say of each node, as rows of a table.

use crate::plan::{OUR_PREFIX, Refusal, Target, all_cooling, configured};
use crate::time::Utc;
use crate::world::World;
use cloud_core::{Instance, InstanceState};
use hostlist::NodeName;
use serde::Serialize;
use slurmctl::{BaseState, Node, StateFlag};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// What is known of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeRow {
    /// The node, or the instance of one that slurm.conf does not have.
    pub node: String,
    /// Its state in Slurm, such as `idle+cloud`.
    pub slurm: Option<String>,
    /// Its instance's state in the cloud.
    pub cloud: Option<String>,
    /// The jobs that have the node.
    pub jobs: Vec<u32>,
    /// The address.
    pub address: Option<String>,
    /// How old the instance is, in seconds.
    pub age_seconds: Option<u64>,
    /// The shape.
    pub shape: Option<String>,
    /// The zone.
    pub zone: Option<String>,
    /// The image.
    pub image: Option<String>,
    /// The instance.
    pub instance: Option<String>,
    /// Why it is as it is, while that is true.
    pub why: Option<String>,
}

impl NodeRow {
    /// The row of a node; one that nobody knows says so.
    #[must_use]
    pub fn of(node: &NodeName, world: World<'_>, unknown: bool) -> Self {
        let slurm = world.node(node);
        let instances = world.fleet.of(node);
        let mut live = instances.iter().filter(|instance| instance.state.is_live());
        let instance = live.next();
        let several = live.next().is_some();
        let fault = instance.and_then(|instance| instance.fault.as_ref());
        let reason = slurm.and_then(|slurm| true_reason(slurm, world));
        // One that was made by scontrol create is known to slurmctld alone.
        let unknown =
            unknown || instance.is_some() && slurm.is_none() && world.conf.get(node).is_none();
        let why = match (reason, fault) {
            _ if several => Some("several machines have this name; see reconcile".to_owned()),
            (Some(reason), _) => Some(reason.to_owned()),
            (None, Some(fault)) => Some(fault.message.clone()),
            (None, None) => unknown.then(|| Refusal::NotInSlurmConf.to_string()),
        };
        let row = Self::of_instance(node.to_string(), instance, world.now);
        let jobs = world.jobs_on(node).map(|job| job.id.get()).collect();
        Self { slurm: slurm.map(|slurm| slurm.state.to_string().to_lowercase()), jobs, why, ..row }
    }

    /// The rows of our machines whose nodes slurm.conf does not have: they cost money, and nobody else shows them.
    #[must_use]
    pub fn of_strangers(world: World<'_>) -> Vec<Self> {
        let is_live = |instance: &&Instance| instance.state.is_live();
        let mut nodes = world.fleet.nodes();
        nodes.retain(|node| {
            world.conf.get(node).is_none() && world.fleet.of(node).iter().any(|it| is_live(&it))
        });
        let nameless = world.fleet.nameless().iter().filter(is_live).map(|instance| Self {
            why: Some(Refusal::NotInSlurmConf.to_string()),
            ..Self::of_instance(instance.name.to_string(), Some(instance), world.now)
        });
        nodes.iter().map(|node| Self::of(node, world, false)).chain(nameless).collect()
    }

    fn of_instance(node: String, instance: Option<&Instance>, now: SystemTime) -> Self {
        let Some(instance) = instance else { return Self { node, ..Self::default() } };
        Self {
            node,
            cloud: Some(instance.state.to_string()),
            address: instance.address.map(|address| address.to_string()),
            age_seconds: instance.created.map(|at| seconds(at, now)),
            shape: instance.shape.as_ref().map(ToString::to_string),
            zone: instance.zone.as_ref().map(ToString::to_string),
            image: instance.image.as_ref().map(ToString::to_string),
            instance: Some(instance.id.to_string()),
            ..Self::default()
        }
    }

    /// True if the node has a machine or a reason; where it cannot be known which have a machine, also if it may have one.
    #[must_use]
    pub fn is_interesting(&self, listing_complete: bool) -> bool {
        let may_run = || self.slurm.is_some() && !self.has_state("powered_down");
        self.instance.is_some() || self.why.is_some() || !listing_complete && may_run()
    }

    /// True if one of its two states has this word, or is what sinfo calls by it.
    fn has_state(&self, wanted: &str) -> bool {
        let slurm = self.slurm.as_deref().unwrap_or_default();
        let has = |wanted: &str| slurm.split('+').any(|word| word.eq_ignore_ascii_case(wanted));
        let busy = || BUSY.iter().any(|word| has(word));
        match wanted {
            "drained" => has("drain") && !busy(),
            "draining" => has("drain") && busy(),
            _ => {
                has(wanted) || self.cloud.as_ref().is_some_and(|it| it.eq_ignore_ascii_case(wanted))
            }
        }
    }
}

fn seconds(created: SystemTime, now: SystemTime) -> u64 {
    now.duration_since(created).unwrap_or_default().as_secs()
}

/// The reason of a node while it is true: Slurm keeps one after what it tells is over.
fn true_reason<'a>(node: &'a Node, world: World<'_>) -> Option<&'a str> {
    let text = node.reason_text();
    let state = &node.state;
    let flags = [
        StateFlag::Drain,
        StateFlag::Fail,
        StateFlag::InvalidReg,
        StateFlag::Maintenance,
        StateFlag::NotResponding,
        StateFlag::RebootIssued,
        StateFlag::RebootRequested,
    ];
    // 24.11 calls a node that is powered down not responding, too.
    let speaks = |flag: &StateFlag| {
        state.has(flag) && !(*flag == StateFlag::NotResponding && state.is_powered_down())
    };
    let out_of_service = state.is_down() || flags.iter().any(speaks);
    let lasts =
        || text.starts_with(OUR_PREFIX) && state.is_powered_down() && fails_now(node, world);
    (!text.is_empty() && (out_of_service || lasts())).then_some(text)
}

/// True while a start of the node would fail again, or has just failed.
fn fails_now(node: &Node, world: World<'_>) -> bool {
    let rests = world.cooldowns.resting(&node.name).is_some_and(|rest| rest.lasts(world.now));
    let places = world.conf.get(&node.name).and_then(|def| world.site.places(def));
    let cools = || all_cooling(&places.unwrap_or_default(), world.cooldowns, world.now).is_some();
    let age = node.reason.as_ref().and_then(|it| world.now.duration_since(it.at?).ok());
    let is_new = age.is_some_and(|age| age < world.site.policies.cooldown);
    rests || is_new || cools()
}

/// Which image a node has, and which it should have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageRow {
    /// The node.
    pub node: String,
    /// The image that its instance has.
    pub image: Option<String>,
    /// The image that it should have.
    pub target: Option<String>,
    /// How far it is.
    pub state: &'static str,
    /// Since when Slurm has its reason.
    pub since: Option<String>,
}

impl ImageRow {
    /// The row of a node.
    #[must_use]
    pub fn of(target: &Target, world: World<'_>) -> Self {
        let node = &target.node;
        let instance = world.fleet.of(node).iter().find(|instance| instance.state.is_live());
        let instance = instance.or_else(|| world.fleet.named(node));
        let image = instance.and_then(|instance| instance.image.clone());
        // A node without a machine gets the image that a start gives it, whatever a rollout is about.
        let wanted = match &instance {
            Some(_) => target.image(world),
            None => configured(node, world),
        };
        let wanted = wanted.ok();
        let slurm = world.node(node);
        let state = match (&image, &wanted) {
            (None, _) => "no machine",
            (Some(_), None) => "no target",
            (Some(has), Some(wants)) if has == wants => "done",
            _ if slurm.is_some_and(|node| node.state.is_reboot_issued()) => "rebuilding",
            _ => "waiting",
        };
        let since = slurm.and_then(|node| node.reason.as_ref()?.at);
        Self {
            node: node.to_string(),
            image: image.map(|image| image.to_string()),
            target: wanted.map(|image| image.to_string()),
            state,
            since: since.map(|at| Utc(at).to_string()),
        }
    }
}

/// What sinfo calls states that scontrol writes otherwise.
const SHORT: [(&str, &str); 8] = [
    ("alloc", "allocated"),
    ("comp", "completing"),
    ("maint", "maintenance"),
    ("mix", "mixed"),
    ("no_respond", "not_responding"),
    ("plnd", "planned"),
    ("resv", "reserved"),
    ("unk", "unknown"),
];

/// Words of nodes that have a job, or had one a moment ago.
const BUSY: [&str; 3] = ["allocated", "mixed", "completing"];

/// States to list, in the words of Slurm, of sinfo or of the cloud; none at all means any.
#[derive(Clone, Debug, Default)]
pub struct StateFilter(BTreeSet<String>);

impl StateFilter {
    /// The states of these words.
    #[must_use]
    pub fn new(words: &[String]) -> Self {
        let whole = |word: &String| {
            let word = word.trim().to_lowercase();
            let long = SHORT.iter().find(|(short, _)| *short == word);
            long.map_or(word, |(_, long)| (*long).to_owned())
        };
        Self(words.iter().map(whole).collect())
    }

    /// True if any state is listed.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// True if a node is listed.
    #[must_use]
    pub fn matches(&self, row: &NodeRow) -> bool {
        self.is_any() || self.0.iter().any(|wanted| row.has_state(wanted))
    }

    /// The words that nobody writes: not Slurm, not sinfo, not a cloud, and none of these nodes either.
    #[must_use]
    pub fn unknown(&self, rows: &[NodeRow]) -> Vec<&str> {
        let words = self.0.iter().map(String::as_str);
        words.filter(|word| !is_word(word) && !rows.iter().any(|row| row.has_state(word))).collect()
    }
}

fn is_word(word: &str) -> bool {
    use InstanceState::{Failed, Pending, Running, Stopped, Stopping, Terminated, Terminating};
    let slurms = word.to_uppercase();
    let clouds = [Pending, Running, Stopping, Stopped, Terminating, Terminated, Failed];
    !matches!(BaseState::from(slurms.as_str()), BaseState::Other(_))
        || !matches!(StateFlag::from(slurms.as_str()), StateFlag::Other(_))
        || clouds.iter().any(|state| state.to_string() == word)
        || matches!(word, "drained" | "draining")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;
    use crate::cooldown::Cooldowns;
    use crate::site::{Identity, Pool, Site};
    use crate::world::{Fleet, Roster};
    use cloud_core::ShapeName;
    use slurmctl::NodeReason;
    use std::time::Duration;

    fn states(words: &[&str]) -> StateFilter {
        StateFilter::new(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn row(slurm: &str, cloud: &str) -> NodeRow {
        let some = |text: &str| (text != "-").then(|| text.to_owned());
        NodeRow { slurm: some(slurm), cloud: some(cloud), ..NodeRow::default() }
    }

    #[test]
    fn an_age_is_never_negative() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(10_000);
        assert_eq!(seconds(now - Duration::from_secs(119), now), 119);
        assert_eq!(seconds(now + Duration::from_secs(5), now), 0);
    }

    #[test]
    fn a_reason_is_shown_while_it_is_true() {
        let ours = "elastic: launch: out of capacity (m1.large)";
        let off = "IDLE+CLOUD+POWERED_DOWN";
        let rows = [
            ("IDLE+CLOUD+DRAIN", "fan", 90, false, true),
            ("DOWN+CLOUD", "disk", 90, false, true),
            ("IDLE+CLOUD", "rebuild image:x : reboot issued", 1, false, false),
            (off, ours, 5, false, true),
            (off, ours, 90, false, false),
            (off, ours, 90, true, true),
            ("ALLOCATED+CLOUD", ours, 5, true, false),
            ("IDLE+CLOUD+POWERED_DOWN+NOT_RESPONDING", ours, 90, false, false),
        ];
        let config = "NodeName=n1 Features=shape=m1.large State=CLOUD\n";
        let (config, site) =
            (slurmconf::Config::parse(config).unwrap(), Site::new(Identity::by_name()));
        let (conf, fleet) = (Roster::new(&config), Fleet::default());
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(10);
        for (state, text, minutes, cools, shown) in rows {
            let mut node = Node::new(NodeName::new("n1").unwrap(), state.parse().unwrap());
            let at = Some(now - Duration::from_mins(minutes));
            node.reason = Some(NodeReason { text: text.to_owned(), by: None, at });
            let mut cooldowns = Cooldowns::new();
            if cools {
                let pool = Pool { shape: ShapeName::new("m1.large"), zone: None };
                cooldowns.close(pool, Cause::Capacity, now, Duration::from_mins(10));
            }
            let (site, conf, fleet, cooldowns) = (&site, &conf, &fleet, &cooldowns);
            let (slurm, jobs, spending) = (None, None, None);
            let world = World { site, conf, fleet, slurm, jobs, cooldowns, spending, now };
            assert_eq!(true_reason(&node, world).is_some(), shown, "{state} {text} {minutes}");
        }
    }

    #[test]
    fn a_state_is_asked_for_in_the_words_of_slurm_sinfo_or_the_cloud() {
        for (wanted, slurm, cloud, fits) in [
            (&["idle"][..], "idle+cloud", "running", true),
            (&["IDLE"], "idle+cloud", "running", true),
            (&["running"], "idle+cloud", "running", true),
            (&["down", "idle"], "idle+cloud", "-", true),
            (&["down", "mixed"], "idle+cloud", "-", false),
            (&["mix"], "mixed+cloud", "running", true),
            (&["power"], "idle+powering_up", "-", false),
            (&["drain"], "idle+cloud+drain", "running", true),
            (&["drained"], "idle+cloud+drain", "running", true),
            (&["drained"], "mixed+cloud+drain", "running", false),
            (&["draining"], "mixed+cloud+drain", "running", true),
            (&["draining"], "idle+cloud+drain", "running", false),
            (&["rescue"], "idle", "RESCUE", true),
            (&[], "idle", "-", true),
        ] {
            let matches = states(wanted).matches(&row(slurm, cloud));
            assert_eq!(matches, fits, "{wanted:?} of {slurm} {cloud}");
        }
    }

    #[test]
    fn words_that_nobody_writes_are_unknown() {
        let shown = [row("idle+cloud", "RESCUE"), row("idle+blessed", "-")];
        let asked = states(&["idle", "alloc", "drained", "pending", "rescue", "blessed", "runing"]);
        assert_eq!(asked.unknown(&shown), ["runing"]);
        assert_eq!(asked.unknown(&[]), ["blessed", "rescue", "runing"]);
    }
}
