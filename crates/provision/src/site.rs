//! What the operator decided: whose instances are ours, where nodes go, and the policies.

mod place;

pub use place::{Patience, Place, Pool};

use crate::budget::Allowance;
use crate::plan::Refusal;
use crate::policies::Policies;
use cloud_core::{
    ImageId, Instance, InstanceName, InstanceSpec, Secret, ShapeName, SubnetId, Tags, Zone,
};
use history::cost::Prices;
use hostlist::NodeName;
use slurmconf::{Features, NodeDef, PlaceChoice};
use std::collections::BTreeMap;

/// By what an instance is known to be ours.
///
/// The tags `cluster` and `type` are a contract with what destroys the cluster in the end.
///
/// ```
/// use cloud_core::{Instance, InstanceId, InstanceName, InstanceState, Tags};
/// use provision::Identity;
///
/// let ours = Identity::cluster("cheerful-macaw");
/// let mut instance =
///     Instance::new(InstanceId::new("i-1"), InstanceName::new("n1"), InstanceState::Running);
/// assert!(!ours.owns(&instance));
/// instance.tags = Tags::from([("cluster", "cheerful-macaw"), ("type", "compute")]);
/// assert!(ours.owns(&instance));
/// assert_eq!(ours.node_of(&instance).unwrap().as_str(), "n1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    cluster: Option<String>,
}

impl Identity {
    /// Ours is what carries this cluster's tags.
    #[must_use]
    pub fn cluster(id: impl Into<String>) -> Self {
        Self { cluster: Some(id.into()) }
    }

    /// Ours is what has the name of a node and no tag of any cluster: for a configuration of CitC 2,
    /// which has no cluster id.
    #[must_use]
    pub fn by_name() -> Self {
        Self { cluster: None }
    }

    /// The cluster's id.
    #[must_use]
    pub(crate) fn id(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// True if instances are told by name alone.
    #[must_use]
    pub(crate) fn is_by_name(&self) -> bool {
        self.cluster.is_none()
    }

    /// The tags of all that is ours, to list by.
    #[must_use]
    pub(crate) fn tags(&self) -> Tags {
        match &self.cluster {
            Some(id) => Tags::from([("cluster", id.as_str()), ("type", "compute")]),
            None => Tags::new(),
        }
    }

    /// The tags that a node's instance is launched with.
    #[must_use]
    pub fn tags_of(&self, node: &NodeName) -> Tags {
        self.tags().with("type", "compute").with("node", node.as_str())
    }

    /// True if the instance is ours, by its tags alone or, without a cluster id, by its name.
    #[must_use]
    pub fn owns(&self, instance: &Instance) -> bool {
        match &self.cluster {
            Some(_) => instance.tags.include(&self.tags()),
            None => instance.tags.get("cluster").is_none() && self.node_of(instance).is_some(),
        }
    }

    /// The node that an instance is for: its tag `node`, or else its name.
    #[must_use]
    pub fn node_of(&self, instance: &Instance) -> Option<NodeName> {
        let name = instance.tags.get("node").unwrap_or(instance.name.as_str());
        NodeName::new(name).ok()
    }
}

/// What a node asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The node.
    pub node: NodeName,
    /// The image to boot from.
    pub image: ImageId,
    /// Where it may go, first choice first; never empty.
    pub places: Vec<Place>,
    /// The name of the key pair whose keys may log in; the site's keys without it.
    pub keypair: Option<String>,
    /// Tags besides our own: whose job it is launched for, if it is one.
    pub labels: Tags,
    /// True if its machine is kept when it is not needed: stopped, and not terminated.
    pub warm: bool,
}

/// The tag of machines that are kept warm: what their launch requested, so that none is used that is not as wanted.
const CONFIGURATION: &str = "configuration";

/// Where a node may go besides its own place: what is not given stays as the node has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fallback {
    /// Another shape, as in slurm.conf.
    pub shape: Option<String>,
    /// Another zone.
    pub zone: Option<Zone>,
    /// Another network. It is no other supply of machines: a place that differs in this alone cools
    /// down together with the first.
    pub subnet: Option<SubnetId>,
    /// May be taken away at any time.
    pub preemptible: bool,
}

