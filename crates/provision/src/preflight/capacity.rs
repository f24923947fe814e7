//! Checks of the cloud's capacity: limits, shapes and zones.

use super::{Check, CloudFacts};
use crate::site::Site;
use cloud_core::{Counted, Description, Limit, Shape, ShapeName, Zone};
use slurmconf::NodeDef;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the memory limit.
const MEMORY: &str = "ram_mib";

/// The nodes, and the cloud.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) nodes: &'a [NodeDef],
    pub(super) site: &'a Site,
    pub(super) description: &'a Description,
}

/// Checks that the limits allow all nodes at once.
pub(super) fn limits(cloud: &CloudFacts, wanted: Wanted<'_>) -> Vec<Check> {
    match &cloud.limits {
        Ok(limits) => {
            let shapes = cloud.shapes.as_ref().map_or(&[][..], Vec::as_slice);
            quota(limits, shapes, wanted)
        }
        Err(why) => vec![Check::warn(format!("limits of the cloud cannot be read: {why}"))],
    }
}

/// Checks that the cloud has the shapes of the nodes in their zones.
pub(super) fn places(cloud: &CloudFacts, wanted: Wanted<'_>) -> Vec<Check> {
    let Wanted { nodes, site, .. } = wanted;
    let has_places =
        |node: &NodeDef| node.features.as_ref().is_some_and(|it| !it.places().is_empty());
    let is_free = |node: &NodeDef| node.zone().is_none() && !has_places(node);
    if nodes.iter().all(is_free) && site.fallback.is_empty() {
        return Vec::new();
    }
    match &cloud.shapes {
        Ok(shapes) => offered(shapes, wanted),
        Err(why) => vec![Check::warn(format!("shapes cannot be listed: {why}"))],
    }
}

/// Shapes that are missing, or missing in a zone. A cloud that does not report zones of shapes counts as having them
/// everywhere.
fn offered(offered: &[Shape], wanted: Wanted<'_>) -> Vec<Check> {
    let Wanted { nodes, site, description } = wanted;
    let zones: BTreeSet<&Zone> = offered.iter().flat_map(|shape| &shape.zones).collect();
    let (wanted, others) = machines(nodes, site);
    let list = if site.fallback.is_empty() { "places" } else { "fallback" };
    let mut checks = Vec::new();
    for zone in unknown(&wanted, &zones) {
        let all = names(&zones);
        let term = description.zone_term;
        let help = description.zone_help.map(|help| format!(" or, {help}")).unwrap_or_default();
        checks.push(Check::fail(format!(
            "nodes are to be in {term} {zone}, and the cloud has {all}: change `zone` in limits.yaml{help}"
        )));
    }
    for zone in unknown(&others, &zones) {
        let all = names(&zones);
        checks.push(Check::fail(format!("{list} names the zone {zone}, and the cloud has {all}")));
    }
    for (shape, zone) in wanted.iter().filter(|place| !is_there(place, offered, &zones)) {
        let place = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
        checks.push(Check::fail(format!(
            "the cloud has no {shape}{place}; change limits.yaml, or ask for it"
        )));
    }
    for (shape, zone) in others.iter().filter(|place| !is_there(place, offered, &zones)) {
        let place = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
        checks.push(Check::fail(format!("{list}: the cloud has no {shape}{place}; change {list}")));
    }
    let known = wanted.iter().chain(&others).any(|(_, zone)| zone.is_some()) && !zones.is_empty();
    if checks.is_empty() && known {
        checks.push(Check::ok("the cloud has the shapes of the nodes where they are to be"));
    }
    checks
}

/// A shape and a zone.
type Machines = BTreeSet<(ShapeName, Option<Zone>)>;

