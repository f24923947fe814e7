//! What Slurm and the cloud say of each node, as rows of a table.

use crate::plan::{Refusal, Target, configured};
use crate::time::Utc;
use crate::world::World;
use cloud_core::{Instance, InstanceState};
use hostlist::NodeName;
use serde::Serialize;
use slurmctl::{BaseState, StateFlag};
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
    /// The address.
    pub address: Option<String>,
    /// How old the instance is.
    pub age: Option<String>,
    /// The shape.
    pub shape: Option<String>,
    /// The zone.
    pub zone: Option<String>,
    /// The image.
    pub image: Option<String>,
    /// The instance.
    pub instance: Option<String>,
    /// Why it is as it is.
    pub why: Option<String>,
}

impl NodeRow {
    /// The row of a node; one that nobody knows says so.
    #[must_use]
    pub fn of(node: &NodeName, world: World<'_>, unknown: bool) -> Self {
        let slurm = world.node(node);
        let instances = world.fleet.of(node);
        let mut live = instances.iter().filter(|instance| instance.state.is_live());
        let instance = live.next().or(instances.first());
        let several = live.next().is_some();
        let fault = instance.and_then(|instance| instance.fault.as_ref());
        let reason = slurm.map(slurmctl::Node::reason_text).filter(|reason| !reason.is_empty());
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
        Self { slurm: slurm.map(|slurm| slurm.state.to_string().to_lowercase()), why, ..row }
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
            age: instance.created.map(|at| age(at, now)),
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

/// How old, in the one unit that says most.
fn age(created: SystemTime, now: SystemTime) -> String {
    let seconds = now.duration_since(created).unwrap_or_default().as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
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
    use std::time::Duration;

    fn states(words: &[&str]) -> StateFilter {
        StateFilter::new(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn row(slurm: &str, cloud: &str) -> NodeRow {
        let some = |text: &str| (text != "-").then(|| text.to_owned());
        NodeRow { slurm: some(slurm), cloud: some(cloud), ..NodeRow::default() }
    }

    #[test]
    fn an_age_is_in_the_unit_that_says_most() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(10_000);
        for (seconds, text) in
            [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")]
        {
            assert_eq!(age(now - Duration::from_secs(seconds), now), text);
        }
        assert_eq!(age(now + Duration::from_secs(5), now), "0s");
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
