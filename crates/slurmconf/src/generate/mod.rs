//! Generating node and partition lines from limits and shapes.

mod elastic;
mod gres;
mod name;
mod places;
mod style;

pub use elastic::{ElasticSettings, Program};
pub use style::Style;

use crate::{
    error::{Error, Problem, Result},
    limits::{Group, Limits, MAX_WEIGHT},
    model::{ConfiguredState, Features, GresList, NodeDef, NodeSet, PartitionDef, WARM},
    shapes::{MemoryPolicy, NodeShape, Shapes},
};
use hostlist::Hostlist;
use name::Names;
use std::collections::HashMap;

/// Options of [`generate`] for all nodes of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenerateOptions {
    /// The prefix of node names without an availability domain, as in CitC since version 5.
    pub cluster_id: Option<String>,
    /// The style of the lines.
    pub style: Style,
    /// How `RealMemory` is computed.
    pub memory: MemoryPolicy,
    /// The generated partition with `Default=YES`, if any.
    pub default_partition: Option<String>,
    /// The feature that names the zone of a node; CitC's `ad` if none is given, and always in [`Style::Citc`].
    pub zone_feature: Option<String>,
}

/// Generated nodes and partitions, which print as lines of slurm.conf.
///
/// ```
/// use slurmconf::{GenerateOptions, Limits, Memory, NodeShape, Shapes, generate};
///
/// let mut shapes = Shapes::new();
/// shapes.insert("VM.Standard2.1", NodeShape::new(1, Memory::Nominal(15_360)));
/// let limits = Limits::read("limits.yaml", "VM.Standard2.1: {1: 400, 2: 1}")?;
/// let cluster = generate(&limits, &shapes, &GenerateOptions::default())?;
/// let text = cluster.to_string();
/// let first = text.lines().next().unwrap();
/// assert_eq!(
///     first,
///     "NodeName=vm-standard2-1-ad1-[0001-0400] State=CLOUD SocketsPerBoard=1 CoresPerSocket=1 \
///      ThreadsPerCore=1 RealMemory=14272 Features=shape=VM.Standard2.1,ad=1"
/// );
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The nodes: one line for the nodes of a group with the same state.
    pub nodes: Vec<NodeDef>,
    /// One node set for each group, in [`Style::NodeGroups`] only.
    pub node_sets: Vec<NodeSet>,
    /// The partitions of the groups.
    pub partitions: Vec<PartitionDef>,
    style: Style,
}

/// Generates the nodes and partitions that limits allow, or returns the first error.
///
/// Names are exactly CitC's: `vm-standard2-1-ad1-0001` with an availability domain, `<cluster id>-t3a-small-0001`
/// without one, and `<cluster id>-<group>-0001` for a group. Without a cluster id its part is omitted. Numbers have at
/// least four digits. Two entries with the same node names are an error, and so is an unknown shape.
pub fn generate(limits: &Limits, shapes: &Shapes, site: &GenerateOptions) -> Result<Cluster> {
    let (cluster, errors) = try_all(limits, shapes, site);
    errors.into_iter().next().map_or(Ok(cluster), Err)
}

/// Generates the nodes and partitions that limits allow, or returns an error for each invalid group.
pub fn generate_all(
    limits: &Limits,
    shapes: &Shapes,
    site: &GenerateOptions,
) -> std::result::Result<Cluster, Vec<Error>> {
    let (cluster, errors) = try_all(limits, shapes, site);
    if errors.is_empty() { Ok(cluster) } else { Err(errors) }
}