/// The preferred places, and the fallbacks.
fn machines(nodes: &[NodeDef], site: &Site) -> (Machines, Machines) {
    let (mut first, mut others) = (Machines::new(), Machines::new());
    for node in nodes {
        let mut places = site.places(node).unwrap_or_default().into_iter();
        first.extend(places.next().map(|place| (place.shape, place.zone)));
        others.extend(places.map(|place| (place.shape, place.zone)));
    }
    // Shapes of the limits are known.
    first.retain(|(_, zone)| zone.is_some());
    others.retain(|place| !first.contains(place));
    (first, others)
}

/// Zones that the cloud does not have, as far as it reports its zones.
fn unknown<'a>(wanted: &'a Machines, zones: &BTreeSet<&Zone>) -> BTreeSet<&'a Zone> {
    let wanted = wanted.iter().filter_map(|(_, zone)| zone.as_ref());
    wanted.filter(|zone| !zones.is_empty() && !zones.contains(zone)).collect()
}

/// True unless the cloud reports that the zone lacks the shape. Unknown zones are reported elsewhere.
fn is_there(place: &(ShapeName, Option<Zone>), offered: &[Shape], zones: &BTreeSet<&Zone>) -> bool {
    let (shape, zone) = place;
    let Some(offered) = offered.iter().find(|offered| offered.offers(shape)) else {
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

/// The need for each limit and zone, by the cloud's names.
type Needs = BTreeMap<(String, Option<String>), u64>;

/// The needs that exceed a limit, for these shapes.
fn quota(limits: &[Limit], shapes: &[Shape], wanted: Wanted<'_>) -> Vec<Check> {
    let count: usize = wanted.nodes.iter().map(|node| node.names.len()).sum();
    let needs = needs(shapes, wanted);
    let mut known = 0;
    let mut checks = Vec::new();
    for ((name, zone), need) in &needs {
        let fits = |limit: &&Limit| {
            let limited = limit.zone.as_ref().map(Zone::as_str);
            limit.name == *name && (limited.is_none() || limited == zone.as_deref())
        };
        let most = limits.iter().filter(fits).filter_map(|limit| limit.most).min();
        known += usize::from(most.is_some());
        if let Some(most) = most.filter(|most| most < need) {
            let place = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
            checks.push(Check::warn(format!(
                "limits.yaml asks for {need} of {name}{place}, and the cloud allows {most}: nodes beyond that will fail to \
                 start; lower limits.yaml, or ask the cloud for more"
            )));
        }
    }
    if checks.is_empty() {
        checks.push(Check::ok(match known {
            0 => format!("{count} nodes; the cloud has no limit that is known to count for them"),
            _ => format!("{count} nodes, and the cloud allows as many"),
        }));
    }
    checks
}

fn needs(shapes: &[Shape], wanted: Wanted<'_>) -> Needs {
    let Wanted { nodes, site, description } = wanted;
    let mut needs = Needs::new();
    for node in nodes {
        let count = u64::try_from(node.names.len()).unwrap_or(u64::MAX);
        let topology = node.topology();
        let cores = u64::from(topology.sockets) * u64::from(topology.cores_per_socket);
        let mut need = |name: String, zone: Option<String>, each: u64| {
            let all = needs.entry((name, zone)).or_default();
            *all = all.saturating_add(each.saturating_mul(count));
        };
        need("instances".to_owned(), None, 1);
        need("cores".to_owned(), None, u64::from(topology.cpus));
        let place = site.places(node).and_then(|places| places.into_iter().next());
        let shape =
            place.as_ref().and_then(|it| shapes.iter().find(|shape| shape.offers(&it.shape)));
        // The cloud counts all memory, but `RealMemory` is less.
        let memory = shape.map(|shape| shape.memory_mib).or(node.real_memory);
        need(MEMORY.to_owned(), None, memory.unwrap_or_default());
        let Some(place) = place else {
            continue;
        };
        if let Some(limit) = (description.limit_of)(&place.shape) {
            let zone = place.zone.map(|zone| zone.as_str().to_owned());
            let each = match limit.counts {
                Counted::Instances => 1,
                Counted::Cores => cores,
                Counted::Threads => u64::from(topology.cpus),
                Counted::Gpus => shape.map_or(0, |shape| u64::from(shape.gpus)),
            };
            need(limit.name, zone, each);
        }
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use crate::{Fallback, Identity};
    use cloud_core::ShapeLimit;
    use slurmconf::Config;

    /// A cloud with a limit of cores for each kind of shape.
    fn description() -> Description {
        let mut description = Description::new("a cloud");
        description.zone_help = Some("where that is a number, set the prefix");
        description.limit_of = |shape| {
            let (kind, _) = shape.as_str().strip_prefix("VM.")?.split_once('.')?;
            let name = format!("{}-core-count", kind.to_lowercase());
            Some(ShapeLimit { name, counts: Counted::Cores })
        };
        description
    }

    /// The result for nodes with these features in a cloud with two shapes in one zone.
    fn found(features: &str, root: &str) -> String {
        said_with(features, root, Vec::new())
    }

    fn said_with(features: &str, root: &str, fallback: Vec<Fallback>) -> String {
        let shape = |name: &str| {
            let mut shape = Shape::new(ShapeName::new(name), 2, 15_360);
            shape.flexible = name.ends_with(".Flex");
            shape.zones = vec![Zone::new("Uocm:PHX-AD-1")];
            shape
        };
        let offered = [shape("VM.Standard2.1"), shape("VM.Standard.E4.Flex")];
        let conf = format!("NodeName=n1 State=CLOUD Features={features}\n");
        let mut site = Site::new(Identity::cluster("c1"));
        site.zone_root = Some(root.to_owned());
        site.fallback = fallback;
        let nodes = &Config::parse(&conf).unwrap().nodes;
        let wanted = Wanted { nodes, site: &site, description: &description() };
        let checks = super::offered(&offered, wanted);
        let text = |check: Check| match check.status {
            Status::Ok => "well".to_owned(),
            Status::Warn | Status::Fail => check.text,
        };
        checks.into_iter().map(text).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_flexible_shape_is_found_by_the_name_that_has_its_size() {
        let root = "Uocm:PHX-AD-";
        assert_eq!(found("shape=VM.Standard.E4.Flex.16.256,ad=1", root), "well");
        assert!(
            found("shape=VM.Standard.E9.Flex.1.16,ad=1", root)
                .contains("VM.Standard.E9.Flex.1.16 in")
        );
    }

    #[test]
    fn places_to_fall_back_to_are_checked() {
        let found = |shape: Option<&str>, zone: Option<&str>| {
            let (shape, zone) = (shape.map(str::to_owned), zone.map(Zone::new));
            let fallback = vec![Fallback { shape, zone, ..Fallback::default() }];
            said_with("shape=VM.Standard2.1,ad=1", "Uocm:PHX-AD-", fallback)
        };
        assert_eq!(found(Some("VM.Standard.E4.Flex.16.256"), None), "well");
        assert!(
            found(None, Some("Uocm:PHX-AD-9")).starts_with("fallback names the zone Uocm:PHX-AD-9")
        );
        let unknown = found(Some("VM.Nosuch"), None);
        assert_eq!(
            unknown,
            "fallback: the cloud has no VM.Nosuch in Uocm:PHX-AD-1; change fallback"
        );
        let fallback = vec![Fallback { shape: Some("nosuch".to_owned()), ..Fallback::default() }];
        let unknown = said_with("shape=VM.Standard2.1", "", fallback);
        assert_eq!(unknown, "fallback: the cloud has no nosuch; change fallback");
    }

    #[test]
    fn a_domain_may_have_its_whole_name() {
        assert_eq!(found("shape=VM.Standard2.1,ad=Uocm:PHX-AD-1", "Uocm:PHX-AD-"), "well");
    }

    #[test]
    fn a_wrong_root_of_availability_domains_is_reported() {
        let usual = "shape=VM.Standard2.1,ad=1";
        assert_eq!(found(usual, "Uocm:PHX-AD-"), "well");
        assert!(found(usual, "Nope:AD-").contains("Nope:AD-1, and the cloud has Uocm:PHX-AD-1"));
        assert!(
            found(usual, "").ends_with("in limits.yaml or, where that is a number, set the prefix")
        );
        assert!(found("shape=VM.Odd.1,ad=1", "Uocm:PHX-AD-").contains("no VM.Odd.1 in"));
        assert_eq!(found("shape=VM.Standard2.1", ""), "", "the cloud chooses");
    }

    fn limit(name: &str, zone: Option<&str>, most: Option<u64>) -> Limit {
        Limit { name: name.to_owned(), zone: zone.map(Zone::new), most, used: None }
    }

    fn warnings(limits: &[Limit], conf: &str) -> Vec<String> {
        warnings_of(limits, &[], conf)
    }

    fn warnings_of(limits: &[Limit], shapes: &[Shape], conf: &str) -> Vec<String> {
        let nodes = Config::parse(conf).unwrap().nodes;
        let mut site = Site::new(Identity::cluster("c1"));
        site.zone_root = Some("PHX-AD-".to_owned());
        let wanted = Wanted { nodes: &nodes, site: &site, description: &description() };
        let checks = quota(limits, shapes, wanted);
        let warns = checks.into_iter().filter(|check| check.status == Status::Warn);
        warns.map(|check| check.text).collect()
    }

    #[test]
    fn cores_of_a_family_are_compared_with_its_limit() {
        let conf = "NodeName=a[1-4] SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=2 Features=shape=VM.Standard2.2,ad=1\n\
            NodeName=b[1-3] SocketsPerBoard=1 CoresPerSocket=1 Features=shape=VM.Standard2.1,ad=1\n\
            NodeName=c[1-9] SocketsPerBoard=1 CoresPerSocket=1 Features=shape=VM.Standard2.1,ad=2\n";
        let limits = |most| {
            [
                limit("standard2-core-count", Some("PHX-AD-1"), most),
                limit("standard2-core-count", Some("PHX-AD-2"), Some(9)),
            ]
        };
        assert_eq!(warnings(&limits(Some(11)), conf), Vec::<String>::new());
        assert_eq!(warnings(&limits(None), conf), Vec::<String>::new());
        let found = warnings(&limits(Some(10)), conf);
        assert_eq!(found.len(), 1, "{found:?}");
        let words = "asks for 11 of standard2-core-count in PHX-AD-1, and the cloud allows 10";
        assert!(found[0].contains(words), "{found:?}");
    }

    #[test]
    fn cores_and_memory_are_compared_with_their_limits() {
        let conf = "NodeName=a[1-4] CPUs=4 RealMemory=8000 Features=shape=m1.large\n";
        let all = [
            limit("instances", None, Some(4)),
            limit("cores", None, Some(15)),
            limit("ram_mib", None, Some(31_999)),
        ];
        let found = warnings(&all, conf);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("16 of cores") && found[1].contains("32000 of ram_mib"),
            "{found:?}"
        );
    }

    /// Nova counts all of a flavor's memory, and refused further nodes.
    #[test]
    fn memory_is_counted_as_the_cloud_counts_it() {
        let conf = "NodeName=a[1-40] CPUs=4 RealMemory=7463 Features=shape=m1.large\n";
        let all = [limit("ram_mib", None, Some(300_000))];
        let shapes = |name: &str| [Shape::new(ShapeName::new(name), 4, 8192)];
        assert_eq!(warnings_of(&all, &shapes("m1.small"), conf), Vec::<String>::new(), "not known");
        let found = warnings_of(&all, &shapes("m1.large"), conf);
        assert!(found[0].contains("327680 of ram_mib"), "{found:?}");
    }
}
