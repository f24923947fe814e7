//! Converts a Nova server to an [`Instance`].

use crate::resolve::uuid;
use crate::wire::{Address, Server, moment};
use crate::{fault, tags};
use cloud_core::{
    ErrorKind, Fault, ImageId, Instance, InstanceId, InstanceName, InstanceState, ShapeName, Zone,
};
use std::net::IpAddr;

/// The network whose address counts. A single network always does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Primary {
    /// Not configured.
    Any,
    /// The network with this name.
    Named(String),
    /// A network whose name is unknown.
    Unknown,
}

/// Converts a server. Its address is the first on the primary network.
pub(crate) fn instance(server: Server, primary: &Primary) -> Instance {
    let state = state(&server.status, server.task_state.as_deref());
    let address = address(&server, primary);
    let metadata = server.metadata.unwrap_or_default();
    let seen = metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let tags = tags::from_parts(seen, &server.tags.unwrap_or_default());
    let fault = match (&state, &server.fault) {
        (InstanceState::Failed, Some(shown)) => Some(fault::fault(shown)),
        // Nova has forgotten the reason, or does not report it.
        (InstanceState::Failed, None) => {
            Some(Fault { kind: ErrorKind::Unavailable, message: "no fault is shown".to_owned() })
        }
        (
            InstanceState::Pending
            | InstanceState::Running
            | InstanceState::Stopping
            | InstanceState::Stopped
            | InstanceState::Terminating
            | InstanceState::Terminated
            | InstanceState::Other(_),
            _,
        ) => None,
    };
    let (id, name) =
        (InstanceId::new(server.id), InstanceName::new(server.name.unwrap_or_default()));
    let mut instance = Instance::new(id, name, state);
    instance.tags = tags;
    instance.shape = server.flavor.original_name.map(ShapeName::new);
    instance.zone = server.zone.filter(|zone| !zone.is_empty()).map(Zone::new);
    instance.location = server.host.filter(|host| !host.is_empty()).into_iter().collect();
    // Nova reports no image for a server that boots from a volume.
    let noted = || metadata.get(tags::BOOT_IMAGE).and_then(|image| uuid(image));
    instance.image = server.image.map(|image| image.id).or_else(noted).map(ImageId::new);
    instance.address = address;
    instance.created = server.created.as_deref().and_then(moment);
    instance.fault = fault;
    instance
}

/// Converts Nova's status and task.
///
/// A rebuild has ended when the status is ACTIVE and there is no task. Status and image change earlier.
fn state(status: &str, task: Option<&str>) -> InstanceState {
    match (status, task) {
        // A soft-deleted server counts as terminated: listings do not show it, and its actual deletion may take days.
        ("DELETED" | "SOFT_DELETED", _) => InstanceState::Terminated,
        (_, Some("deleting" | "soft-deleting")) => InstanceState::Terminating,
        ("ERROR", _) => InstanceState::Failed,
        (
            "ACTIVE",
            Some(
                "powering-off"
                | "shelving"
                | "shelving_image_pending_upload"
                | "shelving_image_uploading",
            ),
        ) => InstanceState::Stopping,
        ("ACTIVE" | "VERIFY_RESIZE" | "MIGRATING" | "PASSWORD", None)
        | ("VERIFY_RESIZE" | "MIGRATING" | "PASSWORD", Some(_)) => InstanceState::Running,
        ("SHUTOFF", Some("powering-on")) | ("ACTIVE", Some(_)) => InstanceState::Pending,
        ("SHUTOFF", _) => InstanceState::Stopped,
        ("BUILD" | "REBUILD" | "REBOOT" | "HARD_REBOOT" | "RESIZE" | "REVERT_RESIZE", _)
        | ("SHELVED" | "SHELVED_OFFLOADED", Some("unshelving" | "spawning")) => {
            InstanceState::Pending
        }
        (other, _) => InstanceState::Other(other.to_owned()),
    }
}

fn address(server: &Server, primary: &Primary) -> Option<IpAddr> {
    let all = &server.addresses;
    let any = || all.values().find_map(|addresses| first_fixed(addresses));
    match primary {
        Primary::Named(network) if all.contains_key(network) => first_fixed(all.get(network)?),
        // It has other networks, but not the primary one.
        Primary::Named(_) | Primary::Unknown if all.len() > 1 => None,
        Primary::Named(_) | Primary::Unknown | Primary::Any => any(),
    }
}

