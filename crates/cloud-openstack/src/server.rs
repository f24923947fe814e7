//! A Nova server as an [`Instance`].

use crate::wire::{Address, Server, moment};
use crate::{fault, tags};
use cloud_core::{
    ErrorKind, Fault, ImageId, Instance, InstanceId, InstanceName, InstanceState, ShapeName, Zone,
};
use std::net::IpAddr;

/// Turns Nova's server into an instance; its address is the first on the primary network, which is
/// the only one if it has but one.
pub(crate) fn instance(server: Server, primary: Option<&str>) -> Instance {
    let state = state(&server.status, server.task_state.as_deref());
    let address = address(&server, primary);
    let seen = server.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let tags = tags::from_parts(seen, &server.tags);
    let fault = match (&state, &server.fault) {
        (InstanceState::Failed, Some(shown)) => Some(fault::fault(shown)),
        // Nova has forgotten why, or does not tell us.
        (InstanceState::Failed, None) => {
            Some(Fault { kind: ErrorKind::Unavailable, message: "no fault is shown".to_owned() })
        }
        (_, _) => None,
    };
    let (id, name) = (InstanceId::new(server.id), InstanceName::new(server.name));
    let mut instance = Instance::new(id, name, state);
    instance.tags = tags;
    instance.shape = server.flavor.original_name.map(ShapeName::new);
    instance.zone = server.zone.filter(|zone| !zone.is_empty()).map(Zone::new);
    instance.image = server.image.map(|image| ImageId::new(image.id));
    instance.address = address;
    instance.created = server.created.as_deref().and_then(moment);
    instance.fault = fault;
    instance
}

/// Nova's two words in ours.
///
/// A rebuild is over when the status is ACTIVE and there is no task any more: status and image
/// change before that.
fn state(status: &str, task: Option<&str>) -> InstanceState {
    match (status, task) {
        ("DELETED", _) => InstanceState::Terminated,
        ("SOFT_DELETED", _) | (_, Some("deleting" | "soft-deleting")) => InstanceState::Terminating,
        ("ERROR", _) => InstanceState::Failed,
        ("ACTIVE", Some("powering-off")) => InstanceState::Stopping,
        ("ACTIVE" | "VERIFY_RESIZE" | "MIGRATING" | "PASSWORD", None)
        | ("VERIFY_RESIZE" | "MIGRATING" | "PASSWORD", Some(_)) => InstanceState::Running,
        ("SHUTOFF", Some("powering-on")) | ("ACTIVE", Some(_)) => InstanceState::Pending,
        ("SHUTOFF", _) => InstanceState::Stopped,
        ("BUILD" | "REBUILD" | "REBOOT" | "HARD_REBOOT" | "RESIZE" | "REVERT_RESIZE", _) => {
            InstanceState::Pending
        }
        (other, _) => InstanceState::Other(other.to_owned()),
    }
}

fn address(server: &Server, primary: Option<&str>) -> Option<IpAddr> {
    let all = &server.addresses;
    if let Some(named) = primary.and_then(|network| all.get(network)) {
        return first_fixed(named);
    }
    match primary {
        // It has others, but not the one that counts.
        Some(_) if all.len() > 1 => None,
        Some(_) | None => all.values().find_map(|addresses| first_fixed(addresses)),
    }
}

/// The first fixed address, IPv4 before IPv6; a floating one is for the world outside.
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
            ("SHUTOFF", None, InstanceState::Stopped),
            ("SHUTOFF", Some("powering-on"), InstanceState::Pending),
            ("MIGRATING", Some("migrating"), InstanceState::Running),
            ("SOFT_DELETED", None, InstanceState::Terminating),
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
            instance(server, primary).address.map(|address| address.to_string())
        };
        assert_eq!(seen(Some("net")).as_deref(), Some("10.1.0.7"));
        assert_eq!(seen(Some("ceph")).as_deref(), Some("10.9.0.1"));
        assert_eq!(seen(Some("gone")), None);
        assert_eq!(seen(None).as_deref(), Some("10.9.0.1"));
    }

    #[test]
    fn a_server_that_boots_from_a_volume_has_no_image() {
        let server: Server = serde_json::from_value(json!({"id": "s", "image": ""})).unwrap();
        assert_eq!(instance(server, None).image, None);
    }

    #[test]
    fn a_failed_server_always_has_a_fault() {
        let server: Server = serde_json::from_value(json!({"id": "s", "status": "ERROR"})).unwrap();
        assert!(instance(server, None).fault.is_some());
    }
}