/// Returns all errors; with any, the cluster is incomplete.
fn try_all(limits: &Limits, shapes: &Shapes, site: &GenerateOptions) -> (Cluster, Vec<Error>) {
    let mut builder = Builder::new(site);
    let mut errors: Vec<Error> = Vec::new();
    for group in &limits.groups {
        let shape = shapes.get(&group.shape).ok_or_else(|| {
            let near = shapes.nearest(&group.shape);
            group.error(Problem::UnknownShape { name: group.shape.clone(), near })
        });
        let fits =
            |shape: NodeShape| places::check(group, &shape, (shapes, site.memory)).map(|()| shape);
        let added = shape.and_then(fits).and_then(|shape| builder.add(group, &shape));
        errors.extend(added.err());
    }
    // An entry has one group for each availability domain.
    errors.dedup_by_key(|error| error.to_string());
    let mut cluster = builder.cluster;
    if cluster.nodes.is_empty() && site.style != Style::Citc {
        cluster.nodes.push(placeholder());
    }
    (cluster, errors)
}

/// A placeholder, because slurmctld 22.05 does not start without nodes.
fn placeholder() -> NodeDef {
    let names = ["nonesuch"].into_iter().collect();
    NodeDef { names, state: Some(ConfiguredState::Future), ..NodeDef::default() }
}

impl Cluster {
    /// The persistent nodes, for `SuspendExcNodes`.
    #[must_use]
    pub fn persistent_nodes(&self) -> Hostlist {
        let mut all = Hostlist::new();
        for node in self.nodes.iter().filter(|node| node.state == Some(ConfiguredState::Unknown)) {
            all.append(&node.names);
        }
        all
    }
}

/// A cluster while it is generated, and the names in use.
struct Builder<'a> {
    site: &'a GenerateOptions,
    cluster: Cluster,
    stems: HashMap<String, &'a Group>,
    labels: HashMap<String, &'a Group>,
    /// The index of each partition.
    partitions: HashMap<String, usize>,
}

impl<'a> Builder<'a> {
    fn new(site: &'a GenerateOptions) -> Self {
        let (nodes, node_sets, partitions) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            site,
            cluster: Cluster { nodes, node_sets, partitions, style: site.style },
            stems: HashMap::new(),
            labels: HashMap::new(),
            partitions: HashMap::new(),
        }
    }

    fn add(&mut self, group: &'a Group, shape: &NodeShape) -> Result<()> {
        let Names { stem, label } = self.names(group)?;
        let set = (self.site.style == Style::NodeGroups).then(|| format!("nodegroup_{label}"));
        let node = describe(group, shape, self.site, set.as_deref())?;
        let mut members = Hostlist::new();
        let warm = group.min.saturating_add(group.warm);
        let ranges = [
            (1, group.min, node.clone(), ConfiguredState::Unknown),
            (group.min.saturating_add(1), warm, keeping(&node), ConfiguredState::Cloud),
            (warm.saturating_add(1), group.max, behind(&node, group.warm), ConfiguredState::Cloud),
        ];
        for (first, last, node, state) in ranges.into_iter().filter(|it| it.0 <= it.1) {
            let names = name::list(group, &stem, first, last)?;
            members.append(&names);
            self.cluster.nodes.push(NodeDef { names, state: Some(state), ..node });
        }
        if members.is_empty() {
            return Ok(());
        }
        let mut partitions = group.partitions.clone();
        if let Some(name) = set {
            members = [&name].into_iter().collect();
            let feature = Some(name.clone());
            self.cluster.node_sets.push(NodeSet { name, feature, nodes: None });
            // As in StackHPC's role, a group without a partition gets one with its name.
            if partitions.is_empty() {
                partitions.push(label);
            }
        }
        for partition in &partitions {
            name::check(partition).map_err(|problem| group.error(problem))?;
            self.join(partition, &members);
        }
        Ok(())
    }

    /// The names of a group, which must be unique.
    fn names(&mut self, group: &'a Group) -> Result<Names> {
        let names = name::of(group, self.site.cluster_id.as_deref())?;
        let second = group.name.clone();
        if let Some(first) = self.stems.insert(names.stem.clone(), group) {
            let (first, stem) = (first.name.clone(), names.stem);
            return Err(group.error(Problem::SameNames { first, second, stem }));
        }
        if self.site.style != Style::NodeGroups {
            return Ok(names);
        }
        if let Some(first) = self.labels.insert(names.label.clone(), group) {
            let (first, label) = (first.name.clone(), names.label);
            return Err(group.error(Problem::SameNodeGroup { first, second, label }));
        }
        Ok(names)
    }

    fn join(&mut self, name: &str, members: &Hostlist) {
        let all = &mut self.cluster.partitions;
        let place = *self.partitions.entry(name.to_owned()).or_insert(all.len());
        if let Some(known) = all.get_mut(place) {
            known.nodes.get_or_insert_default().append(members);
            return;
        }
        all.push(PartitionDef {
            nodes: Some(members.clone()),
            default: Some(self.site.default_partition.as_deref() == Some(name)),
            max_time: Some("INFINITE".to_owned()),
            state: Some("UP".to_owned()),
            ..PartitionDef::new(name)
        });
    }
}