/// What the operator decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Whose instances are ours.
    pub identity: Identity,
    /// The image of nodes whose features name none.
    pub image: Option<ImageId>,
    /// Other images for shapes with a word in their name, such as `GPU`, of nodes whose features name none.
    pub shape_images: BTreeMap<String, ImageId>,
    /// Images that features call by name.
    pub images: BTreeMap<String, ImageId>,
    /// What stands before a number that a node has for its zone, in the name of the zone.
    pub zone_root: Option<String>,
    /// Zones for nodes whose features name none, first choice first.
    pub zones: Vec<Zone>,
    /// The network of nodes whose features name none.
    pub subnet: Option<SubnetId>,
    /// Networks that features call by name.
    pub subnets: BTreeMap<String, SubnetId>,
    /// True if nodes' own machines may be taken away at any time, at a lower price.
    pub preemptible: bool,
    /// Places to try when a node's own have no machine left, in this order.
    pub fallback: Vec<Fallback>,
    /// Lines for the login user's `authorized_keys`.
    pub ssh_keys: Vec<String>,
    /// Key pairs that features call by name; without keys, those that the cloud itself has.
    pub keypairs: BTreeMap<String, Vec<String>>,
    /// What cloud-init gets.
    pub user_data: Option<Secret<String>>,
    /// All else that launches say and this does not know, so that their tokens change with it.
    pub beside: String,
    /// What may be spent, if that is limited.
    pub allowance: Option<Allowance>,
    /// What machines cost, if that is known: the places that a node's line lists are tried cheapest first.
    pub prices: Option<Prices>,
    /// Choices and bounds of a run.
    pub policies: Policies,
}

