//! The responses of EC2 and STS, as far as they are read.

#![expect(clippy::struct_field_names, reason = "the names are EC2's")]

use cloud_core::http::{Effect, Request, Response};
use cloud_core::{ErrorKind, Result};
use quick_xml::Reader;
use quick_xml::events::Event;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::SystemTime;

/// Reads the response to an action.
///
/// The error shows nothing of the response, which may contain a key. After a request that changes something, the kind is
/// [`Ambiguous`](ErrorKind::Ambiguous).
pub(crate) fn read<T: DeserializeOwned>(
    response: &Response,
    request: &Request,
    action: &str,
) -> Result<T> {
    parse(&response.body, action).map_err(|why| {
        let kind = match request.effect() {
            Effect::None => ErrorKind::Protocol,
            Effect::Idempotent | Effect::Once => ErrorKind::Ambiguous,
        };
        let error = request.error(kind).because(why);
        match &response.request_id {
            Some(id) => error.with_request_id(id),
            None => error,
        }
    })
}

/// Parses the response to an action.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8], action: &str) -> Result<T, String> {
    let text = std::str::from_utf8(body).map_err(|_| "not UTF-8".to_owned())?;
    // A page of a proxy would pass for an answer in which nothing is listed.
    let name = root(text).and_then(|name| name.strip_suffix("Response").map(str::to_owned));
    if name.as_deref() != Some(action) {
        return Err(format!("not an answer to {action}"));
    }
    quick_xml::de::from_str(text).map_err(|_| format!("an answer to {action} that cannot be read"))
}

