//! Finds what a refused launch has named that is not there: OCI's own message names nothing.

use crate::LaunchOptions;
use crate::api::Service;
use crate::classify::with_remark;
use crate::provider::Oci;
use cloud_core::http::Method;
use cloud_core::{ApiOperation, Error, ErrorKind, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::Mutex;

/// What has been looked up, and whether it was there: a thousand nodes that are refused alike have one image.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<BTreeMap<String, bool>>);

/// What a launch names: the word for it, its path, and where its id is in the body.
const NAMED: [(&str, &str, &str); 2] = [
    ("image", "images", "/sourceDetails/imageId"),
    ("subnet", "subnets", "/createVnicDetails/subnetId"),
];

impl Oci {
    /// Names what is gone, if a launch was refused because something is not there.
    pub(crate) async fn name_missing(&self, error: Error, body: &Value) -> Error {
        let related = error.code() == Some("RelatedResourceNotAuthorizedOrNotFound");
        if error.kind() != ErrorKind::NotFound && !related {
            return error;
        }
        let mut missing = Missing::default();
        for (what, path, pointer) in NAMED {
            let Some(id) = body.pointer(pointer).and_then(Value::as_str) else { continue };
            match self.is_there(path, id).await {
                Ok(true) => {}
                Ok(false) => missing.gone.push(format!("{what} {id}")),
                Err(_) => missing.unknown.push(what),
            }
        }
        missing.explain(error, &self.site)
    }

    async fn is_there(&self, path: &str, id: &str) -> Result<bool> {
        let mut seen = self.seen.0.lock().await;
        if let Some(known) = seen.get(id) {
            return Ok(*known);
        }
        let place = (Service::Core, &[path, id][..]);
        let request = self.api.request(ApiOperation::Get, Method::GET, place, &[])?.on(id);
        let there = match self.api.read::<Value>(&request).await {
            Ok(found) => found.get("lifecycleState").and_then(Value::as_str) != Some("DELETED"),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        seen.insert(id.to_owned(), there);
        Ok(there)
    }
}

/// What a launch has named that is gone, and what could not be looked up.
#[derive(Default)]
struct Missing {
    gone: Vec<String>,
    unknown: Vec<&'static str>,
}

impl Missing {
    /// A launch has no instance yet, so "not found" is about something that it names, or a policy is missing.
    fn explain(self, error: Error, site: &LaunchOptions) -> Error {
        let error = match error.kind() {
            ErrorKind::NotFound => error.with_kind(ErrorKind::Forbidden),
            _ => error,
        };
        let remark = match (&self.gone[..], &self.unknown[..]) {
            ([], unknown) => {
                let compartment = format!("compartment_id ({})", site.compartment);
                let named = unknown.iter().map(|what| format!("the {what}"));
                let named: Vec<String> = std::iter::once(compartment).chain(named).collect();
                format!("check {} and the policies of the caller", named.join(", "))
            }
            (gone, _) => format!("{} is gone, or the caller may not see it", gone.join(" and ")),
        };
        with_remark(error, &format!(": {remark}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_that_is_not_found_is_forbidden_and_names_what_is_gone_or_to_be_checked() {
        let told = |gone: &[&str], unknown: &[&'static str]| {
            let error = Error::new(ErrorKind::NotFound, ApiOperation::Launch).because("no");
            let gone = gone.iter().map(ToString::to_string).collect();
            let missing = Missing { gone, unknown: unknown.to_vec() };
            missing.explain(error, &LaunchOptions::new("c")).to_string()
        };
        let rows = [
            (told(&["image i"], &[]), "image i is gone, or the caller may not see it"),
            (told(&["image i"], &["subnet"]), "image i is gone, or the caller may not see it"),
            (
                told(&["image i", "subnet s"], &[]),
                "image i and subnet s is gone, or the caller may not see it",
            ),
            (told(&[], &[]), "check compartment_id (c) and the policies of the caller"),
            (
                told(&[], &["image", "subnet"]),
                "check compartment_id (c), the image, the subnet and the policies of the caller",
            ),
        ];
        for (told, remark) in rows {
            assert_eq!(told, format!("launch: forbidden: no: {remark}"));
        }
    }
}
