//! Requests to Nova, Glance and Neutron.

use crate::auth::Keystone;
use crate::catalog::Endpoints;
use crate::version::Versions;
use cloud_core::http::{Client, HeaderName, Method, Request, Response, Url};
use cloud_core::{ApiOperation, Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The header with the microversion, for Nova only.
const VERSION: HeaderName = HeaderName::from_static("openstack-api-version");

/// A connection to the services.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) client: Client<Keystone>,
    pub(crate) endpoints: Endpoints,
    pub(crate) project: Option<String>,
    pub(crate) versions: Versions,
}

impl Api {
    /// Creates a request to Nova with the pinned microversion.
    pub(crate) fn compute(
        &self,
        operation: ApiOperation,
        method: Method,
        path: &[&str],
    ) -> Request {
        let url = join(&self.endpoints.compute, path);
        self.compute_at(operation, method, url)
    }

    /// Creates a request to Nova with a complete URL.
    pub(crate) fn compute_at(&self, operation: ApiOperation, method: Method, url: Url) -> Request {
        let version = self.versions.pinned.header();
        Request::new(operation, method, url).with_header(VERSION, version)
    }

    /// Starts an action on a server.
    pub(crate) fn action(
        &self,
        operation: ApiOperation,
        id: &str,
        action: &Value,
    ) -> Result<Request> {
        let path = ["servers", id, "action"];
        self.compute(operation, Method::POST, &path).on(id).with_json(action)
    }

    /// Starts a rebuild, with the microversion that supports servers that boot from a volume.
    pub(crate) fn rebuild(&self, id: &str, action: &Value) -> Result<Request> {
        let request = self.action(ApiOperation::Rebuild, id, action)?;
        Ok(request.with_header(VERSION, self.versions.rebuild.header()))
    }

    /// Sends a request and parses the response.
    pub(crate) async fn read<T: DeserializeOwned>(&self, request: &Request) -> Result<T> {
        self.send(request).await?.json(request)
    }

    /// Sends a request whose response has no useful body.
    pub(crate) async fn accepted(&self, request: &Request) -> Result<()> {
        self.send(request).await.map(|_answer| ())
    }

    /// Sends a request. Only Nova itself can report that a resource is gone, not a proxy or a wrong address.
    async fn send(&self, request: &Request) -> Result<Response> {
        let is_novas = request.headers().contains_key(&VERSION);
        self.client.send(request).await.map_err(|error| {
            let unfounded = error.kind() == ErrorKind::NotFound && !is_gone(&error);
            if is_novas && unfounded { error.with_kind(ErrorKind::Protocol) } else { error }
        })
    }
}

/// True if Nova itself reports that a resource is gone. The 404 of a load balancer differs.
pub(crate) fn is_gone(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound && error.code() == Some("itemNotFound")
}

/// Appends escaped path segments to a URL.
pub(crate) fn join(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

/// Adds pairs to the query of a URL.
pub(crate) fn with_query(mut url: Url, query: &[(&str, &str)]) -> Url {
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_segment_whatever_is_in_it() {
        let base = Url::parse("http://cloud/compute/v2.1/").unwrap();
        let url = join(&base, &["servers", "../a?b"]);
        assert_eq!(url.as_str(), "http://cloud/compute/v2.1/servers/..%2Fa%3Fb");
    }
}