/// The name of the outermost element.
fn root(text: &str) -> Option<String> {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) | Event::Empty(start) => {
                return Some(start.local_name().as_ref().to_owned());
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// Parses a time.
pub(crate) fn moment(text: &str) -> Option<SystemTime> {
    text.parse::<jiff::Timestamp>().ok().map(SystemTime::from)
}

/// A list of `<item>` elements.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct Set<T> {
    #[serde(default = "Vec::new")]
    pub(crate) item: Vec<T>,
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self { item: Vec::new() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Launched {
    pub(crate) instances_set: Set<Instance>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instances {
    pub(crate) reservation_set: Set<Reservation>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RootVolumeTasks {
    pub(crate) replace_root_volume_task_set: Set<RootVolumeTask>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Images {
    pub(crate) images_set: Set<Image>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceTypes {
    pub(crate) instance_type_set: Set<InstanceType>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subnets {
    pub(crate) subnet_set: Set<Subnet>,
    pub(crate) next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedImage {
    pub(crate) image_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reservation {
    pub(crate) instances_set: Set<Instance>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instance {
    pub(crate) instance_id: String,
    pub(crate) instance_state: State,
    pub(crate) image_id: Option<String>,
    pub(crate) instance_type: Option<String>,
    pub(crate) private_ip_address: Option<String>,
    pub(crate) ipv6_address: Option<String>,
    pub(crate) ami_launch_index: Option<String>,
    pub(crate) launch_time: Option<String>,
    pub(crate) placement: Option<Placement>,
    pub(crate) state_reason: Option<StateReason>,
    pub(crate) cpu_options: Option<CpuOptions>,
    pub(crate) instance_lifecycle: Option<String>,
    #[serde(default)]
    pub(crate) tag_set: Set<Tag>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct State {
    pub(crate) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Placement {
    pub(crate) availability_zone: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StateReason {
    #[serde(default)]
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CpuOptions {
    pub(crate) core_count: Option<u64>,
    pub(crate) threads_per_core: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Tag {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RootVolumeTask {
    pub(crate) instance_id: String,
    pub(crate) image_id: Option<String>,
    pub(crate) task_state: String,
    #[serde(default)]
    pub(crate) start_time: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Image {
    pub(crate) image_id: String,
    #[serde(default)]
    pub(crate) image_state: String,
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) architecture: Option<String>,
    pub(crate) creation_date: Option<String>,
    pub(crate) root_device_name: Option<String>,
    #[serde(default)]
    pub(crate) tag_set: Set<Tag>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceType {
    pub(crate) instance_type: String,
    pub(crate) v_cpu_info: VCpus,
    pub(crate) memory_info: Memory,
    pub(crate) processor_info: Option<Processor>,
    pub(crate) gpu_info: Option<Gpus>,
    pub(crate) instance_storage_info: Option<Storage>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VCpus {
    pub(crate) default_v_cpus: u32,
    pub(crate) default_threads_per_core: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    #[serde(alias = "sizeInMiB")]
    pub(crate) size_in_mib: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Processor {
    #[serde(default)]
    pub(crate) supported_architectures: Set<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Gpus {
    #[serde(default)]
    pub(crate) gpus: Set<Gpu>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Gpu {
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) count: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Storage {
    #[serde(alias = "totalSizeInGB", default)]
    pub(crate) total_size_in_gb: u64,
    #[serde(default)]
    pub(crate) disks: Set<Disk>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Disk {
    #[serde(default)]
    pub(crate) count: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subnet {
    pub(crate) subnet_id: String,
    pub(crate) availability_zone: String,
    pub(crate) available_ip_address_count: Option<u64>,
}

/// The response of STS to both ways to assume a role.
#[derive(Deserialize)]
pub(crate) struct AssumedRole {
    #[serde(rename = "AssumeRoleResult", alias = "AssumeRoleWithWebIdentityResult")]
    pub(crate) result: StsResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StsResult {
    pub(crate) credentials: StsKeys,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StsKeys {
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) session_token: String,
    pub(crate) expiration: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LISTING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
        <DescribeInstancesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId>\
        <reservationSet><item><reservationId>r-1</reservationId><groupSet/><instancesSet>\
        <item><instanceId>i-1</instanceId><instanceState><code>16</code><name>running</name></instanceState>\
        <tagSet><item><key>cluster</key><value>a &amp; b</value></item><item><key>empty</key><value/></item></tagSet></item>\
        <item><instanceId>i-2</instanceId><instanceState><name>pending</name></instanceState></item>\
        </instancesSet></item></reservationSet></DescribeInstancesResponse>";

    #[test]
    fn a_listing_is_read_with_what_we_do_not_know_around_it() {
        let read: Instances = parse(LISTING.as_bytes(), "DescribeInstances").unwrap();
        let instances: Vec<Instance> =
            read.reservation_set.item.into_iter().flat_map(|it| it.instances_set.item).collect();
        let ids: Vec<&str> = instances.iter().map(|it| it.instance_id.as_str()).collect();
        assert_eq!(ids, ["i-1", "i-2"]);
        let tags = instances.iter().flat_map(|it| &it.tag_set.item);
        let tags: Vec<(&str, &str)> =
            tags.map(|tag| (tag.key.as_str(), tag.value.as_str())).collect();
        assert_eq!(tags, [("cluster", "a & b"), ("empty", "")]);
    }

    #[test]
    fn what_is_no_listing_is_an_error_and_not_an_empty_one() {
        for text in [
            "",
            "<html/>",
            "<DescribeInstancesResponse/>",
            "<DescribeImagesResponse><imagesSet/></DescribeImagesResponse>",
            "{}",
        ] {
            assert!(parse::<Instances>(text.as_bytes(), "DescribeInstances").is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn half_a_listing_is_an_error(end in 0..LISTING.len() - 1) {
            let half = LISTING.get(..end).unwrap_or_default();
            prop_assert!(parse::<Instances>(half.as_bytes(), "DescribeInstances").is_err());
        }

        #[test]
        fn no_body_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), at in 0..LISTING.len()) {
            let _ = parse::<Instances>(&body, "DescribeInstances");
            let mut changed = LISTING.as_bytes().to_vec();
            let tail = changed.split_off(at);
            changed.extend(body);
            changed.extend(tail);
            let _ = parse::<Instances>(&changed, "DescribeInstances");
        }
    }
}
