//! Checks of what the cloud has room for: limits, shapes and where they are.

use super::{Check, CloudFacts};
use crate::site::Site;
use cloud_core::{Limit, Shape, ShapeName, Zone};
use slurmconf::NodeDef;
use std::collections::{BTreeMap, BTreeSet};

/// The limit of memory, where a cloud has one.
const MEMORY: &str = "ram_mib";

/// Whether the cloud would allow all nodes at once.
pub(super) fn limits(cloud: &CloudFacts, nodes: &[NodeDef], site: &Site) -> Vec<Check> {
    match &cloud.limits {
        Ok(limits) => {
            let shapes = cloud.shapes.as_ref().map_or(&[][..], Vec::as_slice);
            quota(limits, shapes, nodes, site)
        }
        Err(why) => vec![Check::warn(format!("limits of the cloud cannot be read: {why}"))],
    }
}

/// Whether the cloud has what the nodes want where they want it.
pub(super) fn places(cloud: &CloudFacts, nodes: &[NodeDef], site: &Site) -> Vec<Check> {
    if nodes.iter().all(|node| node.zone().is_none()) && site.fallback.is_empty() {
        return Vec::new();
    }
    match &cloud.shapes {
        Ok(shapes) => offered(shapes, nodes, site),
        Err(why) => vec![Check::warn(format!("shapes cannot be listed: {why}"))],
    }
}

