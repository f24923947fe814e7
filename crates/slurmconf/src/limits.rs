//! `limits.yaml`: how many nodes of which shape a cluster may have.

mod places;

use crate::{
    error::{Error, Location, Problem, Result},
    model::PlaceChoice,
    yaml::{Source, Value, YamlNode},
};
use std::time::Duration;

/// The most nodes in one entry: Slurm takes no more in one range of names.
const MAX_COUNT: u32 = 65_536;

/// Slurm reserves the last few of its 32-bit values.
pub(crate) const MAX_WEIGHT: u32 = 4_294_967_279;

/// The keys of the group form.
const KEYS: [&str; 12] = [
    "shape",
    "min",
    "max",
    "partition",
    "gres",
    "weight",
    "zone",
    "ad",
    "image",
    "places",
    "preemptible",
    "warm",
];

/// The entries of a `limits.yaml`, in the order written.
///
/// An entry has one of three forms, which one file may mix. A group has `shape` and `max`, and may have `min` (the
/// number of persistent nodes, 0 by default), `partition` (one or a list), `gres`, `weight`, `zone` (or `ad`), `image`,
/// `places`, `preemptible` and `warm`.
///
/// ```
/// use slurmconf::Limits;
///
/// let limits = Limits::read(
///     "limits.yaml",
///     "VM.Standard2.1: {1: 2, 3: 1}   # by availability domain
/// t3a.small: 3                     # anywhere
/// general: {shape: m1.large, min: 2, max: 40, partition: compute}
/// ",
/// )?;
/// let counts: Vec<_> = limits.groups.iter().map(|group| (group.name.as_str(), group.max)).collect();
/// let expected = [("VM.Standard2.1", 2), ("VM.Standard2.1", 1), ("t3a.small", 3), ("general", 40)];
/// assert_eq!(counts, expected);
///
/// let error = Limits::read("limits.yaml", "VM.Standard2.1:\n1: 1\n").unwrap_err();
/// assert!(error.to_string().starts_with("limits.yaml:1:1: VM.Standard2.1 has no counts"));
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// One group for each entry, or one for each availability domain of an entry.
    pub groups: Vec<Group>,
}

/// Identical nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The entry's key: a shape, or the group's own name.
    pub name: String,
    /// The machine type.
    pub shape: String,
    /// The form of the entry.
    pub form: Form,
    /// The number of an availability domain, or the name of a zone.
    pub zone: Option<String>,
    /// How many nodes are persistent: the first ones.
    pub min: u32,
    /// How many nodes there are, persistent or elastic.
    pub max: u32,
    /// The partitions of the nodes.
    pub partitions: Vec<String>,
    /// Generic resources in place of the shape's.
    pub gres: Option<String>,
    /// `Weight` in slurm.conf.
    pub weight: Option<u32>,
    /// An image of their own, by name or id.
    pub image: Option<String>,
    /// Where their machines may be launched, first choice first; where the site says if empty.
    pub places: Vec<PlaceChoice>,
    /// Whether their machines may be taken away at any time; as the site says if `None`.
    pub preemptible: Option<bool>,
    /// How many elastic nodes keep their machines, stopped, when they are not needed: the first ones.
    pub warm: u32,
    /// For how long only preemptible machines are tried, before others are.
    pub give_up_after: Option<Duration>,
    /// Where the entry is in its file.
    pub location: Option<Location>,
}

/// The form of an entry, which node names depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// shape → availability domain → count
    Domains,
    /// shape → count
    Count,
    /// name → shape, min, max, …
    Group,
}

impl Limits {
    /// Reads a `limits.yaml`, and returns its first error; `file` is the name that errors call it by.
    pub fn read(file: &str, text: &str) -> Result<Self> {
        let (limits, errors) = Self::read_all(file, text);
        errors.into_iter().next().map_or(Ok(limits), Err)
    }