/// The first fixed address, IPv4 before IPv6. Floating addresses are for external access.
fn first_fixed(addresses: &[Address]) -> Option<IpAddr> {
    let fixed = addresses.iter().filter(|address| address.kind.as_deref() != Some("floating"));
    let parsed: Vec<IpAddr> = fixed.filter_map(|address| address.addr.parse().ok()).collect();
    parsed.iter().find(|address| address.is_ipv4()).or_else(|| parsed.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn novas_words_have_states() {
        let table = [
            ("ACTIVE", None, InstanceState::Running),
            ("ACTIVE", Some("rebuild_spawning"), InstanceState::Pending),
            ("ACTIVE", Some("powering-off"), InstanceState::Stopping),
            ("ACTIVE", Some("deleting"), InstanceState::Terminating),
            ("ERROR", Some("deleting"), InstanceState::Terminating),
            ("ERROR", None, InstanceState::Failed),
            ("BUILD", Some("spawning"), InstanceState::Pending),
            ("REBUILD", Some("rebuilding"), InstanceState::Pending),
            ("HARD_REBOOT", Some("reboot_started_hard"), InstanceState::Pending),
            ("ACTIVE", Some("shelving"), InstanceState::Stopping),
            ("SHELVED_OFFLOADED", None, InstanceState::Other("SHELVED_OFFLOADED".to_owned())),
            ("SHELVED_OFFLOADED", Some("spawning"), InstanceState::Pending),
            ("SHUTOFF", None, InstanceState::Stopped),
            ("SHUTOFF", Some("powering-on"), InstanceState::Pending),
            ("MIGRATING", Some("migrating"), InstanceState::Running),
            ("SOFT_DELETED", None, InstanceState::Terminated),
            ("DELETED", None, InstanceState::Terminated),
            ("RESCUE", None, InstanceState::Other("RESCUE".to_owned())),
            ("PAUSED", None, InstanceState::Other("PAUSED".to_owned())),
        ];
        for (status, task, expected) in table {
            assert_eq!(state(status, task), expected, "{status} {task:?}");
        }
    }

    #[test]
    fn the_address_is_the_first_on_the_primary_network() {
        let addresses = json!({
            "ceph": [{"addr": "10.9.0.1", "OS-EXT-IPS:type": "fixed"}],
            "net": [
                {"addr": "198.51.100.7", "OS-EXT-IPS:type": "floating"},
                {"addr": "fd00::7", "OS-EXT-IPS:type": "fixed"},
                {"addr": "10.1.0.7", "OS-EXT-IPS:type": "fixed"},
            ],
        });
        let body = json!({"id": "s", "status": "ACTIVE", "addresses": addresses});
        let seen = |primary| {
            let server: Server = serde_json::from_value(body.clone()).unwrap();
            instance(server, &primary).address.map(|address| address.to_string())
        };
        let named = |name: &str| Primary::Named(name.to_owned());
        assert_eq!(seen(named("net")).as_deref(), Some("10.1.0.7"));
        assert_eq!(seen(named("ceph")).as_deref(), Some("10.9.0.1"));
        assert_eq!(seen(named("gone")), None);
        assert_eq!(seen(Primary::Unknown), None);
        assert_eq!(seen(Primary::Any).as_deref(), Some("10.9.0.1"));
    }

    #[test]
    fn a_server_that_boots_from_a_volume_has_the_image_that_we_noted() {
        let (old, new) =
            ("6b7f2c9e-0a8d-4a51-9a39-0e5f3b1c2d4e", "22222222-2222-4222-8222-222222222222");
        for (image, metadata, expected) in [
            (json!(""), json!({}), None),
            (json!(""), json!({"boot_image": new}), Some(new)),
            (json!(""), json!({"boot_image": "golden"}), None),
            (json!({"id": old}), json!({"boot_image": new}), Some(old)),
        ] {
            let body = json!({"id": "s", "image": image, "metadata": metadata});
            let server: Server = serde_json::from_value(body.clone()).unwrap();
            let seen = instance(server, &Primary::Any).image;
            assert_eq!(seen.as_ref().map(ImageId::as_str), expected, "{body}");
        }
    }

    #[test]
    fn a_failed_server_always_has_a_fault() {
        let server: Server = serde_json::from_value(json!({"id": "s", "status": "ERROR"})).unwrap();
        assert!(instance(server, &Primary::Any).fault.is_some());
    }
}