/// The nodes of a group whose machines are kept.
fn keeping(node: &NodeDef) -> NodeDef {
    let mut node = node.clone();
    node.features.get_or_insert_default().push(WARM);
    node
}

/// The other elastic nodes of a group with warm ones, which Slurm is to choose first.
fn behind(node: &NodeDef, warm: u32) -> NodeDef {
    // Slurm's default is 1.
    let heavier = |weight: Option<u32>| Some(weight.unwrap_or(1).saturating_add(1).min(MAX_WEIGHT));
    let weight = if warm > 0 { heavier(node.weight) } else { node.weight };
    NodeDef { weight, ..node.clone() }
}

/// The nodes of a group, without names and state.
fn describe(
    group: &Group,
    shape: &NodeShape,
    site: &GenerateOptions,
    set: Option<&str>,
) -> Result<NodeDef> {
    let gres = group.gres.as_ref().unwrap_or(&shape.gres);
    gres::check(gres).map_err(|problem| group.error(problem))?;
    // CitC writes an empty value, and StackHPC counts sockets on all boards.
    let gres =
        (!gres.is_empty() || site.style == Style::Citc).then(|| GresList::from(gres.as_str()));
    let on_board = site.style != Style::NodeGroups;
    Ok(NodeDef {
        sockets_per_board: on_board.then_some(shape.sockets),
        sockets: (!on_board).then_some(shape.sockets),
        cores_per_socket: Some(shape.cores_per_socket),
        threads_per_core: Some(shape.threads_per_core),
        real_memory: Some(site.memory.real_memory(&group.shape, shape)),
        weight: group.weight,
        gres,
        features: Some(features(group, shape, site, set)?),
        ..NodeDef::default()
    })
}

/// The feature that names the zone of a node in CitC's files.
const CITC_ZONE: &str = "ad";

fn features(
    group: &Group,
    shape: &NodeShape,
    site: &GenerateOptions,
    set: Option<&str>,
) -> Result<Features> {
    let arch = Some(&shape.arch).filter(|arch| !arch.is_empty());
    let words = [Some(&group.shape), group.zone.as_ref(), arch];
    for word in words.into_iter().flatten() {
        name::check(word).map_err(|problem| group.error(problem))?;
    }
    let mut features = Features::default();
    if let Some(set) = set {
        features.push(set);
    }
    features.push(format!("shape={}", group.shape));
    match &group.zone {
        Some(zone) => {
            let own = site.zone_feature.as_deref().filter(|_| site.style != Style::Citc);
            features.push(format!("{}={zone}", own.unwrap_or(CITC_ZONE)));
        }
        // CitC's tools expect Python's None.
        None if site.style == Style::Citc => features.push(format!("{CITC_ZONE}=None")),
        None => {}
    }
    if let Some(arch) = arch {
        features.push(format!("arch={arch}"));
    }
    if let Some(image) = &group.image {
        name::check(image).map_err(|problem| group.error(problem))?;
        features.push(format!("image={image}"));
    }
    features.push_places(&group.places, group.preemptible, group.give_up_after);
    Ok(features)
}
