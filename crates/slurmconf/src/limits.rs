//! `limits.yaml`: how many machines of which shape may be used.

use crate::{
    error::{Error, Location, Problem, Result},
    near::nearest,
    yaml::{Node, Source, Value},
};

/// The most nodes that one entry may ask for: what Slurm takes in one range of names.
pub const MAX_COUNT: u32 = 65_536;

/// Slurm keeps the last few values of its 32 bits for itself.
const MAX_WEIGHT: u32 = 4_294_967_279;

/// The keys of the group form.
const KEYS: [&str; 9] =
    ["shape", "min", "max", "partition", "gres", "weight", "zone", "ad", "image"];

/// What may be used, in the order written.
///
/// Three forms of entry are read, in one file if need be. A group has `shape` and `max`, and may have `min` (nodes
/// that are always there, 0 if not said), `partition` (one or a list), `gres`, `weight`, `zone` (or `ad`) and `image`.
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
    /// One for each entry; of an entry by availability domain, one for each domain.
    pub groups: Vec<Group>,
}

/// Nodes that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The entry's key: a shape, or the group's own name.
    pub name: String,
    /// The machine type.
    pub shape: String,
    /// Which of the three forms it was written in.
    pub form: Form,
    /// Where the machines are to be: the number of an availability domain, or a zone's name.
    pub zone: Option<String>,
    /// How many of the nodes are always there; the first ones.
    pub min: u32,
    /// How many nodes there are in all.
    pub max: u32,
    /// The partitions they are in.
    pub partitions: Vec<String>,
    /// Generic resources, if other than the shape's.
    pub gres: Option<String>,
    /// Slurm's weight.
    pub weight: Option<u32>,
    /// The image of their machines by name or id, if other than that of all.
    pub image: Option<String>,
    /// Where it was read, for errors about it.
    pub location: Option<Location>,
}

/// The forms of an entry; the names of nodes depend on it.
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
    /// Reads a `limits.yaml`; `file` is the name errors call it by. The first error is returned: see
    /// [`read_all`](Limits::read_all).
    pub fn read(file: &str, text: &str) -> Result<Self> {
        let (limits, errors) = Self::read_all(file, text);
        errors.into_iter().next().map_or(Ok(limits), Err)
    }

    /// The same, with every entry that can be read, and an error for each that cannot.
    #[must_use]
    pub fn read_all(file: &str, text: &str) -> (Self, Vec<Error>) {
        let source = Source::new(file, text);
        // Two shapes without indentation have the same key 1 twice, of which YAML's error says nothing useful.
        let root = source.read().map_err(|error| unindented(&source).unwrap_or(error));
        let root = match root {
            Ok(root) => root,
            Err(error) => return (Self::default(), vec![error]),
        };
        let (mut groups, mut errors) = (Vec::new(), Vec::new());
        // A file that was cut off, or never written, must not be the end of every node.
        if matches!(root.value, Value::Null) {
            errors.push(Problem::NothingSaid(file.to_owned()).into());
        }
        let entries = source.map(file, &root).unwrap_or_else(|error| {
            errors.push(error);
            &[]
        });
        for (name, value) in entries {
            errors.extend(read_entry(&source, name, value, &mut groups).err());
        }
        (Self { groups }, errors)
    }

    /// Takes away the one machine that the management node is, if it is among these.
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
    /// A group of `max` nodes, all of them started on demand, that no file names.
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

/// The first line that is an availability domain and not indented.
fn unindented(source: &Source<'_>) -> Option<Error> {
    let domain = |line: &str| line.split_once(':')?.0.trim_matches(['"', '\'']).parse().ok();
    let (index, number) = source.find_line(domain)?;
    Some(source.line_error(index, Problem::DomainAsShape(number)))
}

fn read_entry(
    source: &Source<'_>,
    name: &Node,
    value: &Node,
    groups: &mut Vec<Group>,
) -> Result<()> {
    if let Value::Integer(number) = name.value {
        return Err(source.error(name, Problem::DomainAsShape(number)));
    }
    let key = source.text("name of a shape or group", name)?;
    let location = Some(source.location(name.mark()));
    let group = |form| Group { form, location: location.clone(), ..Group::new(&key, &key, 0) };
    match &value.value {
        Value::Null => Err(source.error(name, Problem::NoCounts(key))),
        Value::Map(entries) if entries.is_empty() => {
            Err(source.error(name, Problem::NoCounts(key)))
        }
        Value::Map(entries) if entries.iter().any(|(key, _)| key.integer().is_some()) => {
            for (domain, count) in entries {
                groups.push(read_domain(source, group(Form::Domains), domain, count)?);
            }
            Ok(())
        }
        Value::Map(entries) => {
            groups.push(read_group(source, group(Form::Group), name, entries)?);
            Ok(())
        }
        Value::Integer(_) | Value::Text(_) | Value::Bool(_) | Value::Float(_) => {
            let max = source.number(&key, value, (0, MAX_COUNT))?;
            groups.push(Group { max, ..group(Form::Count) });
            Ok(())
        }
        Value::List(_) => {
            Err(source.expected(&key, "a count, or availability domains with counts", value))
        }
    }
}

