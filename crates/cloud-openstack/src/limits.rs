//! Limits of the project, and their use.

use crate::api::{Api, join};
use crate::wire::{AbsoluteLimits, LimitsBody, QuotaBody};
use cloud_core::http::{Method, Request};
use cloud_core::{ApiOperation, ErrorKind, Limit, Result};

/// The common name, Nova's name of the limit, and Nova's name of the use.
const NOVA: &[(&str, &str, &str)] = &[
    ("instances", "maxTotalInstances", "totalInstancesUsed"),
    ("cores", "maxTotalCores", "totalCoresUsed"),
    ("ram_mib", "maxTotalRAMSize", "totalRAMUsed"),
    ("server_groups", "maxServerGroups", "totalServerGroupsUsed"),
];

/// Lists Nova's limits, and Neutron's for ports if accessible.
pub(crate) async fn list(api: &Api) -> Result<Vec<Limit>> {
    let request = api.compute(ApiOperation::Limits, Method::GET, &["limits"]);
    let body: LimitsBody = api.read(&request).await?;
    let mut limits = nova(&body.limits);
    limits.extend(ports(api).await?);
    Ok(limits)
}

fn nova(limits: &AbsoluteLimits) -> Vec<Limit> {
    let value = |name: &str| limits.absolute.get(name).copied();
    let rows = NOVA.iter().filter_map(|(name, most, used)| {
        let used = value(used).and_then(|used| u64::try_from(used).ok());
        Some(limit(name, value(most)?, used))
    });
    rows.collect()
}

/// A negative limit means unlimited.
fn limit(name: &str, most: i64, used: Option<u64>) -> Limit {
    Limit { name: name.to_owned(), zone: None, most: u64::try_from(most).ok(), used }
}

async fn ports(api: &Api) -> Result<Option<Limit>> {
    let Some(project) = &api.project else {
        return Ok(None);
    };
    let url = join(&api.endpoints.network, &["v2.0", "quotas", project, "details.json"]);
    let request = Request::new(ApiOperation::Limits, Method::GET, url);
    match api.read::<QuotaBody>(&request).await {
        Ok(body) => Ok(body
            .quota
            .get("port")
            .map(|port| limit("ports", port.limit, u64::try_from(port.used).ok()))),
        // Not every cloud supports it, and not every user has access.
        Err(error) if matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::NotFound) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