    /// Reads every valid entry of a `limits.yaml`, and returns an error for each of the others.
    #[must_use]
    pub fn read_all(file: &str, text: &str) -> (Self, Vec<Error>) {
        let source = Source::new(file, text);
        let (mut groups, mut errors) = (Vec::new(), Vec::new());
        match source.read() {
            // An empty file was probably cut off. It must not remove every node.
            Ok(root) if root.is_null() => errors.push(Problem::NothingSaid(file.to_owned()).into()),
            Ok(root) => match source.map(file, &root) {
                Ok(entries) => {
                    for (name, value) in entries {
                        errors.extend(read_entry(&source, name, value, &mut groups).err());
                    }
                }
                Err(error) => errors.push(error),
            },
            Err(error) => errors.push(unindented_domain(&source).unwrap_or(error)),
        }
        (Self { groups }, errors)
    }

    /// Subtracts the management node from the group of its shape and availability domain.
    #[must_use]
    pub fn without(mut self, management: &ManagementNode) -> Self {
        let domain = management.domain.to_string();
        let is_its = |group: &&mut Group| {
            group.form == Form::Domains
                && group.shape == management.shape
                && group.zone.as_ref() == Some(&domain)
        };
        if let Some(group) = self.groups.iter_mut().find(is_its) {
            group.max = group.max.saturating_sub(1);
        }
        self
    }
}

impl Group {
    /// A group of `max` elastic nodes.
    #[must_use]
    pub fn new(name: impl Into<String>, shape: impl Into<String>, max: u32) -> Self {
        Self {
            name: name.into(),
            shape: shape.into(),
            form: Form::Group,
            zone: None,
            min: 0,
            max,
            partitions: Vec::new(),
            gres: None,
            weight: None,
            image: None,
            places: Vec::new(),
            preemptible: None,
            warm: 0,
            give_up_after: None,
            location: None,
        }
    }

    pub(crate) fn error(&self, problem: Problem) -> Error {
        match &self.location {
            Some(location) => Error::new(location.clone(), problem),
            None => problem.into(),
        }
    }
}

/// An error about the first availability domain that is not indented. Two shapes with such lines have the same key
/// twice, and YAML's message about that does not help.
fn unindented_domain(source: &Source<'_>) -> Option<Error> {
    source.line_error(|line| {
        let number = line.split_once(':')?.0.trim_matches(['"', '\'']).parse().ok()?;
        Some(Problem::DomainAsShape(number))
    })
}

fn read_entry(
    source: &Source<'_>,
    name: &YamlNode,
    value: &YamlNode,
    groups: &mut Vec<Group>,
) -> Result<()> {
    if let Value::Integer(number) = name.value {
        return Err(source.error(name, Problem::DomainAsShape(number)));
    }
    let key = source.text("name of a shape or group", name)?;
    let location = Some(source.location_of(name));
    let group = |form| Group { form, location: location.clone(), ..Group::new(&key, &key, 0) };
    match &value.value {
        Value::Map(entries) if entries.iter().any(|(key, _)| key.integer().is_some()) => {
            for (domain, count) in entries {
                groups.push(read_domain(source, group(Form::Domains), domain, count)?);
            }
        }
        Value::Map(entries) if !entries.is_empty() => {
            groups.push(read_group(source, group(Form::Group), name, entries)?);
        }
        Value::Map(_) | Value::Null => return Err(source.error(name, Problem::NoCounts(key))),
        Value::Integer(_) | Value::Text(_) | Value::Bool(_) | Value::Float(_) => {
            let max = source.number(&key, value, (0, MAX_COUNT))?;
            groups.push(Group { max, ..group(Form::Count) });
        }
        Value::List(_) => {
            let expected = "a count, or availability domains with counts";
            return Err(source.expected(&key, expected, value));
        }
    }
    Ok(())
}

