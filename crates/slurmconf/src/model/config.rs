//! A complete configuration: slurm.conf and the files that it includes.

use super::{
    NodeDef, NodeSet, OtherDefinition, PartitionDef, PowerSettings, SuspendTime,
    alias::Aliases,
    include::Walk,
    value::{deduplicate, remember, whole},
};
use crate::{
    document::{Definition, DefinitionKind, Document, Pair, Statement},
    error::{Error, Problem, Result},
    version::SlurmVersion,
};
use hostlist::Hostlist;
use std::{
    collections::HashMap, io, ops::RangeInclusive, path::Path, str::FromStr, time::Duration,
};

/// A slurm.conf with everything it includes, and with its `DEFAULT` lines applied as Slurm applies them.
///
/// ```
/// use slurmconf::Config;
///
/// let config = Config::parse(
///     "NodeName=DEFAULT CPUs=2 State=CLOUD\n\
///      NodeName=vm-standard2-1-ad1-[0001-0400] Features=shape=VM.Standard2.1,ad=1\n\
///      NodeName=login1 State=UNKNOWN\n",
/// )?;
/// let mut cloud = Vec::new();
/// for node in config.nodes.iter().filter(|node| node.is_cloud()) {
///     cloud.extend(node.names.iter());
/// }
/// assert_eq!(cloud.len(), 400);
/// assert_eq!(cloud[399], "vm-standard2-1-ad1-0400");
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The `NodeName` lines.
    pub nodes: Vec<NodeDef>,
    /// The `PartitionName` lines.
    pub partitions: Vec<PartitionDef>,
    /// The `NodeSet` lines.
    pub node_sets: Vec<NodeSet>,
    /// Other lines with attributes, such as `PowerAction`.
    pub others: Vec<OtherDefinition>,
    /// The power settings among the parameters.
    pub power: PowerSettings,
    /// Every parameter in order, repeated ones included.
    pub parameters: Vec<Parameter>,
}

/// A `key=value` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The key as written.
    pub key: String,
    /// The value.
    pub value: String,
}

impl Config {
    /// Reads the file at `path` and every file it includes, through `read`.
    ///
    /// Relative paths of nested includes depend on the version. Includes are limited to 16 levels and 1,000 files; a
    /// loop is an error, and so is a pattern, which Slurm does not expand.
    pub fn load(
        path: &Path,
        version: SlurmVersion,
        mut read: impl FnMut(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self> {
        let mut reading = Reading::default();
        let mut walk = Walk { version, read: &mut read, files: 0, open: Vec::new(), cluster: None };
        walk.file(path, &mut |line, statement| reading.take(line.document(), statement))?;
        Ok(reading.config)
    }

    /// Reads a slurm.conf without includes; an `Include` is an error.
    pub fn parse(text: &str) -> Result<Self> {
        let mut whole = Some(text.as_bytes().to_vec());
        let newest = SlurmVersion::new(u16::MAX, 0);
        Self::load(Path::new("slurm.conf"), newest, |_| {
            whole.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        })
    }

    /// The value of a parameter, the last one if it is repeated. `SlurmctldHost` may be repeated: see
    /// [`get_all`](Config::get_all).
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.parameters.iter().rfind(|known| known.key.eq_ignore_ascii_case(key));
        found.map(|parameter| parameter.value.as_str())
    }

    /// All values of a repeated parameter, such as `SlurmctldHost`, in order.
    pub fn get_all(&self, key: &str) -> impl Iterator<Item = &str> {
        let found = self.parameters.iter().filter(move |known| known.key.eq_ignore_ascii_case(key));
        found.map(|parameter| parameter.value.as_str())
    }

    /// `MessageTimeout`: how long Slurm's programs wait for an answer; 10 seconds by default.
    #[must_use]
    pub fn message_timeout(&self) -> Duration {
        let found =
            self.get("MessageTimeout").and_then(whole).and_then(|it| u16::try_from(it).ok());
        Duration::from_secs(found.unwrap_or(10).into())
    }

    /// The program behind a power setting, which since 26.05 may be the name of a `PowerAction`.
    #[must_use]
    pub fn program<'a>(&'a self, setting: &'a str) -> &'a str {
        let mut others = self.others.iter();
        let action =
            others.find(|other| other.kind == DefinitionKind::PowerAction && other.name == setting);
        action.and_then(|action| action.get("Program")).unwrap_or(setting)
    }

    /// True if slurmctld suspends and resumes nodes: it has the programs, and a `SuspendTime` for the cluster, for a
    /// partition or, since 26.05, for some nodes.
    #[must_use]
    pub fn has_power_saving(&self) -> bool {
        let nodes = self.nodes.iter().filter_map(|node| node.suspend_time);
        let partitions = self.partitions.iter().filter_map(|partition| partition.suspend_time);
        let mut times = nodes.chain(partitions).chain([self.power.suspend_time]);
        self.power.suspend_program.is_some()
            && self.power.resume_program.is_some()
            && times.any(|time| time != SuspendTime::Never)
    }

    /// True if a slurmctld of this version hides powered-down elastic nodes, even from root. Before 23.02 it does
    /// without `PrivateData=cloud`.
    #[must_use]
    pub fn hides_powered_down_nodes(&self, version: SlurmVersion) -> bool {
        let mut names = self.get("PrivateData").into_iter().flat_map(|value| value.split(','));
        version < SlurmVersion::new(23, 2)
            && !names.any(|word| word.trim().eq_ignore_ascii_case("cloud"))
    }

    /// All node definitions by name. The first one counts. This is cheaper than many calls of [`node`](Config::node).
    #[must_use]
    pub fn index(&self) -> HashMap<String, &NodeDef> {
        let mut index = HashMap::new();
        for node in &self.nodes {
            node.names.for_each(|name| {
                index.entry(name.to_owned()).or_insert(node);
            });
        }
        index
    }

    /// Finds the definition of a node by linear search.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&NodeDef> {
        self.nodes.iter().find(|node| node.names.contains(name))
    }

