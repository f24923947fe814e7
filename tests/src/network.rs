//! The network of a scenario.

use std::process::Command;

/// Where the controller and the cloud are; machines are in the same range.
pub(crate) const CONTROLLER: &str = "10.77.0.1";

/// Makes a bridge for machines in the network that we are in.
///
/// Ports and addresses are free to choose, and many clusters can be side by side with the same ones.
pub(crate) fn make() {
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
