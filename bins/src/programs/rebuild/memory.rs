//! What a rollout has begun, from one call to the next.

use crate::output::chain;
use cloud_core::ImageId;
use hostlist::{Hostlist, NodeName};
use provision::plan::Rollout;
use provision::state::replace_whole_ours;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

const PREFIX: &str = "rollout-";
const SUFFIX: &str = ".json";

/// A file in the state directory; without it a rollout begins anew, which costs nothing but that nodes that failed are
/// tried again.
#[derive(Debug)]
pub(super) struct Memory {
    path: PathBuf,
}

impl Memory {
    /// That of this rollout: another image, or the same for other nodes, has a file of its own. Without an image each
    /// node has the one that its own file names, and whoever asks again means the same rollout.
    pub(super) fn of(state: &Path, image: Option<&ImageId>, request: &Rollout) -> Self {
        Self { path: state.join(file_name(image, request)) }
    }

    /// Puts into the request what an earlier call has begun; a node that is to have another image by now was not tried.
    pub(super) fn recall(&self, request: &mut Rollout) {
        let Some(begun) = Begun::read(&self.path) else { return };
        let same = |node: &NodeName| {
            let now = request.images.get(node);
            now.is_none_or(|now| begun.images.get(node).is_some_and(|then| then == now))
        };
        request.tried = begun.tried.iter().filter(|node| same(node)).cloned().collect();
        request.last = begun.last.map(|seconds| UNIX_EPOCH + seconds);
    }

    /// Writes down what the request has begun; a rollout of another image has no say over its nodes any more.
    pub(super) fn keep(&self, request: &Rollout) -> Result<(), String> {
        let last = request.last.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let (images, tried) = (request.images.clone(), request.tried.clone());
        Begun { images, tried, last }.write(&self.path)?;
        self.take_from_others(|node, image| request.images.get(node).is_some_and(|it| it != image))
    }

    /// Forgets it: the rollout is done, or whoever runs it wants nodes that failed tried again. So it is with what another
    /// that was left has begun for its nodes.
    pub(super) fn forget(&self, request: &Rollout) -> Result<(), String> {
        remove(&self.path)?;
        self.take_from_others(|node, _| request.images.contains_key(node))
    }

    /// Takes nodes out of the memory of other rollouts.
    fn take_from_others(
        &self,
        is_ours: impl Fn(&NodeName, &ImageId) -> bool,
    ) -> Result<(), String> {
        let state = self.path.parent().unwrap_or(Path::new(""));
        for (path, mut other) in all(state).filter(|(path, _)| *path != self.path) {
            let before = other.images.len();
            other.images.retain(|node, image| !is_ours(node, image));
            if other.images.len() == before {
                continue;
            }
            if other.images.is_empty() {
                remove(&path)?;
            } else {
                other.write(&path)?;
            }
        }
        Ok(())
    }
}

fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The image that each node is to have by a rollout that is not done.
pub(super) fn under_way(state: &Path) -> BTreeMap<NodeName, ImageId> {
    all(state).flat_map(|(_, begun)| begun.images).collect()
}

/// What rollouts have begun, each with its file.
fn all(state: &Path) -> impl Iterator<Item = (PathBuf, Begun)> {
    let files = std::fs::read_dir(state).into_iter().flatten().flatten();
    let ours = files.filter(|file| {
        let name = file.file_name();
        name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
    });
    ours.filter_map(|file| Some((file.path(), Begun::read(&file.path())?)))
}

/// The most bytes of a name that are written out: file names end at 255.
const LONGEST: usize = 160;

/// A name that says what it is of, and is another for each image and each choice of nodes.
fn file_name(image: Option<&ImageId>, request: &Rollout) -> String {
    let nodes: Hostlist = request.nodes.iter().collect();
    let mut words = vec![image.map_or_else(|| "own images".to_owned(), ImageId::to_string)];
    words.extend(request.partitions.iter().map(|name| format!("partition {name}")));
    words.extend((!nodes.is_empty()).then(|| format!("nodes {nodes}")));
    let whole = words.join(" ");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = whole.chars().map(plain).take(LONGEST).collect();
    if name == whole {
        return format!("{PREFIX}{name}{SUFFIX}");
    }
    // FNV: the same in every release, which the hashes of the standard library are not.
    let hash = whole.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{PREFIX}{name}-{hash:016x}{SUFFIX}")
}

/// What is in such a file.
#[derive(Debug, PartialEq, Eq)]
struct Begun {
    images: BTreeMap<NodeName, ImageId>,
    tried: BTreeSet<NodeName>,
    last: Option<Duration>,
}

