//! Servers that somebody else launched before us, by the one Nova tag that they and ours share.

use crate::tags;
use cloud_core::{Instance, Tags};

/// A Nova tag that all servers have which are meant by a tag of ours, also those from before us.
///
/// Cluster in the Cloud gave its servers the Nova tag `compute`, and the cluster as metadata, by which Nova does not
/// filter. Where listings ask for `type` of `compute`, they ask Nova for the mark alone, and the rest is looked at in the
/// answer.
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
    /// A Nova tag without a value, and the tag of ours that it stands for.
    pub fn new(tag: impl Into<String>, (key, value): (&str, &str)) -> Self {
        Self { tag: tag.into(), key: key.to_owned(), value: value.to_owned() }
    }

    /// What to ask Nova for so that everything is shown that these tags mean.
    pub(crate) fn query(legacy_tag: Option<&Self>, wanted: &Tags) -> Option<String> {
        match legacy_tag {
            Some(legacy_tag) if wanted.get(&legacy_tag.key) == Some(&legacy_tag.value) => {
                Some(legacy_tag.tag.clone())
            }
            _ => tags::query(wanted),
        }
    }

    /// Gives a server that has the mark the tag that it stands for.
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
