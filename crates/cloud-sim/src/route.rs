//! Every operation there is: method, path, name, and what carries it out.

use crate::answer::Outcome;
use crate::query::{Call, decode};
use crate::world::World;
use crate::{
    boot_volume, catalog, identity, image, instance_actions, launch, limits, listing, network,
    work_request,
};
use hyper::Method;

/// What carries an operation out.
pub(crate) type Handler = fn(&mut World, &Call<'_>) -> Outcome;

/// One operation.
pub(crate) struct Route {
    method: Method,
    /// The path; `{}` stands for one segment.
    path: &'static str,
    /// The name, as in OCI's reference and in fault rules.
    pub(crate) operation: &'static str,
    pub(crate) handler: Handler,
}

impl Route {
    /// True if a request may say by a token that it is the repeat of an earlier one.
    pub(crate) fn takes_token(&self) -> bool {
        self.method == Method::POST || self.method == Method::PUT
    }
}

const fn get(path: &'static str, operation: &'static str, handler: Handler) -> Route {
    Route { method: Method::GET, path, operation, handler }
}

const fn post(path: &'static str, operation: &'static str, handler: Handler) -> Route {
    Route { method: Method::POST, path, operation, handler }
}

const fn put(path: &'static str, operation: &'static str, handler: Handler) -> Route {
    Route { method: Method::PUT, path, operation, handler }
}

const fn delete(path: &'static str, operation: &'static str, handler: Handler) -> Route {
    Route { method: Method::DELETE, path, operation, handler }
}

/// All operations that are signed.
#[rustfmt::skip]
const ROUTES: &[Route] = &[
    // Instances.
    post("/20160918/instances", "LaunchInstance", launch::launch),
    get("/20160918/instances", "ListInstances", listing::list),
    get("/20160918/instances/{}", "GetInstance", instance_actions::get),
    post("/20160918/instances/{}", "InstanceAction", instance_actions::act),
    put("/20160918/instances/{}", "UpdateInstance", instance_actions::update),
    delete("/20160918/instances/{}", "TerminateInstance", instance_actions::terminate),
    // Network.
    get("/20160918/vnicAttachments", "ListVnicAttachments", network::list_attachments),
    get("/20160918/vnicAttachments/{}", "GetVnicAttachment", network::get_attachment),
    get("/20160918/vnics/{}", "GetVnic", network::get_vnic),
    get("/20160918/privateIps", "ListPrivateIps", network::list_private_ips),
    get("/20160918/subnets", "ListSubnets", catalog::subnets),
    get("/20160918/subnets/{}", "GetSubnet", catalog::subnet),
    get("/20160918/vcns", "ListVcns", catalog::vcns),
    get("/20160918/vcns/{}", "GetVcn", catalog::vcn),
    // Images, shapes, boot volumes.
    get("/20160918/images", "ListImages", image::list),
    post("/20160918/images", "CreateImage", image::create),
    get("/20160918/images/{}", "GetImage", image::get),
    delete("/20160918/images/{}", "DeleteImage", image::delete),
    get("/20160918/shapes", "ListShapes", catalog::shapes),
    get("/20160918/bootVolumes", "ListBootVolumes", boot_volume::list),
    get("/20160918/bootVolumes/{}", "GetBootVolume", boot_volume::get),
    get("/20160918/bootVolumeAttachments", "ListBootVolumeAttachments", boot_volume::list_attachments),
    // Clusters, capacity.
    post("/20160918/computeClusters", "CreateComputeCluster", catalog::create_compute_cluster),
    get("/20160918/computeClusters", "ListComputeClusters", catalog::compute_clusters),
    get("/20160918/computeClusters/{}", "GetComputeCluster", catalog::compute_cluster),
    delete("/20160918/computeClusters/{}", "DeleteComputeCluster", catalog::delete_compute_cluster),
    post("/20160918/computeCapacityReports", "CreateComputeCapacityReport", limits::capacity_report),
    // Work requests.
    get("/20160918/workRequests", "ListWorkRequests", work_request::list),
    get("/20160918/workRequests/{}", "GetWorkRequest", work_request::get),
    get("/20160918/workRequests/{}/errors", "ListWorkRequestErrors", work_request::errors),
    get("/20160918/workRequests/{}/logs", "ListWorkRequestLogs", work_request::logs),
    // Identity.
    get("/20160918/availabilityDomains", "ListAvailabilityDomains", identity::availability_domains),
    get("/20160918/faultDomains", "ListFaultDomains", identity::fault_domains),
    get("/20160918/compartments", "ListCompartments", identity::compartments),
    get("/20160918/compartments/{}", "GetCompartment", identity::compartment),
    get("/20160918/tenancies/{}", "GetTenancy", identity::tenancy),
    get("/20160918/tenancies/{}/regionSubscriptions", "ListRegionSubscriptions", identity::region_subscriptions),
    get("/20160918/regions", "ListRegions", identity::regions),
    // Limits.
    get("/20190729/limitValues", "ListLimitValues", limits::values),
    get("/20190729/limitDefinitions", "ListLimitDefinitions", limits::definitions),
    get("/20190729/services", "ListServices", limits::services),
    get("/20190729/services/{}/limits/{}/resourceAvailability", "GetResourceAvailability", limits::availability),
];

/// The operations that have a work request, and so can fail after they were accepted.
pub(crate) const WORKING: [&str; 5] =
    ["LaunchInstance", "UpdateInstance", "InstanceAction", "TerminateInstance", "CreateImage"];

/// What is asked without a signature of a user: the exchange, and the metadata service.
pub(crate) const UNSIGNED: [&str; 2] = ["X509", "Metadata"];

/// The exchange of a certificate for a token, which is signed in a way of its own.
pub(crate) const EXCHANGE: &str = "/v1/x509";

/// True for the name of an operation, signed or not.
pub(crate) fn is_operation(name: &str) -> bool {
    UNSIGNED.contains(&name) || ROUTES.iter().any(|route| route.operation == name)
}

/// The operation of a request, and what stands in place of its placeholders.
pub(crate) fn find(method: &Method, path: &str) -> Option<(&'static Route, Vec<String>)> {
    ROUTES.iter().find_map(|route| {
        let placeholders = (route.method == *method).then(|| fits(route.path, path))??;
        Some((route, placeholders))
    })
}

fn fits(pattern: &str, path: &str) -> Option<Vec<String>> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut placeholders = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (Some("{}"), Some(segment)) if !segment.is_empty() => {
                placeholders.push(decode(segment));
            }
            (Some(wanted), Some(given)) if wanted == given => {}
            (None, None) => return Some(placeholders),
            (Some(_), _) | (None, Some(_)) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_operations() {
        let of = |method: Method, path: &str| {
            find(&method, path).map(|(route, placeholders)| (route.operation, placeholders))
        };
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(of(Method::GET, "/20160918/instances"), Some(("ListInstances", vec![])));
        assert_eq!(
            of(Method::PUT, "/20160918/instances/a.b"),
            Some(("UpdateInstance", ids(&["a.b"])))
        );
        assert_eq!(
            of(Method::GET, "/20190729/services/compute/limits/x/resourceAvailability"),
            Some(("GetResourceAvailability", ids(&["compute", "x"])))
        );
        assert_eq!(of(Method::GET, "/20160918/instances/"), None);
        assert_eq!(of(Method::PATCH, "/20160918/instances"), None);
        assert_eq!(of(Method::GET, "/20190729/instances"), None);
    }

    #[test]
    fn no_operation_hides_another() {
        for route in ROUTES {
            let path = route.path.replace("{}", "x");
            let (found, _) = find(&route.method, &path).unwrap();
            assert_eq!(found.operation, route.operation);
        }
    }
}