impl Site {
    /// A site with nothing but an identity; the fields take the rest.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            image: None,
            shape_images: BTreeMap::new(),
            images: BTreeMap::new(),
            zone_root: None,
            zones: Vec::new(),
            subnet: None,
            subnets: BTreeMap::new(),
            preemptible: false,
            fallback: Vec::new(),
            ssh_keys: Vec::new(),
            keypairs: BTreeMap::new(),
            user_data: None,
            beside: String::new(),
            allowance: None,
            prices: None,
            policies: Policies::default(),
        }
    }

    /// What a node of this definition asks for, from its features `shape=` or `flavor=`, `zone=` or
    /// CitC's `ad=`, `image=`, `network=` and `keypair=`.
    pub fn wanted(&self, node: &NodeName, def: &NodeDef) -> Result<Wanted, Refusal> {
        let feature = |key| def.features.as_ref().and_then(|features| features.value(key));
        let places = self.places(def).ok_or(Refusal::NoShape)?;
        let image = self.image_of(def.features.as_ref()).ok_or(Refusal::NoImage)?;
        let keypair = feature("keypair").map(str::to_owned);
        if let Some(name) = keypair.as_ref().filter(|name| !self.keypairs.contains_key(*name)) {
            return Err(Refusal::UnknownKeypair(name.clone()));
        }
        let warm = def.features.as_ref().is_some_and(Features::is_warm);
        Ok(Wanted { node: node.clone(), image, places, keypair, labels: Tags::new(), warm })
    }

    /// The image of a node with these features: the one they name, or else that of its shape.
    pub(crate) fn image_of(&self, features: Option<&Features>) -> Option<ImageId> {
        let feature = |key| features.and_then(|features| features.value(key));
        if let Some(name) = feature("image") {
            return Some(self.images.get(name).cloned().unwrap_or_else(|| ImageId::new(name)));
        }
        let shape = feature("shape").or_else(|| feature("flavor")).unwrap_or_default();
        let mut other = self.shape_images.iter().filter(|(word, _)| shape.contains(word.as_str()));
        other.next().map(|(_, image)| image).or(self.image.as_ref()).cloned()
    }

    /// Where nodes of this definition may go, first choice first; none if it has no shape.
    #[must_use]
    pub(crate) fn places(&self, def: &NodeDef) -> Option<Vec<Place>> {
        let feature = |key| def.features.as_ref().and_then(|features| features.value(key));
        let shape = feature("shape").or_else(|| feature("flavor"))?;
        let subnet = match feature("network") {
            Some(name) => {
                Some(self.subnets.get(name).cloned().unwrap_or_else(|| SubnetId::new(name)))
            }
            None => self.subnet.clone(),
        };
        let zone = def.zone().map(|name| self.zone(name));
        let features = def.features.as_ref()?;
        let preemptible = features.preemptible().or(features.give_up_after().map(|_| true));
        let preemptible = preemptible.unwrap_or(self.preemptible);
        let first = Place { subnet, preemptible, ..Place::new(shape) };
        Some(self.places_from(&first, zone, features))
    }

    /// The zone that a node's feature means: a number stands behind the root, and a name for itself.
    #[must_use]
    pub fn zone(&self, name: &str) -> Zone {
        match &self.zone_root {
            Some(root) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                Zone::new(format!("{root}{name}"))
            }
            _ => Zone::new(name),
        }
    }

    /// The places that a node's line lists, or else its own and the site's, each once.
    fn places_from(&self, first: &Place, zone: Option<Zone>, features: &Features) -> Vec<Place> {
        let in_zone = |zone: &Zone| Place { zone: Some(zone.clone()), ..first.clone() };
        let own: Vec<Place> = match zone {
            Some(zone) => vec![in_zone(&zone)],
            None if self.zones.is_empty() => vec![first.clone()],
            None => self.zones.iter().map(in_zone).collect(),
        };
        let home = own.first().cloned().unwrap_or_else(|| first.clone());
        let choices = features.places();
        // A choice without a zone is in each of the node's.
        let chosen = |choice| own.iter().map(move |home| self.choice(choice, home));
        let mut listed: Vec<Place> = choices.iter().flat_map(chosen).collect();
        if listed.is_empty() {
            let others = self.fallback.iter().map(|other| other.from(&home));
            listed.extend(own.iter().cloned().chain(others));
        } else {
            self.sort_by_price(&mut listed);
        }
        let listed = match features.give_up_after() {
            Some(after) => place::with_patience(listed, after),
            None => listed,
        };
        let mut places: Vec<Place> = Vec::new();
        for place in listed {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// A place that a node's line lists: what it does not say is as the node's own.
    fn choice(&self, choice: &PlaceChoice, home: &Place) -> Place {
        let shape = choice.shape.as_deref().map(ShapeName::new);
        let zone = choice.zone.as_deref().map(|zone| self.zone(zone));
        Place {
            shape: shape.unwrap_or_else(|| home.shape.clone()),
            zone: zone.or_else(|| home.zone.clone()),
            preemptible: choice.preemptible.unwrap_or(home.preemptible),
            ..home.clone()
        }
    }

    /// Puts the cheapest first, where prices are known. Places that cost the same keep their order, and those without a price
    /// come last.
    fn sort_by_price(&self, places: &mut [Place]) {
        let Some(prices) = &self.prices else { return };
        places.sort_by_key(|place| {
            let hour = prices.hour(place.pool().shape.as_str());
            (hour.is_none(), hour)
        });
    }

    /// The launch of a node in a place.
    ///
    /// The token changes when what is said here changes, and only then: a repeat with the same
    /// `generation` gives the same instance, where the cloud knows tokens.
    #[must_use]
    pub fn spec(&self, wanted: &Wanted, place: &Place, generation: u32) -> InstanceSpec {
        let name = InstanceName::new(wanted.node.as_str());
        let mut spec = InstanceSpec::new(name, place.shape.clone(), wanted.image.clone());
        spec.zone.clone_from(&place.zone);
        spec.subnet.clone_from(&place.subnet);
        spec.preemptible = place.preemptible;
        let own = self.identity.tags_of(&wanted.node);
        let keys = wanted.keypair.as_ref().and_then(|name| self.keypairs.get(name));
        spec.ssh_keys.clone_from(keys.unwrap_or(&self.ssh_keys));
        spec.keypair.clone_from(&wanted.keypair);
        spec.user_data.clone_from(&self.user_data);
        // A warm machine serves other jobs than the one that it was launched for.
        let labels = match crate::token::configuration(&spec, &self.beside) {
            Some(digest) if wanted.warm => Tags::new().with(CONFIGURATION, digest.as_str()),
            Some(_) | None => wanted.labels.clone(),
        };
        // Our own tags come last: they say whose instance it is.
        spec.tags = labels.iter().chain(own.iter()).collect();
        spec.token = crate::token::of(&spec, &self.beside, generation);
        spec
    }
}

impl Site {
    /// True if a launch of the warm node in this place would make the instance as it is.
    pub(crate) fn would_make(&self, wanted: &Wanted, place: &Place, instance: &Instance) -> bool {
        let spec = self.spec(wanted, place, 0);
        spec.tags.get(CONFIGURATION) == instance.tags.get(CONFIGURATION)
            && instance.image.as_ref() == Some(&wanted.image)
    }
}

impl Fallback {
    fn from(&self, home: &Place) -> Place {
        let shape = self.shape.as_deref().map(ShapeName::new);
        Place {
            shape: shape.unwrap_or_else(|| home.shape.clone()),
            zone: self.zone.clone().or_else(|| home.zone.clone()),
            subnet: self.subnet.clone().or_else(|| home.subnet.clone()),
            preemptible: self.preemptible,
            patience: None,
        }
    }
}
