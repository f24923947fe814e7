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
    /// The value of `GresTypes` for these nodes; empty without generic resources.
    #[must_use]
    pub fn gres_types(&self) -> String {
        let lists = self.nodes.iter().filter_map(|node| node.gres.as_ref());
        let names: BTreeSet<_> = lists.flat_map(GresList::iter).map(|gres| gres.name).collect();
        names.into_iter().collect::<Vec<_>>().join(",")
    }

    /// The gres.conf for these nodes; empty without generic resources. It names the devices of GPUs, so that jobs are
    /// confined to theirs.
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

/// Writes a line; `used` counts the devices of earlier lines.
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
    // The first render node is number 128.
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

/// Slurm's `MAX_GRES_BITMAP`, the most devices with `File` on one node.
const MAX_DEVICES: u32 = 1024;

/// Returns an error for an invalid value, or for more GPUs than Slurm supports.
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
