//! Entry point for fuzzing every reader of OpenStack's responses.

use crate::classify::classify;
use crate::server::Primary;
use crate::{flavor, image, server, wire};
use cloud_core::http::{HeaderMap, Response, StatusCode};
use serde::de::DeserializeOwned;

/// Reads a response as every type of Keystone, Nova, Glance and Neutron.
pub fn read(status: u16, body: &[u8]) {
    if let Ok(status) = StatusCode::from_u16(status) {
        let (headers, body) = (HeaderMap::new(), body.to_vec().into());
        classify(&Response { status, headers, body, request_id: None });
    }
    let instance = |one| server::instance(one, &Primary::Named("net".to_owned()));
    for one in json::<wire::ServersBody>(body).into_iter().flat_map(|body| body.servers) {
        instance(one);
    }
    if let Some(one) = json::<wire::ServerBody>(body) {
        instance(one.server);
    }
    for one in json::<wire::ImagesBody>(body).into_iter().flat_map(|body| body.images) {
        image::image(one);
    }
    for one in json::<wire::FlavorsBody>(body).into_iter().flat_map(|body| body.flavors) {
        flavor::shape(one);
    }
    json::<wire::TokenBody>(body);
    json::<wire::AboutNova>(body);
    json::<wire::CreatedBody>(body);
    json::<wire::SnapshotBody>(body);
    json::<wire::LimitsBody>(body);
    json::<wire::QuotaBody>(body);
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}
