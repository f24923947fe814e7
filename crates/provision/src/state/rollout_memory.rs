//! The progress of rollouts between calls.

use super::atomic_write::{read, replace_no_follow};
use super::error::{Error, Result};
use crate::plan::Rollout;
use crate::token::Digest;
use cloud_core::ImageId;
use hostlist::{Hostlist, NodeName, Parser};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

const PREFIX: &str = "rollout-";
const SUFFIX: &str = ".json";

/// Maximum length of the readable part of a file name, which is limited to 255 bytes.
const LONGEST: usize = 160;

/// Maximum number of nodes: a few bytes of a corrupt file can name millions.
const MOST_NODES: u64 = 1 << 17;

/// The stored progress of one rollout: a file in the state directory.
///
/// Without it a rollout starts over, which only means that failed nodes are tried again.
#[derive(Debug)]
pub struct RolloutMemory {
    path: PathBuf,
}

impl RolloutMemory {
    /// Finds the file of this rollout in a state directory.
    ///
    /// Each image and each selection of nodes has its own file. A rollout without an image, where each node has its own, is
    /// the same rollout when repeated.
    #[must_use]
    pub(crate) fn new(state: &Path, image: Option<&ImageId>, request: &Rollout) -> Self {
        Self { path: state.join(file_name(image, request)) }
    }

    /// Loads the progress of an earlier call into the request. A node whose target has changed counts as not tried.
    pub fn recall(&self, request: &mut Rollout) {
        let Some(begun) = Begun::read(&self.path) else { return };
        let same = |node: &NodeName| {
            let now = request.images.get(node);
            now.is_none_or(|now| begun.images.get(node).is_some_and(|then| then == now))
        };
        request.tried = begun.tried.iter().filter(|node| same(node)).cloned().collect();
        request.last = begun.last.map(|since| UNIX_EPOCH + since);
    }

    /// Stores the progress of the request, and removes its nodes from rollouts of other images.
    pub fn store(&self, request: &Rollout) -> Result<()> {
        let last = request.last.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let (images, tried) = (request.images.clone(), request.tried.clone());
        Begun { images, tried, last }.write(&self.path)?;
        self.take_from_others(|node, image| request.images.get(node).is_some_and(|it| it != image))
    }

    /// Forgets the rollout, because it is done or starts over. Also removes its nodes from other rollouts.
    pub fn forget(&self, request: &Rollout) -> Result<()> {
        remove(&self.path)?;
        self.take_from_others(|node, _| request.images.contains_key(node))
    }

    /// Removes nodes from other rollouts.
    fn take_from_others(&self, is_ours: impl Fn(&NodeName, &ImageId) -> bool) -> Result<()> {
        let state = self.path.parent().unwrap_or(Path::new(""));
        for (path, mut other) in all(state).filter(|(path, _)| *path != self.path) {
            let before = other.images.len();
            other.images.retain(|node, image| !is_ours(node, image));
            if other.images.is_empty() {
                remove(&path)?;
            } else if other.images.len() < before {
                other.write(&path)?;
            }
        }
        Ok(())
    }
}

/// The target image of each node in an unfinished rollout.
#[must_use]
pub fn rollouts_under_way(state: &Path) -> BTreeMap<NodeName, ImageId> {
    all(state).flat_map(|(_, begun)| begun.images).collect()
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::on("remove", path)(error)),
        _ => Ok(()),
    }
}

/// The progress of all rollouts, with their files.
fn all(state: &Path) -> impl Iterator<Item = (PathBuf, Begun)> {
    let files = std::fs::read_dir(state).into_iter().flatten().flatten();
    let is_memory = |name: &str| name.starts_with(PREFIX) && name.ends_with(SUFFIX);
    let memories = files.filter(move |file| file.file_name().to_str().is_some_and(is_memory));
    memories.filter_map(|file| Some((file.path(), Begun::read(&file.path())?)))
}

/// A readable file name, unique for each image and selection of nodes.
fn file_name(image: Option<&ImageId>, request: &Rollout) -> String {
    let nodes: Hostlist = request.nodes.iter().collect();
    let mut parts = vec![image.map_or_else(|| "own images".to_owned(), ImageId::to_string)];
    parts.extend(request.partitions.iter().map(|name| format!("partition {name}")));
    parts.extend((!nodes.is_empty()).then(|| format!("nodes {nodes}")));
    let whole = parts.join(" ");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = whole.chars().map(plain).take(LONGEST).collect();
    if name == whole {
        return format!("{PREFIX}{name}{SUFFIX}");
    }
    format!("{PREFIX}{name}-{:032x}{SUFFIX}", Digest::of(&whole))
}

