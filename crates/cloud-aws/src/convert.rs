//! Converts instances and images.

use crate::classify::classify_end;
use crate::{names, wire};
use cloud_core::{Fault, ImageId, Instance, InstanceId, InstanceState, ShapeName, Tags, Zone};
use std::collections::BTreeMap;

/// The tag that holds the image of the last replacement of the root volume.
pub(crate) const BOOT_IMAGE: &str = "boot-image";

/// An instance, and whether its root volume was ever replaced.
pub(crate) fn instance(from: wire::Instance) -> (Instance, bool) {
    let mut tags = tags(from.tag_set);
    let replaced = tags.remove(BOOT_IMAGE);
    let index = from.ami_launch_index.and_then(|index| index.parse().ok()).unwrap_or_default();
    let (name, tags) = names::resolve(&from.instance_id, tags, index);
    let state = state(from.instance_state.name);
    let mut instance = Instance::new(InstanceId::new(from.instance_id), name, state);
    instance.tags = tags;
    instance.shape = from.instance_type.map(ShapeName::new);
    instance.zone = from.placement.and_then(|place| place.availability_zone).map(Zone::new);
    instance.preemptible = from.instance_lifecycle.as_deref() == Some("spot");
    let addresses = [from.private_ip_address, from.ipv6_address];
    instance.address = addresses.into_iter().flatten().find_map(|text| text.parse().ok());
    instance.created = from.launch_time.as_deref().and_then(wire::moment);
    let was_replaced = replaced.is_some();
    instance.image = replaced.or(from.image_id).map(ImageId::new);
    if instance.state.is_leaving() {
        instance.fault = from.state_reason.and_then(fault);
    }
    (instance, was_replaced)
}

/// The fault of an instance that ended by itself.
fn fault(reason: wire::StateReason) -> Option<Fault> {
    let kind = classify_end(&reason.code)?;
    Some(Fault { kind, message: reason.message })
}

fn state(name: String) -> InstanceState {
    match name.as_str() {
        "pending" => InstanceState::Pending,
        "running" => InstanceState::Running,
        "stopping" => InstanceState::Stopping,
        "stopped" => InstanceState::Stopped,
        "shutting-down" => InstanceState::Terminating,
        "terminated" => InstanceState::Terminated,
        _ => InstanceState::Other(name),
    }
}

fn tags(from: wire::Set<wire::Tag>) -> BTreeMap<String, String> {
    from.item.into_iter().map(|tag| (tag.key, tag.value)).collect()
}

/// The tags of an image.
pub(crate) fn image_tags(from: wire::Set<wire::Tag>) -> Tags {
    tags(from).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::ErrorKind;
    use std::net::IpAddr;

    fn read(inner: &str) -> Instance {
        let xml = format!(
            "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId>\
             {inner}</item></instancesSet></item></reservationSet></DescribeInstancesResponse>"
        );
        let body: wire::Instances = wire::parse(xml.as_bytes(), "DescribeInstances").unwrap();
        let mut all = body.reservation_set.item.into_iter().flat_map(|it| it.instances_set.item);
        instance(all.next().unwrap()).0
    }

    #[test]
    fn states_are_ours() {
        let table = [
            ("pending", InstanceState::Pending),
            ("running", InstanceState::Running),
            ("stopping", InstanceState::Stopping),
            ("stopped", InstanceState::Stopped),
            ("shutting-down", InstanceState::Terminating),
            ("terminated", InstanceState::Terminated),
            ("rebooting", InstanceState::Other("rebooting".to_owned())),
        ];
        for (word, expected) in table {
            let found = read(&format!("<instanceState><name>{word}</name></instanceState>"));
            assert_eq!(found.state, expected);
        }
    }

    #[test]
    fn a_launch_that_found_no_room_later_says_so_and_one_that_was_ended_has_no_fault() {
        let ended = |code: &str| {
            read(&format!(
                "<instanceState><name>terminated</name></instanceState><stateReason><code>{code}</code>\
                 <message>so</message></stateReason>"
            ))
        };
        let fault = ended("Server.InsufficientInstanceCapacity").fault.unwrap();
        assert_eq!((fault.kind, fault.message.as_str()), (ErrorKind::Capacity, "so"));
        assert_eq!(ended("Client.UserInitiatedShutdown").fault, None);
    }

    #[test]
    fn an_address_is_in_the_listing() {
        let state = "<instanceState><name>running</name></instanceState>";
        let old = read(&format!("{state}<privateIpAddress>10.0.0.7</privateIpAddress>"));
        assert_eq!(old.address, Some(IpAddr::from([10, 0, 0, 7])));
        let new = read(&format!("{state}<privateIpAddress/><ipv6Address>fd00::7</ipv6Address>"));
        assert_eq!(new.address, "fd00::7".parse().ok());
    }
}