impl Begun {
    fn read(path: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    fn write(&self, path: &Path) -> Result<(), String> {
        let mut images: BTreeMap<&str, Hostlist> = BTreeMap::new();
        for (node, image) in &self.images {
            images.entry(image.as_str()).or_default().push(node.as_str());
        }
        let images: BTreeMap<&str, String> =
            images.into_iter().map(|(image, nodes)| (image, nodes.to_string())).collect();
        let tried: Hostlist = self.tried.iter().collect();
        let last = self.last.map(|at| at.as_secs());
        let value = json!({"images": images, "last": last, "tried": tried.to_string()});
        replace_whole_ours(path, format!("{value}\n").as_bytes()).map_err(|error| chain(&error))
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let mut images = BTreeMap::new();
        for (image, list) in value.get("images")?.as_object()? {
            images.extend(nodes(list)?.into_iter().map(|node| (node, ImageId::new(image))));
        }
        let tried = nodes(value.get("tried")?)?.into_iter().collect();
        let last = value.get("last").and_then(Value::as_u64);
        // A time that nothing can be added to is none.
        let last = last.map(Duration::from_secs).filter(|at| UNIX_EPOCH.checked_add(*at).is_some());
        Some(Self { images, tried, last })
    }
}

fn nodes(list: &Value) -> Option<Vec<NodeName>> {
    list.as_str()?.parse::<Hostlist>().ok()?.node_names().ok()
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
        let memory = Memory::of(folder.path(), Some(&image), &request);
        request.tried.insert(node("n1"));
        request.last = Some(UNIX_EPOCH + Duration::from_secs(7));
        memory.keep(&request).unwrap();
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
    fn a_rollout_forgot_what_failed_when_another_nodes_file_became_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        let mut request = rollout(&[("n1", "a"), ("n2", "b"), ("n3", "b")]);
        request.tried.insert(node("n1"));
        Memory::of(folder.path(), None, &request).keep(&request).unwrap();
        // The third has no image now, and the second another.
        let mut again = rollout(&[("n1", "a"), ("n2", "c")]);
        Memory::of(folder.path(), None, &again).recall(&mut again);
        assert_eq!(again.tried, BTreeSet::from([node("n1")]));
    }

    #[test]
    fn what_is_under_way_is_known_to_others() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(under_way(folder.path()), BTreeMap::new());
        std::fs::write(folder.path().join("rollout-torn.json"), "{").unwrap();
        let begin = |image: &str, nodes: &[(&str, &str)]| {
            let request = rollout(nodes);
            let memory = Memory::of(folder.path(), Some(&ImageId::new(image)), &request);
            memory.keep(&request).unwrap();
            (memory, request)
        };
        begin("old", &[("n1", "old"), ("n2", "old")]);
        let (new, request) = begin("new", &[("n1", "new")]);
        let expected = [("n1", "new"), ("n2", "old")];
        assert_eq!(under_way(folder.path()), rollout(&expected).images);
        new.forget(&request).unwrap();
        assert_eq!(under_way(folder.path()), rollout(&[("n2", "old")]).images);
    }

    #[test]
    fn a_rollout_that_was_left_came_back_when_the_one_after_it_was_over() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |image: &str, partition: Option<&str>| {
            let mut request = rollout(&[("n1", image)]);
            request.partitions.extend(partition.map(str::to_owned));
            let memory = Memory::of(folder.path(), Some(&ImageId::new(image)), &request);
            memory.keep(&request).unwrap();
            (memory, request)
        };
        for left in [("other", None), ("same", Some("p"))] {
            begin(left.0, left.1);
            let (memory, request) = begin("same", None);
            memory.forget(&request).unwrap();
            assert_eq!(under_way(folder.path()), BTreeMap::new(), "{left:?}");
        }
    }

    #[test]
    fn a_rollout_of_the_same_image_to_other_nodes_keeps_its_memory() {
        let folder = tempfile::tempdir().unwrap();
        let image = ImageId::new("new");
        let mut part = rollout(&[("n1", "new")]);
        part.partitions.push("p".to_owned());
        part.tried.insert(node("n1"));
        Memory::of(folder.path(), Some(&image), &part).keep(&part).unwrap();
        let whole = rollout(&[("n1", "new"), ("n2", "new")]);
        Memory::of(folder.path(), Some(&image), &whole).keep(&whole).unwrap();
        let mut again = rollout(&[("n1", "new")]);
        again.partitions.push("p".to_owned());
        Memory::of(folder.path(), Some(&image), &again).recall(&mut again);
        assert_eq!(again.tried, part.tried);
    }

    #[test]
    fn two_rollouts_shared_one_memory() {
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
            all.push(Memory::of(folder.path(), image.map(ImageId::new).as_ref(), &request).path);
        }
        for path in &all {
            assert_eq!(path.parent(), Some(folder.path()));
            assert!(path.file_name().unwrap().len() < 255);
        }
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
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