/// The progress of a rollout.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    images: BTreeMap<NodeName, ImageId>,
    tried: BTreeSet<NodeName>,
    last: Option<Duration>,
}

/// The file format: the nodes of each image and the tried nodes as host lists, and the time of the last batch in seconds
/// since 1970.
#[derive(Serialize, Deserialize)]
struct Stored {
    images: BTreeMap<String, String>,
    tried: String,
    last: Option<u64>,
}

impl Begun {
    fn read(path: &Path) -> Option<Self> {
        Self::parse(&read(path).ok()??)
    }

    fn write(&self, path: &Path) -> Result<()> {
        let mut images: BTreeMap<&ImageId, Hostlist> = BTreeMap::new();
        for (node, image) in &self.images {
            images.entry(image).or_default().push(node.as_str());
        }
        let images =
            images.into_iter().map(|(image, nodes)| (image.to_string(), nodes.to_string()));
        let tried: Hostlist = self.tried.iter().collect();
        let stored = Stored {
            images: images.collect(),
            tried: tried.to_string(),
            last: self.last.map(|at| at.as_secs()),
        };
        let text = serde_json::to_string(&stored).unwrap_or_default();
        replace_no_follow(path, format!("{text}\n").as_bytes())
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let stored: Stored = serde_json::from_str(text).ok()?;
        let mut images = BTreeMap::new();
        for (image, list) in &stored.images {
            images.extend(nodes(list)?.into_iter().map(|node| (node, ImageId::new(image))));
        }
        // A time that would overflow counts as none.
        let last = stored.last.map(Duration::from_secs);
        let last = last.filter(|at| UNIX_EPOCH.checked_add(*at).is_some());
        Some(Self { images, tried: nodes(&stored.tried)?.into_iter().collect(), last })
    }
}

