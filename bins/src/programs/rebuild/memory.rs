//! What a rollout has begun, from one call to the next.

use crate::output::chain;
use hostlist::{Hostlist, NodeName};
use provision::plan::Rollout;
use provision::state::replace_whole;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// A file in the state directory; without it a rollout begins anew, which costs nothing but that nodes that failed are
/// tried again.
#[derive(Debug)]
pub(super) struct Memory {
    path: PathBuf,
}

impl Memory {
    /// That of this rollout: another image, or the same for other nodes, has a file of its own.
    pub(super) fn of(state: &Path, request: &Rollout) -> Self {
        Self { path: state.join(file_name(request)) }
    }

    /// Puts into the request what an earlier call for the same image has begun.
    pub(super) fn recall(&self, request: &mut Rollout) {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let Some((tried, last)) = read(&text, &images(request)) else { return };
        request.tried = tried;
        request.last = last.map(|seconds| UNIX_EPOCH + seconds);
    }

    /// Writes down what the request has begun.
    pub(super) fn keep(&self, request: &Rollout) -> Result<(), String> {
        let last = request.last.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let tried: Vec<&str> = request.tried.iter().map(NodeName::as_str).collect();
        let last = last.map(|at| at.as_secs());
        let value = json!({"image": images(request), "last": last, "tried": tried});
        replace_whole(&self.path, format!("{value}\n").as_bytes()).map_err(|error| chain(&error))
    }

    /// Forgets it: the rollout is over, and whoever runs it again wants nodes that failed tried again.
    pub(super) fn forget(&self) -> Result<(), String> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {error}", self.path.display()))
            }
            _ => Ok(()),
        }
    }
}

/// The most bytes of a name that are written out: file names end at 255.
const LONGEST: usize = 160;

/// A name that says what it is of, and is another for each image and each choice of nodes.
fn file_name(request: &Rollout) -> String {
    let nodes: Hostlist = request.nodes.iter().collect();
    let mut words = vec![images(request)];
    words.extend(request.partitions.iter().map(|name| format!("partition {name}")));
    words.extend((!nodes.is_empty()).then(|| format!("nodes {nodes}")));
    let whole = words.join(" ");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = whole.chars().map(plain).take(LONGEST).collect();
    if name == whole {
        return format!("rollout-{name}.json");
    }
    // FNV: the same in every release, which the hashes of the standard library are not.
    let hash = whole.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("rollout-{name}-{hash:016x}.json")
}

/// The image of all nodes, or which nodes have which.
fn images(request: &Rollout) -> String {
    let mut all: BTreeMap<&str, Hostlist> = BTreeMap::new();
    for (node, image) in &request.images {
        all.entry(image.as_str()).or_default().push(node.as_str());
    }
    if all.len() < 2 {
        return request.image.to_string();
    }
    let words: Vec<String> = all.iter().map(|(image, nodes)| format!("{image}={nodes}")).collect();
    words.join(",")
}

fn read(text: &str, image: &str) -> Option<(BTreeSet<NodeName>, Option<Duration>)> {
    let value: Value = serde_json::from_str(text).ok()?;
    if value.get("image")?.as_str()? != image {
        return None;
    }
    let tried = value.get("tried")?.as_array()?.iter();
    let tried = tried.filter_map(|name| NodeName::new(name.as_str()?).ok()).collect();
    let last = value.get("last").and_then(Value::as_u64);
    // A time that nothing can be added to is none.
    let last = last.map(Duration::from_secs).filter(|at| UNIX_EPOCH.checked_add(*at).is_some());
    Some((tried, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::ImageId;

    #[test]
    fn another_call_knows_what_was_begun_and_another_image_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut request = Rollout::new(ImageId::new("img-2"));
        let memory = Memory::of(folder.path(), &request);
        request.tried.insert(NodeName::new("n1").unwrap());
        request.last = Some(UNIX_EPOCH + Duration::from_secs(7));
        memory.keep(&request).unwrap();
        let mut again = Rollout::new(ImageId::new("img-2"));
        memory.recall(&mut again);
        assert_eq!(again, request);
        let mut other = Rollout::new(ImageId::new("img-3"));
        memory.recall(&mut other);
        assert_eq!(other, Rollout::new(ImageId::new("img-3")));
        memory.forget().unwrap();
        memory.forget().unwrap();
        let mut anew = Rollout::new(ImageId::new("img-2"));
        memory.recall(&mut anew);
        assert!(anew.tried.is_empty());
    }

    #[test]
    fn two_rollouts_shared_one_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        for (image, partition, node) in [
            ("a", "", ""),
            ("b", "", ""),
            ("a", "p", ""),
            ("a", "", "p"),
            ("a", "", "n1"),
            ("../a", "", ""),
        ] {
            let mut request = Rollout::new(ImageId::new(image));
            request.partitions.extend((!partition.is_empty()).then(|| partition.to_owned()));
            request.nodes.extend(NodeName::new(node).ok());
            all.push(Memory::of(folder.path(), &request).path);
        }
        for image in ["b", "c"] {
            let mut own = Rollout::new(ImageId::new("a"));
            let nodes = [("n1", "a"), ("n2", image)];
            let nodes = nodes.map(|(it, image)| (NodeName::new(it).unwrap(), ImageId::new(image)));
            own.images.extend(nodes);
            all.push(Memory::of(folder.path(), &own).path);
        }
        let long = Rollout::new(ImageId::new("x".repeat(999)));
        all.push(Memory::of(folder.path(), &long).path);
        for path in &all {
            assert_eq!(path.parent(), Some(folder.path()));
            assert!(path.file_name().unwrap().len() < 255);
        }
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
    }

    #[test]
    fn a_broken_memory_is_none() {
        let long = format!("{{\"image\":\"i\",\"tried\":[],\"last\":{}}}", u64::MAX);
        assert_eq!(read(&long, "i"), Some((BTreeSet::new(), None)));
        for text in ["", "{", "[]", "{\"image\":\"i\"}", "{\"image\":\"i\",\"tried\":3}"] {
            assert_eq!(read(text, "i"), None, "{text}");
        }
    }
}
