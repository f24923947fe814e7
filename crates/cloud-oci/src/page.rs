//! Listings of all pages.

use crate::api::{Api, Path, Query, Service};
use crate::classify::with_remark;
use cloud_core::http::{HeaderName, Method, PageTokens};
use cloud_core::{ApiOperation, Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// Maximum page size of OCI.
const LARGEST: u16 = 1000;

/// A listing.
#[derive(Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) operation: ApiOperation,
    pub(crate) service: Service,
    pub(crate) path: Path<'a>,
    pub(crate) of: Of<'a>,
    pub(crate) query: Query<'a>,
}

/// The scope of a listing.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    Compartment(&'a str),
    /// The root compartment.
    Tenancy(&'a str),
    Subnet(&'a str),
    /// A resource that may be gone.
    WhatMayBeGone,
}

impl<'a> Of<'a> {
    fn query(self) -> Option<(&'a str, &'a str)> {
        match self {
            Self::Compartment(id) | Self::Tenancy(id) => Some(("compartmentId", id)),
            Self::Subnet(id) => Some(("subnetId", id)),
            Self::WhatMayBeGone => None,
        }
    }

    /// A compartment in use cannot be deleted: "not found" means a wrong id or a missing policy.
    pub(crate) fn explain(self, error: Error) -> Error {
        let remedy = match self {
            Self::Compartment(id) => {
                format!("check compartment_id ({id}) and the policies of the caller")
            }
            Self::Tenancy(id) => format!("check the policies of the caller in tenancy {id}"),
            Self::Subnet(id) => format!("check subnet {id} and the policies of the caller"),
            Self::WhatMayBeGone => return error,
        };
        if error.kind() != ErrorKind::NotFound {
            return error;
        }
        with_remark(error.with_kind(ErrorKind::Forbidden), &format!(": {remedy}"))
    }
}

impl Listing<'_> {
    /// Lists all pages. Only a header marks the last one, not its length.
    pub(crate) async fn all<T: DeserializeOwned>(&self, api: &Api) -> Result<Vec<T>> {
        let mut everything: Vec<T> = Vec::new();
        let mut pages = PageTokens::new(self.operation);
        let limit = api.page_size.clamp(1, LARGEST).to_string();
        loop {
            let mut query: Vec<_> =
                self.of.query().into_iter().chain(self.query.to_vec()).collect();
            query.push(("limit", limit.as_str()));
            query.extend(pages.token().map(|page| ("page", page)));
            let place = (self.service, self.path);
            let request =
                api.request(self.operation, Method::GET, place, &query)?.on(self.path.join("/"));
            let request = request.accepting_gzip();
            let response = api.send(&request).await.map_err(|error| self.of.explain(error))?;
            // OCI's SDKs accept null as an empty page. An empty listing has consequences, so only a list is accepted.
            everything.extend(response.json::<Vec<T>>(&request)?);
            let next = response.header(&HeaderName::from_static("opc-next-page"));
            let advanced = pages.advance(next.map(str::to_owned));
            if !advanced.map_err(|error| error.on(self.path.join("/")))? {
                return Ok(everything);
            }
        }
    }
}

/// Removes duplicates: changes between two pages can move items to the next one.
pub(crate) fn once<T, K: Ord>(things: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut seen = BTreeSet::new();
    things.into_iter().filter(|thing| seen.insert(key(thing))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_compartment_is_forbidden_and_named() {
        let policy = "the policies of the caller";
        let table = [
            (Of::Compartment("c"), format!("forbidden: no: check compartment_id (c) and {policy}")),
            (Of::Tenancy("t"), format!("forbidden: no: check {policy} in tenancy t")),
            (Of::Subnet("s"), format!("forbidden: no: check subnet s and {policy}")),
            (Of::WhatMayBeGone, "not found: no".to_owned()),
        ];
        for (of, expected) in table {
            let error = |kind| Error::new(kind, ApiOperation::List).because("no");
            let told = of.explain(error(ErrorKind::NotFound)).to_string();
            assert_eq!(told, format!("list: {expected}"));
            let other = of.explain(error(ErrorKind::Throttled)).to_string();
            assert_eq!(other, "list: throttled: no");
        }
    }
}
