//! Whether the cloud has the shapes of the nodes where they are to be.

use super::Point::{self, Well, Wrong};
use cloud_core::{Shape, Zone};
use slurmconf::NodeDef;
use std::collections::BTreeSet;

/// What is nowhere, or not where it is wanted; `root` and a number are an availability domain. A cloud that does not say
/// where it has its shapes is believed.
pub(super) fn points(offered: &[Shape], nodes: &[NodeDef], root: &str) -> Vec<Point> {
    let zones: BTreeSet<&Zone> = offered.iter().flat_map(|shape| &shape.zones).collect();
    if zones.is_empty() {
        return Vec::new();
    }
    let wanted = nodes.iter().filter_map(|node| Some((node.shape()?, zone(node.zone()?, root))));
    let wanted: BTreeSet<(&str, Zone)> = wanted.collect();
    let mut points = Vec::new();
    for zone in wanted.iter().map(|(_, zone)| zone).collect::<BTreeSet<_>>() {
        if !zones.contains(zone) {
            let all: Vec<&str> = zones.iter().map(|zone| zone.as_str()).collect();
            points.push(Wrong(format!(
                "nodes are to be in availability domain {zone}, and the cloud has {}: set ad_root to what these have before \
                 their number",
                all.join(", ")
            )));
        }
    }
    let is_there = |(shape, zone): &&(&str, Zone)| {
        let offered = offered.iter().find(|offered| offered.name.as_str() == *shape);
        offered.is_some_and(|offered| offered.zones.contains(zone))
    };
    let missing = wanted.iter().filter(|(_, zone)| zones.contains(zone)).filter(|it| !is_there(it));
    points.extend(missing.map(|(shape, zone)| {
        Wrong(format!("the cloud has no {shape} in {zone}; change limits.yaml, or ask for it"))
    }));
    if points.is_empty() && !wanted.is_empty() {
        points.push(Well("the cloud has the shapes of the nodes where they are to be".to_owned()));
    }
    points
}

/// A number is that of an availability domain.
pub(super) fn zone(name: &str, root: &str) -> Zone {
    match name.parse::<u32>() {
        Ok(number) => Zone::new(format!("{root}{number}")),
        Err(_) => Zone::new(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::ShapeName;
    use slurmconf::Config;

    #[test]
    fn a_wrong_root_of_availability_domains_was_all_well() {
        let mut shape = Shape::new(ShapeName::new("VM.Standard2.1"), 2, 15_360);
        shape.zones = vec![Zone::new("Uocm:PHX-AD-1")];
        let nodes = |features: &str| {
            Config::parse(&format!("NodeName=n1 State=CLOUD Features={features}\n")).unwrap().nodes
        };
        let said = |features: &str, root: &str| {
            let points = points(std::slice::from_ref(&shape), &nodes(features), root);
            let text = |point| match point {
                Point::Well(_) => "well".to_owned(),
                Point::Odd(text) | Point::Wrong(text) => text,
            };
            points.into_iter().map(text).collect::<Vec<_>>().join("; ")
        };
        let usual = "shape=VM.Standard2.1,ad=1";
        assert_eq!(said(usual, "Uocm:PHX-AD-"), "well");
        assert!(said(usual, "Nope:AD-").contains("Nope:AD-1, and the cloud has Uocm:PHX-AD-1"));
        assert!(said(usual, "").contains("set ad_root"));
        assert!(said("shape=VM.Odd.1,ad=1", "Uocm:PHX-AD-").contains("no VM.Odd.1 in"));
        assert_eq!(said("shape=VM.Standard2.1", ""), "", "the cloud chooses");
    }
}