    /// All elastic nodes.
    #[must_use]
    pub fn cloud_nodes(&self) -> Hostlist {
        let mut all = Hostlist::new();
        for node in self.nodes.iter().filter(|node| node.is_cloud()) {
            all.append(&node.names);
        }
        all
    }

    /// The nodes of a partition, `ALL` and node sets resolved, in Slurm's order and without duplicates.
    #[must_use]
    pub fn partition_nodes(&self, partition: &PartitionDef) -> Hostlist {
        self.resolved(partition.nodes.iter().flat_map(Hostlist::iter))
    }

    /// The nodes that `names` select, `ALL` and node sets resolved, in Slurm's order and without duplicates.
    pub(super) fn resolved(&self, names: impl Iterator<Item = String>) -> Hostlist {
        let mut all = Hostlist::new();
        for word in names {
            if word.eq_ignore_ascii_case("ALL") {
                self.nodes.iter().for_each(|node| all.append(&node.names));
            } else if let Some(set) = self.node_sets.iter().find(|set| set.name == word) {
                self.add_set(set, &mut all);
            } else {
                all.push(&word);
            }
        }
        all.uniq()
    }

    /// The shortest and the longest `ResumeTimeout` of these nodes. That of a node is the largest of its partitions,
    /// or else the cluster's.
    #[must_use]
    pub fn resume_timeouts(&self, nodes: &Hostlist) -> RangeInclusive<Duration> {
        let whole = self.power.resume_timeout;
        let own = |partition: &PartitionDef| {
            let time = Duration::from_secs(partition.resume_timeout?.into());
            Some((self.partition_nodes(partition), time))
        };
        let own: Vec<(Hostlist, Duration)> = self.partitions.iter().filter_map(own).collect();
        if own.is_empty() {
            return whole..=whole;
        }
        let time = |node: String| {
            let times = own.iter().filter(|(nodes, _)| nodes.contains(&node));
            times.map(|(_, time)| *time).max().unwrap_or(whole)
        };
        let times: Vec<Duration> = nodes.iter().map(time).collect();
        let (shortest, longest) = (times.iter().min(), times.iter().max());
        shortest.copied().unwrap_or(whole)..=longest.copied().unwrap_or(whole)
    }

    fn add_set(&self, set: &NodeSet, all: &mut Hostlist) {
        let has = |node: &&NodeDef| {
            let features = node.features.as_ref();
            set.feature.as_ref().is_some_and(|word| features.is_some_and(|known| known.has(word)))
        };
        self.nodes.iter().filter(has).for_each(|node| all.append(&node.names));
        set.nodes.iter().for_each(|nodes| all.append(nodes));
    }
}

