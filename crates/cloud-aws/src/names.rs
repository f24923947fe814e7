//! The names of instances that one request launches: they differ, and the request has one set of tags for all.
//!
//! So the request carries the names of all, in order, in tags that every instance gets. EC2 gives each instance of a
//! request a launch index, and shows it in every listing: the name of an instance is the one at its index. Even after a
//! crash, every instance has its name. Tags that would hold the name hold [`BY_INDEX`] instead.

use cloud_core::{InstanceName, InstanceSpec, Tags};
use std::collections::BTreeMap;

/// Replaces the name in the tags of instances that are launched together.
pub(crate) const BY_INDEX: &str = "@launch-index";

/// The tag that the console shows.
const NAME: &str = "Name";

/// Tags with a part of the names: `names:0`, `names:1` and so on. The metadata service shows tags with such keys, too.
const NAMES: &str = "names:";

/// Maximum length of the value of a tag, in characters.
const LONGEST_VALUE: usize = 256;

/// Maximum number of tags of an instance.
const MOST_TAGS: usize = 50;

/// The tags of one instance.
pub(crate) fn of_one(spec: &InstanceSpec) -> Vec<(String, String)> {
    let own = spec.tags.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    own.chain([(NAME.to_owned(), spec.name.as_str().to_owned())]).collect()
}

/// The tags with the name replaced. Launches with the same ones can share a request.
pub(crate) fn common(spec: &InstanceSpec) -> Vec<(&str, &str)> {
    let name = spec.name.as_str();
    let by_index = |value| if value == name { BY_INDEX } else { value };
    spec.tags.iter().map(|(key, value)| (key, by_index(value))).collect()
}

/// The tags of one request for as many of these launches as fit, beside a number of other tags. Returns the number of
/// launches, and the tags.
pub(crate) fn of(specs: &[&InstanceSpec], others: usize) -> (usize, Vec<(String, String)>) {
    match (specs.first(), of_many(specs, others)) {
        // A launch on its own has its name in the tag `Name`.
        (Some(one), (0 | 1, _)) => (1, of_one(one)),
        (_, placed) => placed,
    }
}

/// The tags of instances that are launched together, and the number of names that fit.
fn of_many(specs: &[&InstanceSpec], others: usize) -> (usize, Vec<(String, String)>) {
    let Some(first) = specs.first() else {
        return (0, Vec::new());
    };
    let own = common(first).into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut tags: Vec<(String, String)> = own.collect();
    let room = MOST_TAGS.saturating_sub(tags.len()).saturating_sub(others);
    let mut chunks: Vec<String> = Vec::new();
    let mut placed = 0;
    for spec in specs {
        let name = spec.name.as_str();
        let is_full = chunks.len() >= room;
        match chunks.last_mut() {
            Some(last) if last.len().saturating_add(name.len()) < LONGEST_VALUE => {
                last.push(' ');
                last.push_str(name);
            }
            _ if is_full => break,
            _ => chunks.push(name.to_owned()),
        }
        placed += 1;
    }
    let numbered = (0u32..).zip(chunks);
    tags.extend(numbered.map(|(number, names)| (format!("{NAMES}{number}"), names)));
    (placed, tags)
}

/// The name of an instance, and its tags as its launch had them.
pub(crate) fn resolve(
    id: &str,
    mut tags: BTreeMap<String, String>,
    launch_index: usize,
) -> (InstanceName, Tags) {
    let chunks = (0u32..).map_while(|number| tags.remove(&format!("{NAMES}{number}")));
    let names = chunks.collect::<Vec<_>>().join(" ");
    let by_index = names.split(' ').filter(|name| !name.is_empty()).nth(launch_index);
    let own = tags.remove(NAME).filter(|name| !name.is_empty());
    // A name that was set in the console does not change the node.
    let name = by_index.or(own.as_deref()).unwrap_or(id).to_owned();
    let by_name = |value| if value == BY_INDEX { name.clone() } else { value };
    let tags = tags.into_iter().map(|(key, value)| (key, by_name(value))).collect();
    (InstanceName::new(name), tags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{ImageId, ShapeName};
    use proptest::prelude::*;

    fn spec(name: &str) -> InstanceSpec {
        let (shape, image) = (ShapeName::new("t3.small"), ImageId::new("ami-1"));
        let mut spec = InstanceSpec::new(InstanceName::new(name), shape, image);
        spec.tags = Tags::from([("cluster", "blue"), ("node", name)]);
        spec
    }

    #[test]
    fn an_instance_launched_alone_has_its_name_in_the_console() {
        let tags: BTreeMap<_, _> = of_one(&spec("n1")).into_iter().collect();
        assert_eq!(tags.get("Name").map(String::as_str), Some("n1"));
        assert_eq!(resolve("i-1", tags, 0), (InstanceName::new("n1"), spec("n1").tags));
    }

    #[test]
    fn an_instance_of_nobody_is_called_by_its_id() {
        let (name, tags) = resolve("i-1", BTreeMap::new(), 7);
        assert_eq!((name.as_str(), tags), ("i-1", Tags::new()));
    }

    #[test]
    fn more_names_than_tags_have_room_for_wait_for_the_next_request() {
        let specs: Vec<InstanceSpec> = (0..2000).map(|n| spec(&format!("n{n:0200}"))).collect();
        let (placed, tags) = of_many(&specs.iter().collect::<Vec<_>>(), 0);
        assert_eq!((placed, tags.len()), (48, MOST_TAGS));
    }

    #[test]
    fn where_no_name_has_room_each_is_launched_alone_and_by_its_name() {
        let specs = [spec("n1"), spec("n2")];
        for others in [MOST_TAGS - 2, MOST_TAGS, 500] {
            let (placed, tags) = of(&specs.iter().collect::<Vec<_>>(), others);
            assert_eq!((placed, tags), (1, of_one(&specs[0])));
        }
    }

    proptest! {
        #[test]
        fn every_instance_of_a_launch_gets_its_own_name_and_tags_back(
            names in prop::collection::btree_set("[a-z][a-z0-9-]{0,60}", 1..150),
        ) {
            let specs: Vec<InstanceSpec> = names.iter().map(|name| spec(name)).collect();
            let (placed, tags) = of_many(&specs.iter().collect::<Vec<_>>(), 0);
            prop_assert!(placed > 0 && tags.len() <= MOST_TAGS);
            prop_assert!(tags.iter().all(|(_, value)| value.chars().count() <= LONGEST_VALUE));
            for (index, spec) in specs.iter().take(placed).enumerate() {
                let (name, found) = resolve("i-1", tags.iter().cloned().collect(), index);
                prop_assert_eq!((&name, &found), (&spec.name, &spec.tags));
            }
        }
    }
}
