//! A network of the test's own.

use nix::sched::{CloneFlags, unshare};
use std::process::Command;

/// Where the controller and the cloud are; machines are in the same range.
pub(crate) const CONTROLLER: &str = "10.77.0.1";

/// Puts this thread, and all that it starts, into a network of its own with a bridge for machines.
///
/// Ports and addresses are then free to choose, and many clusters can be side by side. Needs root.
pub(crate) fn enter() {
    unshare(CloneFlags::CLONE_NEWNET)
        .expect("the system tests need root, for networks of their own");
    for command in [
        "link set lo up",
        "link add br0 type bridge",
        "address add 10.77.0.1/16 dev br0",
        "link set br0 up",
    ] {
        let status = Command::new("ip").args(command.split(' ')).status();
        assert!(status.expect("iproute2 is installed").success(), "ip {command}");
    }
}
