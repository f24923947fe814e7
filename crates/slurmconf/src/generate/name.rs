//! Node names, byte for byte those of Cluster in the Cloud.

use crate::{
    error::{Problem, Result},
    limits::{Form, Group},
};
use hostlist::{Hostlist, NodeName};

/// All of a group's node names up to the number: `vm-standard2-1-ad1-`, `cheerful-macaw-t3a-small-`.
///
/// Only names without an availability domain carry the cluster's id. A group of the third form has its own name
/// where the others have the shape's.
pub(super) fn stem(group: &Group, cluster_id: Option<&str>) -> Result<String> {
    let fail = |problem| group.error(problem);
    check(&group.name).map_err(fail)?;
    let name = slug(&group.name);
    if let (Form::Domains, Some(domain)) = (group.form, &group.zone) {
        return Ok(format!("{name}-ad{domain}-"));
    }
    let Some(cluster) = cluster_id else {
        return Ok(format!("{name}-"));
    };
    check(cluster).map_err(fail)?;
    Ok(format!("{cluster}-{name}-"))
}

/// The name of the node group in StackHPC's style.
pub(super) fn node_group(stem: &str, cluster_id: Option<&str>) -> String {
    let prefix = cluster_id.map(|cluster| format!("{cluster}-")).unwrap_or_default();
    stem.strip_prefix(&prefix).unwrap_or(stem).trim_end_matches('-').to_owned()
}

fn slug(name: &str) -> String {
    name.to_lowercase().replace('.', "-")
}

/// The names with numbers from `first` to `last`: four digits, more from 10000 on.
pub(super) fn list(group: &Group, stem: &str, first: u32, last: u32) -> Result<Hostlist> {
    let longest = format!("{stem}{last:04}");
    if NodeName::new(&longest).is_err() {
        return Err(group.error(Problem::BadName { name: longest }));
    }
    let range = format!("{stem}[{first:04}-{last:04}]");
    let key = "NodeName".to_owned();
    range.parse().map_err(|source| group.error(Problem::BadHostlist { key, source }))
}

/// Refuses what would not be one word of a name, a feature or a partition.
pub(super) fn check(name: &str) -> std::result::Result<(), Problem> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let reserved = ["DEFAULT", "ALL"].iter().any(|word| word.eq_ignore_ascii_case(name));
    if !name.is_empty() && name.bytes().all(word) && !reserved {
        return Ok(());
    }
    Err(Problem::BadName { name: name.to_owned() })
}
