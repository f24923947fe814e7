//! gres.conf for generated nodes.

use super::Cluster;
use crate::{
    error::Problem,
    model::{Gres, GresList},
};
use hostlist::Hostlist;
use std::{collections::BTreeSet, fmt::Write as _};

impl Cluster {
    /// What `GresTypes` must be for these nodes; empty if they have no generic resources.
    #[must_use]
    pub fn gres_types(&self) -> String {
        let lists = self.nodes.iter().filter_map(|node| node.gres.as_ref());
        let names: BTreeSet<_> = lists.flat_map(GresList::iter).map(|gres| gres.name).collect();
        names.into_iter().collect::<Vec<_>>().join(",")
    }

    /// The gres.conf that goes with the nodes; empty if they have no generic resources.
    ///
    /// NVIDIA's and AMD's devices are named, so that jobs are kept to theirs.
    #[must_use]
    pub fn gres_conf(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            let mut first = 0;
            for gres in node.gres.iter().flat_map(GresList::iter) {
                line(&mut text, &node.names, gres, first);
                first += if gres.name == "gpu" { gres.count } else { 0 };
            }
        }
        text
    }
}

/// `first` is the number of the first device, as devices are numbered over all kinds.
fn line(text: &mut String, names: &Hostlist, gres: Gres<'_>, first: u64) {
    let _ = write!(text, "NodeName={names} Name={}", gres.name);
    if let Some(kind) = gres.kind {
        let _ = write!(text, " Type={kind}");
    }
    let last = first + gres.count.saturating_sub(1);
    // AMD's first render node is number 128.
    let (device, first, last) = match gres.kind {
        Some(kind) if kind.starts_with("mi") => ("/dev/dri/renderD", first + 128, last + 128),
        _ => ("/dev/nvidia", first, last),
    };
    let _ = match gres.name {
        "gpu" if first == last => writeln!(text, " File={device}{first}"),
        "gpu" => writeln!(text, " File={device}[{first}-{last}]"),
        _ => writeln!(text, " Count={}", gres.count),
    };
}

/// Refuses what would not be one value of a node line.
pub(super) fn check(gres: &str) -> Result<(), Problem> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:,()".contains(&byte);
    if gres.bytes().all(part) {
        return Ok(());
    }
    let expected = "name:type:count, separated by commas";
    Err(Problem::Expected { what: "gres".to_owned(), expected, found: format!("{gres:?}") })
}
