//! What the nodes need when all are there, and what the cloud allows.

use super::Point::{self, Odd, Well};
use super::places::first;
use cloud_core::{Limit, Shape, Zone};
use provision::Site;
use slurmconf::NodeDef;
use std::collections::BTreeMap;

/// How much of what is needed where, by the cloud's names.
type Needs = BTreeMap<(String, Option<String>), u64>;

/// The limit of memory, where a cloud has one.
pub(super) const MEMORY: &str = "ram_mib";

/// What the cloud would not allow, where these are its shapes.
pub(super) fn points(
    limits: &[Limit],
    shapes: &[Shape],
    nodes: &[NodeDef],
    site: &Site,
) -> Vec<Point> {
    let count: usize = nodes.iter().map(|node| node.names.len()).sum();
    let needs = needs(nodes, shapes, site);
    let mut known = 0;
    let mut points = Vec::new();
    for ((name, zone), need) in &needs {
        let fits = |limit: &&Limit| {
            let limited = limit.zone.as_ref().map(Zone::as_str);
            limit.name == *name && (limited.is_none() || limited == zone.as_deref())
        };
        let most = limits.iter().filter(fits).filter_map(|limit| limit.most).min();
        known += usize::from(most.is_some());
        if let Some(most) = most.filter(|most| most < need) {
            let place = zone.as_ref().map(|zone| format!(" in {zone}")).unwrap_or_default();
            points.push(Odd(format!(
                "limits.yaml asks for {need} of {name}{place}, and the cloud allows {most}: nodes beyond that will fail to \
                 start; lower limits.yaml, or ask the cloud for more"
            )));
        }
    }
    if points.is_empty() {
        points.push(Well(match known {
            0 => format!("{count} nodes; the cloud has no limit that is known to count for them"),
            _ => format!("{count} nodes, and the cloud allows as many"),
        }));
    }
    points
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
        let place = first(node, site);
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

/// What Oracle's limits call the shapes of a kind: `standard2` for `VM.Standard2.4`, `standard-e4` for
/// `VM.Standard.E4.Flex`.
fn family(shape: &str) -> Option<String> {
    let kind = shape.strip_prefix("VM.").or_else(|| shape.strip_prefix("BM."))?;
    let flexible = kind.split_once(".Flex").map(|(kind, _)| kind);
    let kind = flexible.or_else(|| kind.rsplit_once('.').map(|(kind, _)| kind))?;
    Some(kind.to_lowercase().replace('.', "-").replace("denseio", "dense-io"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::ShapeName;
    use provision::Identity;
    use slurmconf::Config;

    fn limit(name: &str, zone: Option<&str>, most: Option<u64>) -> Limit {
        Limit { name: name.to_owned(), zone: zone.map(Zone::new), most, used: None }
    }

    fn odd(limits: &[Limit], conf: &str) -> Vec<String> {
        odd_of(limits, &[], conf)
    }

    fn odd_of(limits: &[Limit], shapes: &[Shape], conf: &str) -> Vec<String> {
        let nodes = Config::parse(conf).unwrap().nodes;
        let mut site = Site::new(Identity::cluster("c1"));
        site.zone_root = Some("PHX-AD-".to_owned());
        let points = points(limits, shapes, &nodes, &site);
        let odd = |point| match point {
            Odd(text) => Some(text),
            Point::Wrong(_) | Well(_) => None,
        };
        points.into_iter().filter_map(odd).collect()
    }

    #[test]
    fn cores_of_a_kind_were_not_compared_with_what_oracle_allows() {
        let conf = "NodeName=a[1-4] SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=2 Features=shape=VM.Standard2.2,ad=1\n\
            NodeName=b[1-3] SocketsPerBoard=1 CoresPerSocket=1 Features=shape=VM.Standard2.1,ad=1\n\
            NodeName=c[1-9] SocketsPerBoard=1 CoresPerSocket=1 Features=shape=VM.Standard2.1,ad=2\n";
        let limits = |most| {
            [
                limit("standard2-core-count", Some("PHX-AD-1"), most),
                limit("standard2-core-count", Some("PHX-AD-2"), Some(9)),
            ]
        };
        assert_eq!(odd(&limits(Some(11)), conf), Vec::<String>::new());
        assert_eq!(odd(&limits(None), conf), Vec::<String>::new());
        let said = odd(&limits(Some(10)), conf);
        assert_eq!(said.len(), 1, "{said:?}");
        let words = "asks for 11 of standard2-core-count in PHX-AD-1, and the cloud allows 10";
        assert!(said[0].contains(words), "{said:?}");
    }

    #[test]
    fn cores_and_memory_were_not_compared_with_what_an_openstack_allows() {
        let conf = "NodeName=a[1-4] CPUs=4 RealMemory=8000 Features=shape=m1.large\n";
        let all = [
            limit("instances", None, Some(4)),
            limit("cores", None, Some(15)),
            limit("ram_mib", None, Some(31_999)),
        ];
        let said = odd(&all, conf);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(
            said[0].contains("16 of cores") && said[1].contains("32000 of ram_mib"),
            "{said:?}"
        );
    }

    /// Nova refused those beyond, as it counts all of a flavor's memory.
    #[test]
    fn memory_that_an_openstack_counts_was_taken_for_what_slurm_counts() {
        let conf = "NodeName=a[1-40] CPUs=4 RealMemory=7463 Features=shape=m1.large\n";
        let all = [limit("ram_mib", None, Some(300_000))];
        let shapes = |name: &str| [Shape::new(ShapeName::new(name), 4, 8192)];
        assert_eq!(odd_of(&all, &shapes("m1.small"), conf), Vec::<String>::new(), "not known");
        let said = odd_of(&all, &shapes("m1.large"), conf);
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