fn read_domain(
    source: &Source<'_>,
    group: Group,
    domain: &YamlNode,
    count: &YamlNode,
) -> Result<Group> {
    let number = source.number(&format!("{}: availability domain", group.name), domain, (1, 99))?;
    let what = format!("{} in availability domain {number}", group.name);
    let max = source.number(&what, count, (0, MAX_COUNT))?;
    Ok(Group { zone: Some(number.to_string()), max, ..group })
}

fn read_group(
    source: &Source<'_>,
    group: Group,
    name: &YamlNode,
    entries: &[(YamlNode, YamlNode)],
) -> Result<Group> {
    if let Some(error) = source.unknown_keys(&group.name, entries, &KEYS).into_iter().next() {
        return Err(error);
    }
    let what = |key: &str| format!("{}: {key}", group.name);
    let get = |key: &str| YamlNode::get(entries, key);
    let text = |key: &str| get(key).map(|node| source.text(&what(key), node)).transpose();
    let number = |key: &str, bounds| {
        get(key).map(|node| source.number(&what(key), node, bounds)).transpose()
    };
    let min = number("min", (0, MAX_COUNT))?.unwrap_or(0);
    let max = source.required(&group.name, name, entries, "max")?;
    let max = source.number(&what("max"), max, (min, MAX_COUNT))?;
    let shape = source.required(&group.name, name, entries, "shape")?;
    let spot = get("preemptible");
    let spot =
        spot.map(|node| places::preemptible(source, &what("preemptible"), node)).transpose()?;
    Ok(Group {
        preemptible: spot.map(|(preemptible, _)| preemptible),
        give_up_after: spot.and_then(|(_, after)| after),
        places: get("places")
            .map_or(Ok(Vec::new()), |node| places::places(source, &what("places"), node))?,
        shape: source.text(&what("shape"), shape)?,
        location: Some(source.location_of(shape)),
        min,
        max,
        warm: number("warm", (0, max - min))?.unwrap_or(0),
        partitions: get("partition")
            .map_or(Ok(Vec::new()), |node| texts(source, &what("partition"), node))?,
        gres: text("gres")?,
        weight: number("weight", (0, MAX_WEIGHT))?,
        zone: text("zone")?.or(text("ad")?),
        image: get("image").map(|node| image(source, &what("image"), node)).transpose()?,
        ..group
    })
}

/// An image becomes a feature, and Slurm takes no other characters in a feature.
fn image(source: &Source<'_>, what: &str, node: &YamlNode) -> Result<String> {
    let image = source.text(what, node)?;
    let expected = "an image's name of letters, digits, '.', '-' and '_', or its id";
    if is_word(&image) { Ok(image) } else { Err(source.expected(what, expected, node)) }
}

/// True for a valid part of a node name, a feature or a partition name.
pub(crate) fn is_word(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !text.is_empty() && text.bytes().all(word)
}

/// One string or a list of them, without duplicates: they would be duplicates in the partition's list of nodes.
fn texts(source: &Source<'_>, what: &str, node: &YamlNode) -> Result<Vec<String>> {
    let Value::List(items) = &node.value else { return Ok(vec![source.text(what, node)?]) };
    let mut all = Vec::new();
    for item in items {
        let text = source.text(what, item)?;
        if !all.contains(&text) {
            all.push(text);
        }
    }
    Ok(all)
}

/// `mgmt_shape.yaml`: the shape and the availability domain of the management node, which service limits count too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementNode {
    /// The shape.
    pub shape: String,
    /// The number of the availability domain.
    pub domain: u32,
}

impl ManagementNode {
    /// Reads a `mgmt_shape.yaml`; `file` is the name that errors call it by.
    pub fn read(file: &str, text: &str) -> Result<Self> {
        let source = Source::new(file, text);
        let root = source.read()?;
        let entries = source.map(file, &root)?;
        let field = |key| source.required(file, &root, entries, key);
        Ok(Self {
            shape: source.text("mgmt_shape", field("mgmt_shape")?)?,
            domain: source.number("mgmt_ad", field("mgmt_ad")?, (1, 99))?,
        })
    }
}
