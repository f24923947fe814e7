//! Entry point for fuzzing every reader of the responses of EC2, STS, Service Quotas and the metadata service.

use crate::classify::{classify, classify_end};
use crate::metadata_service::{Event, SpotAction, maintenance};
use crate::{catalog, convert, credentials, decode, image, limits, wire};
use cloud_core::http::{HeaderMap, Response, StatusCode};
use serde::de::DeserializeOwned;

/// Reads a response as every type.
pub fn read(status: u16, body: &[u8]) {
    if let Ok(status) = StatusCode::from_u16(status) {
        let (headers, body) = (HeaderMap::new(), body.to_vec().into());
        classify(&Response { status, headers, body, request_id: None });
    }
    let listed: Option<wire::Instances> = xml(body, "DescribeInstances");
    let listed = listed.into_iter().flat_map(|body| body.reservation_set.item);
    let launched: Option<wire::Launched> = xml(body, "RunInstances");
    let launched = launched.into_iter().flat_map(|body| body.instances_set.item);
    for one in listed.flat_map(|one| one.instances_set.item).chain(launched) {
        convert::instance(one);
    }
    let images: Option<wire::Images> = xml(body, "DescribeImages");
    images.into_iter().flat_map(|body| body.images_set.item).map(image::image).for_each(drop);
    let shapes: Option<wire::InstanceTypes> = xml(body, "DescribeInstanceTypes");
    shapes
        .into_iter()
        .flat_map(|body| body.instance_type_set.item)
        .map(catalog::shape)
        .for_each(drop);
    xml::<wire::Subnets>(body, "DescribeSubnets");
    xml::<wire::RootVolumeTasks>(body, "DescribeReplaceRootVolumeTasks");
    xml::<wire::CreatedImage>(body, "CreateImage");
    for action in ["AssumeRole", "AssumeRoleWithWebIdentity"] {
        let role: Option<wire::AssumedRole> = xml(body, action);
        role.and_then(|role| wire::moment(&role.result.credentials.expiration));
    }
    let text = String::from_utf8_lossy(body);
    classify_end(&text);
    xml::<decode::Answer>(body, "DecodeAuthorizationMessage");
    decode::reason(&text);
    let quotas = serde_json::from_slice::<limits::Quotas>(body).ok();
    for quota in quotas.into_iter().flat_map(|page| page.quotas) {
        limits::whole(quota.value);
    }
    let action = serde_json::from_slice::<SpotAction>(body).ok();
    action.map(SpotAction::interruption);
    let events = serde_json::from_slice::<Vec<Event>>(body).ok();
    events.and_then(|events| maintenance(events).ok());
    let keys = serde_json::from_slice::<credentials::Written>(body).ok();
    keys.and_then(|keys| wire::moment(&keys.expiration?));
}

fn xml<T: DeserializeOwned>(body: &[u8], action: &str) -> Option<T> {
    wire::parse(body, action).ok()
}