fn read_domain(source: &Source<'_>, group: Group, domain: &Node, count: &Node) -> Result<Group> {
    let number = source.number(&format!("{}: availability domain", group.name), domain, (1, 99))?;
    let what = format!("{} in availability domain {number}", group.name);
    let max = source.number(&what, count, (0, MAX_COUNT))?;
    Ok(Group { zone: Some(number.to_string()), max, ..group })
}

fn read_group(
    source: &Source<'_>,
    mut group: Group,
    name: &Node,
    entries: &[(Node, Node)],
) -> Result<Group> {
    let (mut shape, mut max) = (None, None);
    for (key, value) in entries {
        let word = source.text(&group.name, key)?;
        let what = format!("{}: {word}", group.name);
        match word.as_str() {
            "shape" => {
                group.location = Some(source.location(value.mark()));
                shape = Some(source.text(&what, value)?);
            }
            "min" => group.min = source.number(&what, value, (0, MAX_COUNT))?,
            "max" => max = Some((source.number(&what, value, (0, MAX_COUNT))?, value)),
            "partition" => group.partitions = texts(source, &what, value)?,
            "gres" => group.gres = Some(source.text(&what, value)?),
            "weight" => group.weight = Some(source.number(&what, value, (0, MAX_WEIGHT))?),
            "image" => group.image = Some(image(source, &what, value)?),
            "zone" | "ad" => group.zone = Some(source.text(&what, value)?),
            _ => {
                let near = nearest(&word, KEYS).map(str::to_owned);
                let problem = Problem::UnknownKey { what: group.name, key: word, near };
                return Err(source.error(key, problem));
            }
        }
    }
    let missing = |key| source.error(name, Problem::MissingKey { what: group.name.clone(), key });
    let (max, node) = max.ok_or_else(|| missing("max"))?;
    if max < group.min {
        let what = format!("{}: max", group.name);
        let problem =
            Problem::OutOfBounds { what, count: max.into(), least: group.min, most: MAX_COUNT };
        return Err(source.error(node, problem));
    }
    let shape = shape.ok_or_else(|| missing("shape"))?;
    Ok(Group { shape, max, ..group })
}

/// An image becomes a feature, of which Slurm's lists and constraints take no other characters.
fn image(source: &Source<'_>, what: &str, node: &Node) -> Result<String> {
    let image = source.text(what, node)?;
    let expected = "an image's name of letters, digits, '.', '-' and '_', or its id";
    if is_word(&image) { Ok(image) } else { Err(source.expected(what, expected, node)) }
}

/// True for what can be one word of a name, a feature or a partition.
pub(crate) fn is_word(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !text.is_empty() && text.bytes().all(word)
}

fn texts(source: &Source<'_>, what: &str, node: &Node) -> Result<Vec<String>> {
    match &node.value {
        Value::List(items) => {
            let mut all = Vec::new();
            for item in items {
                let text = source.text(what, item)?;
                // Twice would be twice in the partition's list of nodes.
                if !all.contains(&text) {
                    all.push(text);
                }
            }
            Ok(all)
        }
        Value::Null
        | Value::Bool(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Map(_) => Ok(vec![source.text(what, node)?]),
    }
}

/// `mgmt_shape.yaml`: the machine that the management node runs on, which the service limits count too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementNode {
    /// Its shape.
    pub shape: String,
    /// The number of its availability domain.
    pub domain: u32,
}

impl ManagementNode {
    /// Reads a `mgmt_shape.yaml`; `file` is the name errors call it by.
    pub fn read(file: &str, text: &str) -> Result<Self> {
        let source = Source::new(file, text);
        let root = source.read()?;
        let entries = source.map(file, &root)?;
        let field = |key| source.field((file, &root), entries, key);
        Ok(Self {
            shape: source.text("mgmt_shape", field("mgmt_shape")?)?,
            domain: source.number("mgmt_ad", field("mgmt_ad")?, (1, 99))?,
        })
    }
}
