//! Servers of an earlier tool, which share one Nova tag with those of this crate.

use crate::tags;
use cloud_core::{Instance, Tags};

/// A Nova tag that stands for a tag of this crate on all servers, also those of an earlier tool.
///
/// Cluster in the Cloud sets the Nova tag `compute`, and the cluster as metadata, by which Nova does not filter. A listing
/// with the tag `type` of `compute` filters only by this Nova tag in the request, and by the rest in the response.
///
/// ```
/// use cloud_openstack::LegacyTag;
///
/// let mark = LegacyTag::new("compute", ("type", "compute"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegacyTag {
    tag: String,
    key: String,
    value: String,
}

impl LegacyTag {
    /// Creates it from a Nova tag without a value, and the tag that it stands for.
    pub fn new(tag: impl Into<String>, (key, value): (&str, &str)) -> Self {
        Self { tag: tag.into(), key: key.to_owned(), value: value.to_owned() }
    }

    /// The Nova tags to filter by, so that the response has all servers with these tags.
    pub(crate) fn query(legacy_tag: Option<&Self>, wanted: &Tags) -> Option<String> {
        match legacy_tag {
            Some(legacy_tag) if wanted.get(&legacy_tag.key) == Some(&legacy_tag.value) => {
                Some(legacy_tag.tag.clone())
            }
            _ => tags::query(wanted),
        }
    }

    /// Adds the tag to a server that has the Nova tag.
    pub(crate) fn read(&self, instance: &mut Instance) {
        if instance.tags.get(&self.tag) == Some("") && instance.tags.get(&self.key).is_none() {
            let tags = std::mem::take(&mut instance.tags);
            instance.tags = tags.with(&*self.key, &*self.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{InstanceId, InstanceName, InstanceState};

    fn legacy_tag() -> LegacyTag {
        LegacyTag::new("compute", ("type", "compute"))
    }

    #[test]
    fn a_listing_asks_for_the_legacy_tag_where_it_stands_for_the_wanted_tag() {
        let legacy_tag = legacy_tag();
        let ours = Tags::from([("cluster", "blue"), ("type", "compute")]);
        let cluster = Tags::from([("cluster", "blue")]);
        let asked = |legacy_tag, tags| LegacyTag::query(legacy_tag, tags);
        assert_eq!(asked(Some(&legacy_tag), &ours).as_deref(), Some("compute"));
        assert_eq!(asked(Some(&legacy_tag), &cluster).as_deref(), Some("cluster=blue"));
        assert_eq!(asked(None, &ours).as_deref(), Some("cluster=blue,type=compute"));
        assert_eq!(asked(Some(&legacy_tag), &Tags::new()), None);
    }

    #[test]
    fn servers_of_cluster_in_the_cloud_are_ours() {
        let read = |tags: Tags| {
            let (id, name) = (InstanceId::new("i"), InstanceName::new("n"));
            let mut instance = Instance::new(id, name, InstanceState::Running);
            instance.tags = tags;
            legacy_tag().read(&mut instance);
            instance.tags
        };
        let ours = Tags::from([("cluster", "blue"), ("type", "compute")]);
        let theirs = read(Tags::from([("cluster", "blue"), ("compute", "")]));
        assert!(theirs.include(&ours), "{theirs:?}");
        for other in [
            Tags::from([("cluster", "blue")]),
            Tags::from([("cluster", "blue"), ("compute", ""), ("type", "login")]),
            Tags::from([("cluster", "red"), ("compute", "")]),
        ] {
            assert!(!read(other.clone()).include(&ours), "{other:?}");
        }
    }
}
