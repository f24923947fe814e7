//! Whether the cloud has the shapes of the nodes where they are to be.

use super::Point::{self, Well, Wrong};
use cloud_core::{Shape, ShapeName, Zone};
use provision::{Place, Site};
use slurmconf::NodeDef;
use std::collections::BTreeSet;

/// What is nowhere, or not where it is wanted. A cloud that does not say where it has its shapes is believed about that.
pub(super) fn points(offered: &[Shape], nodes: &[NodeDef], site: &Site) -> Vec<Point> {
    let zones: BTreeSet<&Zone> = offered.iter().flat_map(|shape| &shape.zones).collect();
    let (wanted, others) = wanted(nodes, site);
    let mut points = Vec::new();
    for zone in unknown(&wanted, &zones) {
        let all = names(&zones);
        points.push(Wrong(format!(
            "nodes are to be in availability domain {zone}, and the cloud has {all}: set ad_root to what these have before \
             their number"
        )));
    }
    for zone in unknown(&others, &zones) {
        let all = names(&zones);
        points.push(Wrong(format!("fallback names the zone {zone}, and the cloud has {all}")));
    }
    for (shape, zone) in wanted.iter().filter(|place| !is_there(place, offered, &zones)) {
        let place = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
        points.push(Wrong(format!(
            "the cloud has no {shape}{place}; change limits.yaml, or ask for it"
        )));
    }
    for (shape, zone) in others.iter().filter(|place| !is_there(place, offered, &zones)) {
        let place = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
        points.push(Wrong(format!("fallback: the cloud has no {shape}{place}; change fallback")));
    }
    let known = wanted.iter().chain(&others).any(|(_, zone)| zone.is_some()) && !zones.is_empty();
    if points.is_empty() && known {
        points.push(Well("the cloud has the shapes of the nodes where they are to be".to_owned()));
    }
    points
}

/// A shape, and where.
type Wanted = BTreeSet<(ShapeName, Option<Zone>)>;

/// What is wanted first, and what only where that is full.
fn wanted(nodes: &[NodeDef], site: &Site) -> (Wanted, Wanted) {
    let (mut first, mut others) = (Wanted::new(), Wanted::new());
    for node in nodes {
        let mut places = site.places(node).unwrap_or_default().into_iter();
        first.extend(places.next().map(|place| (place.shape, place.zone)));
        others.extend(places.map(|place| (place.shape, place.zone)));
    }
    // Shapes of the limits are known, or there would be no nodes.
    first.retain(|(_, zone)| zone.is_some());
    others.retain(|place| !first.contains(place));
    (first, others)
}

/// Zones that the cloud does not have, as far as it says which it has.
fn unknown<'a>(wanted: &'a Wanted, zones: &BTreeSet<&Zone>) -> BTreeSet<&'a Zone> {
    let wanted = wanted.iter().filter_map(|(_, zone)| zone.as_ref());
    wanted.filter(|zone| !zones.is_empty() && !zones.contains(zone)).collect()
}

/// True unless the cloud says that it does not have the shape there; a zone that is none is told elsewhere.
fn is_there(place: &(ShapeName, Option<Zone>), offered: &[Shape], zones: &BTreeSet<&Zone>) -> bool {
    let (shape, zone) = place;
    let Some(offered) = offered.iter().find(|offered| offered.name == *shape) else {
        return offered.is_empty() || zone.as_ref().is_some_and(|zone| !zones.contains(zone));
    };
    match zone {
        Some(zone) if zones.contains(zone) => offered.zones.contains(zone),
        Some(_) | None => true,
    }
}

fn names(zones: &BTreeSet<&Zone>) -> String {
    zones.iter().map(|zone| zone.as_str()).collect::<Vec<_>>().join(", ")
}

/// Where a node is to be, if there is room.
pub(super) fn first(node: &NodeDef, site: &Site) -> Option<Place> {
    site.places(node)?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use provision::{Fallback, Identity};
    use slurmconf::Config;

    /// What is said of nodes with these features in a cloud with two shapes in one zone.
    fn said(features: &str, root: &str) -> String {
        said_with(features, root, Vec::new())
    }

    fn said_with(features: &str, root: &str, fallback: Vec<Fallback>) -> String {
        let shape = |name| {
            let mut shape = Shape::new(ShapeName::new(name), 2, 15_360);
            shape.zones = vec![Zone::new("Uocm:PHX-AD-1")];
            shape
        };
        let offered = [shape("VM.Standard2.1"), shape("VM.Standard.E4.Flex")];
        let conf = format!("NodeName=n1 State=CLOUD Features={features}\n");
        let mut site = Site::new(Identity::cluster("c1"));
        site.zone_root = Some(root.to_owned());
        site.fallback = fallback;
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
    fn places_to_fall_back_to_were_never_looked_at() {
        let said = |shape: Option<&str>, zone: Option<&str>| {
            let (shape, zone) = (shape.map(str::to_owned), zone.map(Zone::new));
            let fallback = vec![Fallback { shape, zone, ..Fallback::default() }];
            said_with("shape=VM.Standard2.1,ad=1", "Uocm:PHX-AD-", fallback)
        };
        assert_eq!(said(Some("VM.Standard.E4.Flex.16.256"), None), "well");
        assert!(
            said(None, Some("Uocm:PHX-AD-9")).starts_with("fallback names the zone Uocm:PHX-AD-9")
        );
        let unknown = said(Some("VM.Nosuch"), None);
        assert_eq!(
            unknown,
            "fallback: the cloud has no VM.Nosuch in Uocm:PHX-AD-1; change fallback"
        );
        let fallback = vec![Fallback { shape: Some("nosuch".to_owned()), ..Fallback::default() }];
        let unknown = said_with("shape=VM.Standard2.1", "", fallback);
        assert_eq!(unknown, "fallback: the cloud has no nosuch; change fallback");
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