fn nodes(list: &str) -> Option<Vec<NodeName>> {
    Parser::new().max_hosts(MOST_NODES).parse(list).ok()?.node_names().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeName {
        NodeName::new(name).unwrap()
    }

    /// A request in which nodes are to have images.
    fn rollout(images: &[(&str, &str)]) -> Rollout {
        let mut request = Rollout::new(ImageId::new(""));
        let images = images.iter().map(|(name, image)| (node(name), ImageId::new(*image)));
        request.images = images.collect();
        request
    }

    #[test]
    fn another_call_knows_what_was_begun_and_another_image_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let image = ImageId::new("img-2");
        let asked = || rollout(&[("n1", "img-2"), ("n2", "img-2")]);
        let mut request = asked();
        let memory = RolloutMemory::new(folder.path(), Some(&image), &request);
        request.tried.insert(node("n1"));
        request.last = Some(UNIX_EPOCH + Duration::from_secs(7));
        memory.store(&request).unwrap();
        let mut again = asked();
        memory.recall(&mut again);
        assert_eq!(again, request);
        let mut other = rollout(&[("n1", "img-3"), ("n2", "img-3")]);
        memory.recall(&mut other);
        assert!(other.tried.is_empty());
        memory.forget(&request).unwrap();
        memory.forget(&request).unwrap();
        let mut anew = asked();
        memory.recall(&mut anew);
        assert!(anew.tried.is_empty());
    }

    #[test]
    fn an_unreadable_file_of_one_node_forgets_no_failure_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut request = rollout(&[("n1", "a"), ("n2", "b"), ("n3", "b")]);
        request.tried.insert(node("n1"));
        RolloutMemory::new(folder.path(), None, &request).store(&request).unwrap();
        // The third node has no image now, and the second has another.
        let mut again = rollout(&[("n1", "a"), ("n2", "c")]);
        RolloutMemory::new(folder.path(), None, &again).recall(&mut again);
        assert_eq!(again.tried, BTreeSet::from([node("n1")]));
    }

    #[test]
    fn what_is_under_way_is_known_to_others() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(rollouts_under_way(folder.path()), BTreeMap::new());
        std::fs::write(folder.path().join("rollout-torn.json"), "{").unwrap();
        let begin = |image: &str, nodes: &[(&str, &str)]| {
            let request = rollout(nodes);
            let memory = RolloutMemory::new(folder.path(), Some(&ImageId::new(image)), &request);
            memory.store(&request).unwrap();
            (memory, request)
        };
        begin("old", &[("n1", "old"), ("n2", "old")]);
        let (new, request) = begin("new", &[("n1", "new")]);
        let expected = [("n1", "new"), ("n2", "old")];
        assert_eq!(rollouts_under_way(folder.path()), rollout(&expected).images);
        new.forget(&request).unwrap();
        assert_eq!(rollouts_under_way(folder.path()), rollout(&[("n2", "old")]).images);
    }

    #[test]
    fn an_abandoned_rollout_stays_so_when_its_successor_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |image: &str, partition: Option<&str>| {
            let mut request = rollout(&[("n1", image)]);
            request.partitions.extend(partition.map(str::to_owned));
            let memory = RolloutMemory::new(folder.path(), Some(&ImageId::new(image)), &request);
            memory.store(&request).unwrap();
            (memory, request)
        };
        for left in [("other", None), ("same", Some("p"))] {
            begin(left.0, left.1);
            let (memory, request) = begin("same", None);
            memory.forget(&request).unwrap();
            assert_eq!(rollouts_under_way(folder.path()), BTreeMap::new(), "{left:?}");
        }
    }

    #[test]
    fn a_rollout_of_the_same_image_to_other_nodes_keeps_its_memory() {
        let folder = tempfile::tempdir().unwrap();
        let image = ImageId::new("new");
        let mut part = rollout(&[("n1", "new")]);
        part.partitions.push("p".to_owned());
        part.tried.insert(node("n1"));
        RolloutMemory::new(folder.path(), Some(&image), &part).store(&part).unwrap();
        let whole = rollout(&[("n1", "new"), ("n2", "new")]);
        RolloutMemory::new(folder.path(), Some(&image), &whole).store(&whole).unwrap();
        let mut again = rollout(&[("n1", "new")]);
        again.partitions.push("p".to_owned());
        RolloutMemory::new(folder.path(), Some(&image), &again).recall(&mut again);
        assert_eq!(again.tried, part.tried);
    }

    #[test]
    fn each_rollout_has_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(999);
        let mut all = Vec::new();
        for (image, partition, node) in [
            (Some("a"), "", ""),
            (Some("b"), "", ""),
            (Some("a"), "p", ""),
            (Some("a"), "", "p"),
            (Some("a"), "", "n1"),
            (Some("../a"), "", ""),
            (Some(long.as_str()), "", ""),
            (None, "", ""),
            (None, "p", ""),
        ] {
            let mut request = Rollout::new(ImageId::new("a"));
            request.partitions.extend((!partition.is_empty()).then(|| partition.to_owned()));
            request.nodes.extend(NodeName::new(node).ok());
            all.push(
                RolloutMemory::new(folder.path(), image.map(ImageId::new).as_ref(), &request).path,
            );
        }
        for path in &all {
            assert_eq!(path.parent(), Some(folder.path()));
            assert!(path.file_name().unwrap().len() < 255);
        }
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
    }

    #[test]
    fn a_short_list_of_millions_of_nodes_is_no_memory() {
        let list = "[1-17]a[1-17]b[1-17]c[1-77]d[1-77]e";
        let text = format!(r#"{{"images": {{"i": "{list}"}}, "tried": ""}}"#);
        assert_eq!(Begun::parse(&text), None);
    }

    #[test]
    fn a_broken_memory_is_none() {
        let long = format!("{{\"images\":{{}},\"tried\":\"\",\"last\":{}}}", u64::MAX);
        let nothing = Begun { images: BTreeMap::new(), tried: BTreeSet::new(), last: None };
        assert_eq!(Begun::parse(&long), Some(nothing));
        let broken = [
            "{\"images\":{}}",
            "{\"images\":{},\"tried\":3}",
            "{\"images\":{\"i\":\"n[\"},\"tried\":\"\"}",
        ];
        for text in ["", "{", "[]"].into_iter().chain(broken) {
            assert_eq!(Begun::parse(text), None, "{text}");
        }
    }
}
