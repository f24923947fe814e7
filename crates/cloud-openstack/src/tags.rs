//! Converts tags to Nova's metadata, which has all of them, and Nova's tags, which it can filter by.
//!
//! A tag `cluster` of `blue` becomes the metadata `cluster: blue` and the Nova tag `cluster=blue`; one without a value,
//! such as `compute`, becomes the Nova tag `compute`. Nova's tags are short and allow neither comma nor slash; other tags
//! are only metadata. Nova silently ignores the `metadata` filter of a listing, so listings filter by Nova's tags, and the
//! response is filtered by both.

use cloud_core::{ApiOperation, Error, ErrorKind, Result, Tags};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The metadata key with the image of a server that boots from a volume, which Nova does not report.
pub(crate) const BOOT_IMAGE: &str = "boot_image";

/// Maximum length of a Nova tag, in characters.
const LONGEST_TAG: usize = 60;
/// Maximum number of Nova tags of a server.
const MOST_TAGS: usize = 50;
/// Maximum length of keys and values in metadata.
const LONGEST_ENTRY: usize = 255;

/// The Nova tag for a tag, if it is valid.
fn nova_tag(key: &str, value: &str) -> Option<String> {
    let tag = if value.is_empty() { key.to_owned() } else { format!("{key}={value}") };
    let ambiguous = key.contains('=');
    (is_nova_tag(&tag) && !ambiguous).then_some(tag)
}

/// True for a valid Nova tag.
fn is_nova_tag(tag: &str) -> bool {
    (1..=LONGEST_TAG).contains(&tag.chars().count()) && !tag.contains([',', '/'])
}

/// The Nova tags for creating a server; an error if Nova would reject them. None is omitted, because listings would not
/// find the server.
pub(crate) fn nova_tags(tags: &Tags, extra: &[String]) -> Result<Vec<String>> {
    let refuse =
        |message| Err(Error::new(ErrorKind::Invalid, ApiOperation::Launch).because(message));
    if let Some(bad) = extra.iter().find(|tag| !is_nova_tag(tag)) {
        return refuse(format!(
            "extra tag {bad:?}: Nova takes 1 to {LONGEST_TAG} characters, no comma and no slash"
        ));
    }
    let ours = tags.iter().filter_map(|(key, value)| nova_tag(key, value));
    let all: BTreeSet<String> = ours.chain(extra.iter().cloned()).collect();
    if all.len() > MOST_TAGS {
        return refuse(format!("{} Nova tags; Nova takes {MOST_TAGS}", all.len()));
    }
    Ok(all.into_iter().collect())
}

/// The metadata for creating a server; an error if Nova would reject it.
pub(crate) fn metadata(tags: &Tags) -> Result<Map<String, Value>> {
    let mut map = Map::new();
    for (key, value) in tags.iter() {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_:. ".contains(c);
        let fits = (1..=LONGEST_ENTRY).contains(&key.len()) && key.chars().all(good);
        if !fits || value.chars().count() > LONGEST_ENTRY {
            let message = format!(
                "tag {key:?}: Nova takes letters, digits and -_:. in a key, and 255 characters in key and value"
            );
            return Err(Error::new(ErrorKind::Invalid, ApiOperation::Launch).because(message));
        }
        map.insert(key.to_owned(), Value::String(value.to_owned()));
    }
    Ok(map)
}

/// The Nova tags that a listing filters by; none if none is valid.
pub(crate) fn query(tags: &Tags) -> Option<String> {
    let fitting: Vec<String> =
        tags.iter().filter_map(|(key, value)| nova_tag(key, value)).collect();
    (!fitting.is_empty()).then(|| fitting.join(","))
}

/// The tags from metadata and Nova's or Glance's tags. The first value counts.
pub(crate) fn from_parts<'a>(
    properties: impl Iterator<Item = (&'a str, &'a str)>,
    tags: &'a [String],
) -> Tags {
    let mut all: BTreeMap<&str, &str> = BTreeMap::new();
    for tag in tags {
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        if !key.is_empty() {
            all.insert(key, value);
        }
    }
    all.extend(properties);
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(metadata: &Map<String, Value>, tags: &[String]) -> Tags {
        from_parts(
            metadata.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap())),
            tags,
        )
    }

    #[test]
    fn what_does_not_fit_is_metadata_alone() {
        let tags =
            Tags::from([("cluster", "blue"), ("compute", ""), ("path", "a/b"), ("list", "a,b")])
                .with("long", "x".repeat(56));
        assert_eq!(
            nova_tags(&tags, &["extra".to_owned()]).unwrap(),
            ["cluster=blue", "compute", "extra"]
        );
        assert_eq!(query(&tags).unwrap(), "cluster=blue,compute");
        assert_eq!(query(&Tags::from([("path", "a/b")])), None);
        assert_eq!(metadata(&tags).unwrap().len(), 5);
    }

    #[test]
    fn a_tag_that_nova_refuses_is_refused_before_it_is_asked() {
        for (key, value) in [("k/ey", String::new()), ("", String::new()), ("key", "x".repeat(256))]
        {
            assert_eq!(
                metadata(&Tags::from([(key, value)])).unwrap_err().kind(),
                ErrorKind::Invalid
            );
        }
    }

    #[test]
    fn more_than_fifty_tags_are_refused() {
        let extra = |count: usize| (0..count).map(|n| format!("a{n}")).collect::<Vec<_>>();
        let tags = Tags::from([("cluster", "blue")]);
        assert_eq!(nova_tags(&tags, &extra(49)).unwrap().len(), 50);
        assert_eq!(nova_tags(&tags, &extra(50)).unwrap_err().kind(), ErrorKind::Invalid);
        for bad in [String::new(), "a,b".to_owned(), "a/b".to_owned(), "x".repeat(61)] {
            let error = nova_tags(&tags, std::slice::from_ref(&bad)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{bad}");
        }
    }

    #[test]
    fn metadata_that_contradicts_a_tag_counts() {
        let seen = from_parts([("cluster", "blue")].into_iter(), &["cluster=red".to_owned()]);
        assert_eq!(seen, Tags::from([("cluster", "blue")]));
    }

    proptest! {
        #[test]
        fn what_is_set_is_what_is_read(pairs in proptest::collection::btree_map("[a-z:._-]{1,20}", "\\PC{0,70}", 0..20)) {
            let tags: Tags = pairs.into_iter().collect();
            let set = metadata(&tags).unwrap();
            prop_assert_eq!(read(&set, &nova_tags(&tags, &[]).unwrap()), tags.clone());
            for tag in nova_tags(&tags, &[]).unwrap() {
                prop_assert!(tag.chars().count() <= LONGEST_TAG && !tag.contains(','));
            }
        }

        #[test]
        fn no_tag_makes_it_panic(tags in proptest::collection::vec(".*", 0..5)) {
            from_parts(std::iter::empty(), &tags);
        }
    }
}