/// What is nowhere, or not where it is wanted. A cloud that does not say where it has its shapes is believed about that.
fn offered(offered: &[Shape], nodes: &[NodeDef], site: &Site) -> Vec<Check> {
    let zones: BTreeSet<&Zone> = offered.iter().flat_map(|shape| &shape.zones).collect();
    let (wanted, others) = wanted(nodes, site);
    let mut checks = Vec::new();
    for zone in unknown(&wanted, &zones) {
        let all = names(&zones);
        checks.push(Check::fail(format!(
            "nodes are to be in availability domain {zone}, and the cloud has {all}: set ad_root to what these have before \
             their number"
        )));
    }
    for zone in unknown(&others, &zones) {
        let all = names(&zones);
        checks
            .push(Check::fail(format!("fallback names the zone {zone}, and the cloud has {all}")));
    }
    for (shape, zone) in wanted.iter().filter(|place| !is_there(place, offered, &zones)) {
        let place = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
        checks.push(Check::fail(format!(
            "the cloud has no {shape}{place}; change limits.yaml, or ask for it"
        )));
    }
    for (shape, zone) in others.iter().filter(|place| !is_there(place, offered, &zones)) {
        let place = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
        checks.push(Check::fail(format!(
            "fallback: the cloud has no {shape}{place}; change fallback"
        )));
    }
    let known = wanted.iter().chain(&others).any(|(_, zone)| zone.is_some()) && !zones.is_empty();
    if checks.is_empty() && known {
        checks.push(Check::ok("the cloud has the shapes of the nodes where they are to be"));
    }
    checks
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

/// True unless the cloud says that it does not have the shape there; a zone that is none is reported elsewhere.
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

/// How much of what is needed where, by the cloud's names.
type Needs = BTreeMap<(String, Option<String>), u64>;

/// What the cloud would not allow, where these are its shapes.
fn quota(limits: &[Limit], shapes: &[Shape], nodes: &[NodeDef], site: &Site) -> Vec<Check> {
    let count: usize = nodes.iter().map(|node| node.names.len()).sum();
    let needs = needs(nodes, shapes, site);
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

fn needs(nodes: &[NodeDef], shapes: &[Shape], site: &Site) -> Needs {
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
            place.as_ref().and_then(|it| shapes.iter().find(|shape| shape.name == it.shape));
        // The cloud counts all of it; `RealMemory` is what is surely left of it.
        let memory = shape.map(|shape| shape.memory_mib).or(node.real_memory);
        need(MEMORY.to_owned(), None, memory.unwrap_or_default());
        let Some(place) = place else {
            continue;
        };
        if let Some(family) = family(place.shape.as_str()) {
            let zone = place.zone.map(|zone| zone.as_str().to_owned());
            need(format!("{family}-core-count"), zone, cores);
        }
    }
    needs
}

/// What limits call the shapes of a kind: `standard2` for `VM.Standard2.4`, `standard-e4` for
/// `VM.Standard.E4.Flex`.
fn family(shape: &str) -> Option<String> {
    let kind = shape.strip_prefix("VM.").or_else(|| shape.strip_prefix("BM."))?;
    let flexible = kind.split_once(".Flex").map(|(kind, _)| kind);
    let kind = flexible.or_else(|| kind.rsplit_once('.').map(|(kind, _)| kind))?;
    Some(kind.to_lowercase().replace('.', "-").replace("denseio", "dense-io"))
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use crate::{Fallback, Identity};
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
        let checks = super::offered(&offered, &Config::parse(&conf).unwrap().nodes, &site);
        let text = |check: Check| match check.status {
            Status::Ok => "well".to_owned(),
            Status::Warn | Status::Fail => check.text,
        };
        checks.into_iter().map(text).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_flexible_shape_is_found_by_the_name_that_has_its_size() {
        let root = "Uocm:PHX-AD-";
        assert_eq!(said("shape=VM.Standard.E4.Flex.16.256,ad=1", root), "well");
        assert!(
            said("shape=VM.Standard.E9.Flex.1.16,ad=1", root).contains("VM.Standard.E9.Flex in")
        );
    }

    #[test]
    fn places_to_fall_back_to_are_checked() {
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
    fn a_domain_may_have_its_whole_name() {
        assert_eq!(said("shape=VM.Standard2.1,ad=Uocm:PHX-AD-1", "Uocm:PHX-AD-"), "well");
    }

    #[test]
    fn a_wrong_root_of_availability_domains_is_reported() {
        let usual = "shape=VM.Standard2.1,ad=1";
        assert_eq!(said(usual, "Uocm:PHX-AD-"), "well");
        assert!(said(usual, "Nope:AD-").contains("Nope:AD-1, and the cloud has Uocm:PHX-AD-1"));
        assert!(said(usual, "").contains("set ad_root"));
        assert!(said("shape=VM.Odd.1,ad=1", "Uocm:PHX-AD-").contains("no VM.Odd.1 in"));
        assert_eq!(said("shape=VM.Standard2.1", ""), "", "the cloud chooses");
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
        let checks = quota(limits, shapes, &nodes, &site);
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
        let said = warnings(&limits(Some(10)), conf);
        assert_eq!(said.len(), 1, "{said:?}");
        let words = "asks for 11 of standard2-core-count in PHX-AD-1, and the cloud allows 10";
        assert!(said[0].contains(words), "{said:?}");
    }

    #[test]
    fn cores_and_memory_are_compared_with_their_limits() {
        let conf = "NodeName=a[1-4] CPUs=4 RealMemory=8000 Features=shape=m1.large\n";
        let all = [
            limit("instances", None, Some(4)),
            limit("cores", None, Some(15)),
            limit("ram_mib", None, Some(31_999)),
        ];
        let said = warnings(&all, conf);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(
            said[0].contains("16 of cores") && said[1].contains("32000 of ram_mib"),
            "{said:?}"
        );
    }

    /// Nova refused those beyond, as it counts all of a flavor's memory.
    #[test]
    fn memory_is_counted_as_the_cloud_counts_it() {
        let conf = "NodeName=a[1-40] CPUs=4 RealMemory=7463 Features=shape=m1.large\n";
        let all = [limit("ram_mib", None, Some(300_000))];
        let shapes = |name: &str| [Shape::new(ShapeName::new(name), 4, 8192)];
        assert_eq!(warnings_of(&all, &shapes("m1.small"), conf), Vec::<String>::new(), "not known");
        let said = warnings_of(&all, &shapes("m1.large"), conf);
        assert!(said[0].contains("327680 of ram_mib"), "{said:?}");
    }

    #[test]
    fn shapes_of_a_kind_have_one_limit() {
        for (shape, kind) in [
            ("VM.Standard2.4", Some("standard2")),
            ("BM.Standard.E4.128", Some("standard-e4")),
            ("VM.Standard.E4.Flex", Some("standard-e4")),
            ("VM.DenseIO2.8", Some("dense-io2")),
            ("m1.large", None),
        ] {
            assert_eq!(family(shape).as_deref(), kind, "{shape}");
        }
    }
}