impl FromStr for NodeDef {
    type Err = Error;

    /// Reads one `NodeName` line.
    fn from_str(line: &str) -> Result<Self> {
        only(Config::parse(line)?.nodes)
    }
}

impl FromStr for PartitionDef {
    type Err = Error;

    /// Reads one `PartitionName` line.
    fn from_str(line: &str) -> Result<Self> {
        only(Config::parse(line)?.partitions)
    }
}

impl FromStr for NodeSet {
    type Err = Error;

    /// Reads one `NodeSet` line.
    fn from_str(line: &str) -> Result<Self> {
        only(Config::parse(line)?.node_sets)
    }
}

fn only<T>(found: Vec<T>) -> Result<T> {
    let [one] = <[T; 1]>::try_from(found).map_err(|_| Problem::NotOneLine)?;
    Ok(one)
}

/// A configuration while it is read, with the `DEFAULT` lines so far.
#[derive(Default)]
struct Reading {
    config: Config,
    node: NodeDef,
    aliases: Aliases,
    partition: PartitionDef,
}

impl Reading {
    fn take(&mut self, document: &Document, statement: Statement<'_>) -> Result<()> {
        match statement {
            Statement::Blank | Statement::Include(_) => Ok(()),
            Statement::Parameter(pair) => {
                let fail = |problem| document.error(pair.offset(), problem);
                self.config.power.apply(&pair).map_err(fail)?;
                let (key, value) = (pair.key.into_owned(), pair.value.into_owned());
                self.config.parameters.push(Parameter { key, value });
                Ok(())
            }
            Statement::Definition(definition) => self.define(document, &definition),
        }
    }

    fn define(&mut self, document: &Document, definition: &Definition<'_>) -> Result<()> {
        let name = || definition.name.value.to_string();
        match definition.kind {
            DefinitionKind::Node => return self.define_node(document, definition),
            DefinitionKind::Partition => return self.define_partition(document, definition),
            DefinitionKind::NodeSet => {
                let mut set = NodeSet { name: name(), ..NodeSet::default() };
                apply(document, definition, |pair| set.apply(pair))?;
                self.config.node_sets.push(set);
            }
            kind @ (DefinitionKind::DownNodes
            | DefinitionKind::Frontend
            | DefinitionKind::PowerAction) => {
                let mut attributes = Vec::new();
                definition.attributes.iter().for_each(|pair| remember(&mut attributes, pair));
                deduplicate(&mut attributes);
                self.config.others.push(OtherDefinition { kind, name: name(), attributes });
            }
        }
        Ok(())
    }

    fn define_node(&mut self, document: &Document, definition: &Definition<'_>) -> Result<()> {
        let (mut node, mut own) = (self.node.clone(), Aliases::default());
        apply(
            document,
            definition,
            |pair| {
                if own.take(pair)? { Ok(()) } else { node.apply(pair) }
            },
        )?;
        deduplicate(&mut node.other);
        if is_default(definition) {
            self.node = node;
            self.aliases.update(own);
            return Ok(());
        }
        own.apply(&self.aliases, &mut node);
        let name = &definition.name;
        node.names = name.value.parse().map_err(|source| {
            let key = name.key.to_string();
            document.error(name.offset(), Problem::BadHostlist { key, source })
        })?;
        self.config.nodes.push(node);
        Ok(())
    }

    fn define_partition(&mut self, document: &Document, definition: &Definition<'_>) -> Result<()> {
        let mut partition = self.partition.clone();
        apply(document, definition, |pair| partition.apply(pair))?;
        deduplicate(&mut partition.other);
        if is_default(definition) {
            self.partition = partition;
            return Ok(());
        }
        partition.name = definition.name.value.to_string();
        self.config.partitions.push(partition);
        Ok(())
    }
}

fn is_default(definition: &Definition<'_>) -> bool {
    definition.name.value.eq_ignore_ascii_case("DEFAULT")
}

fn apply(
    document: &Document,
    definition: &Definition<'_>,
    mut take: impl FnMut(&Pair<'_>) -> std::result::Result<(), Problem>,
) -> Result<()> {
    let error = |pair: &Pair<'_>, problem| -> Error { document.error(pair.offset(), problem) };
    definition
        .attributes
        .iter()
        .try_for_each(|pair| take(pair).map_err(|problem| error(pair, problem)))
}
