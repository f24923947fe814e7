//! Whether the cloud has the shapes of the nodes where they are to be.

use super::Point::{self, Well, Wrong};
use cloud_core::{Shape, ShapeName, Zone};
use provision::{Place, Site};
use slurmconf::NodeDef;
use std::collections::BTreeSet;

/// What is nowhere, or not where it is wanted first. A cloud that does not say where it has its shapes is believed.
pub(super) fn points(offered: &[Shape], nodes: &[NodeDef], site: &Site) -> Vec<Point> {
    let zones: BTreeSet<&Zone> = offered.iter().flat_map(|shape| &shape.zones).collect();
    if zones.is_empty() {
        return Vec::new();
    }
    let wanted = nodes.iter().filter_map(|node| first(node, site));
    let wanted: BTreeSet<(ShapeName, Zone)> =
        wanted.filter_map(|place| Some((place.shape, place.zone?))).collect();
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
    let is_there = |(shape, zone): &&(ShapeName, Zone)| {
        let offered = offered.iter().find(|offered| offered.name == *shape);
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

/// Where a node is to be, if there is room.
pub(super) fn first(node: &NodeDef, site: &Site) -> Option<Place> {
    site.places(node)?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use provision::Identity;
    use slurmconf::Config;

    /// What is said of nodes with these features in a cloud with two shapes in one zone.
    fn said(features: &str, root: &str) -> String {
        let shape = |name| {
            let mut shape = Shape::new(ShapeName::new(name), 2, 15_360);
            shape.zones = vec![Zone::new("Uocm:PHX-AD-1")];
            shape
        };
        let offered = [shape("VM.Standard2.1"), shape("VM.Standard.E4.Flex")];
        let conf = format!("NodeName=n1 State=CLOUD Features={features}\n");
        let mut site = Site::new(Identity::cluster("c1"));
        site.zone_root = Some(root.to_owned());
        let points = points(&offered, &Config::parse(&conf).unwrap().nodes, &site);
        let text = |point| match point {
            Point::Well(_) => "well".to_owned(),
            Point::Odd(text) | Point::Wrong(text) => text,
        };
        points.into_iter().map(text).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_flexible_shape_was_not_found_by_the_name_that_has_its_size() {
        let root = "Uocm:PHX-AD-";
        assert_eq!(said("shape=VM.Standard.E4.Flex.16.256,ad=1", root), "well");
        assert!(
            said("shape=VM.Standard.E9.Flex.1.16,ad=1", root).contains("VM.Standard.E9.Flex in")
        );
    }

    #[test]
    fn a_domain_by_its_whole_name_was_well_here_and_another_for_launches() {
        assert_eq!(said("shape=VM.Standard2.1,ad=Uocm:PHX-AD-1", "Uocm:PHX-AD-"), "well");
    }

    #[test]
    fn a_wrong_root_of_availability_domains_was_all_well() {
        let usual = "shape=VM.Standard2.1,ad=1";
        assert_eq!(said(usual, "Uocm:PHX-AD-"), "well");
        assert!(said(usual, "Nope:AD-").contains("Nope:AD-1, and the cloud has Uocm:PHX-AD-1"));
        assert!(said(usual, "").contains("set ad_root"));
        assert!(said("shape=VM.Odd.1,ad=1", "Uocm:PHX-AD-").contains("no VM.Odd.1 in"));
        assert_eq!(said("shape=VM.Standard2.1", ""), "", "the cloud chooses");
    }
}
