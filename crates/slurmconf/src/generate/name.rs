//! Node names of Cluster in the Cloud.

use crate::{
    error::{Problem, Result},
    limits::{Form, Group, is_word},
};
use hostlist::{Hostlist, NodeName};

/// The names of a group.
pub(super) struct Names {
    /// The node names up to the number: `vm-standard2-1-ad1-`, `cheerful-macaw-t3a-small-`.
    pub(super) stem: String,
    /// The name of the node group in StackHPC's style: the stem without cluster id and last dash.
    pub(super) label: String,
}

/// The names of a group. Only names without an availability domain have the cluster id.
pub(super) fn of(group: &Group, cluster_id: Option<&str>) -> Result<Names> {
    let fail = |problem| group.error(problem);
    check(&group.name).map_err(fail)?;
    let name = slug(&group.name);
    if let (Form::Domains, Some(domain)) = (group.form, &group.zone) {
        let label = format!("{name}-ad{domain}");
        return Ok(Names { stem: format!("{label}-"), label });
    }
    let Some(cluster) = cluster_id else {
        return Ok(Names { stem: format!("{name}-"), label: name });
    };
    check(cluster).map_err(fail)?;
    Ok(Names { stem: format!("{cluster}-{name}-"), label: name })
}

fn slug(name: &str) -> String {
    name.to_lowercase().replace('.', "-")
}

/// The names with numbers from `first` to `last`, of at least four digits.
pub(super) fn list(group: &Group, stem: &str, first: u32, last: u32) -> Result<Hostlist> {
    let longest = format!("{stem}{last:04}");
    if NodeName::new(&longest).is_err() {
        return Err(group.error(Problem::BadName { name: longest }));
    }
    let range = format!("{stem}[{first:04}-{last:04}]");
    let key = "NodeName".to_owned();
    range.parse().map_err(|source| group.error(Problem::BadHostlist { key, source }))
}

/// Returns an error for an invalid part of a node name, a feature or a partition name.
pub(super) fn check(name: &str) -> std::result::Result<(), Problem> {
    let reserved = ["DEFAULT", "ALL"].iter().any(|word| word.eq_ignore_ascii_case(name));
    if is_word(name) && !reserved {
        return Ok(());
    }
    Err(Problem::BadName { name: name.to_owned() })
}
