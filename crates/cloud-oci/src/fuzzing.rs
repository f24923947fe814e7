//! Entry point for fuzzing every reader of OCI's responses.

use crate::classify::{classify, classify_late};
use crate::metadata_service::{Host, Itself};
use crate::{convert, instance_principal, jwt, wire};
use cloud_core::http::{HeaderMap, Response, StatusCode};
use serde::de::DeserializeOwned;

/// Reads a response as every type.
pub fn read(status: u16, body: &[u8]) {
    if let Ok(status) = StatusCode::from_u16(status) {
        let (headers, body) = (HeaderMap::new(), body.to_vec().into());
        classify(&Response { status, headers, body, request_id: None });
    }
    classify_late(None, &String::from_utf8_lossy(body));
    both(body, convert::instance);
    both(body, convert::image);
    both(body, convert::shape);
    both::<wire::VnicAttachment, _>(body, |_| ());
    both::<wire::Vnic, _>(body, |_| ());
    both::<wire::PrivateIp, _>(body, |_| ());
    both::<wire::Domain, _>(body, |_| ());
    both::<wire::LimitValue, _>(body, |_| ());
    both::<wire::Subnet, _>(body, |_| ());
    both::<wire::WorkRequest, _>(body, |_| ());
    both::<wire::WorkRequestError, _>(body, |_| ());
    both(body, |one: Itself| drop(one.interruption()));
    both(body, |one: Host| drop(one.location()));
    both::<instance_principal::RegionInfo, _>(body, |_| ());
    both::<instance_principal::Issued, _>(body, |_| ());
    let text = String::from_utf8_lossy(body);
    jwt::expiry(&text);
    instance_principal::tenancy(body);
    for certificate in instance_principal::ders(&text) {
        instance_principal::tenancy(&certificate);
    }
}

/// Reads the body as one resource, and as a listing.
fn both<T: DeserializeOwned, U>(body: &[u8], convert: fn(T) -> U) {
    if let Ok(one) = serde_json::from_slice::<T>(body) {
        convert(one);
    }
    for one in serde_json::from_slice::<Vec<T>>(body).unwrap_or_default() {
        convert(one);
    }
}
