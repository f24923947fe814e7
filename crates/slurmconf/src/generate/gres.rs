//! gres.conf for generated nodes.

use super::Cluster;
use crate::{
    error::Problem,
    model::{Gres, GresList},
};
use hostlist::Hostlist;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

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
            let mut used = BTreeMap::new();
            for gres in node.gres.iter().flat_map(GresList::iter) {
                line(&mut text, &node.names, gres, &mut used);
            }
        }
        text
    }
}

/// `used` counts the devices of each kind that earlier lines have taken.
fn line<'a>(
    text: &mut String,
    names: &Hostlist,
    gres: Gres<'a>,
    used: &mut BTreeMap<&'a str, u64>,
) {
    let _ = write!(text, "NodeName={names} Name={}", gres.name);
    if let Some(kind) = gres.kind {
        let _ = write!(text, " Type={kind}");
    }
    if gres.name != "gpu" || gres.count == 0 {
        let _ = writeln!(text, " Count={}", gres.count);
        return;
    }
    // AMD's first render node is number 128.
    let (device, number) = match gres.kind {
        Some(kind) if kind.starts_with("mi") => ("/dev/dri/renderD", 128),
        Some(_) | None => ("/dev/nvidia", 0),
    };
    let first = *used.entry(device).or_insert(number);
    let next = first.saturating_add(gres.count);
    used.insert(device, next);
    let _ = match gres.count {
        1 => writeln!(text, " File={device}{first}"),
        _ => writeln!(text, " File={device}[{first}-{}]", next - 1),
    };
}

/// Slurm's `MAX_GRES_BITMAP`: more devices with `File` on one node it resets to this many, with an error in the log.
const MAX_DEVICES: u32 = 1024;

/// Refuses what would not be one value of a node line, or more GPUs than can be.
pub(super) fn check(gres: &str) -> Result<(), Problem> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:,()".contains(&byte);
    if !gres.bytes().all(part) {
        let expected = "name:type:count, separated by commas";
        return Err(Problem::Expected {
            what: "gres".to_owned(),
            expected: expected.to_owned(),
            found: format!("{gres:?}"),
        });
    }
    let list = GresList::from(gres);
    let too_many = |gres: &Gres<'_>| gres.name == "gpu" && gres.count > u64::from(MAX_DEVICES);
    let Some(gpus) = list.iter().find(too_many) else { return Ok(()) };
    let count = i64::try_from(gpus.count).unwrap_or(i64::MAX);
    Err(Problem::OutOfBounds { what: "gpu".to_owned(), count, least: 0, most: MAX_DEVICES })
}
