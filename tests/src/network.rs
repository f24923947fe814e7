//! The network of a scenario.

use std::fs;
use std::path::Path;
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

/// Has nodes that are always there be known by name, as a name server would: slurmctld asks for ten seconds for each name
/// that is not. Where they really are it is told later, and the file is that of the scenario's own mount namespace.
pub(crate) fn name(dir: &Path, stems: &[String]) {
    let mut hosts = "127.0.0.1 localhost\n".to_owned();
    for (group, stem) in stems.iter().enumerate() {
        for number in 1..=16 {
            hosts.push_str(&format!("10.77.{}.{number} {stem}-{number:04}\n", 200 + group));
        }
    }
    let path = dir.join("hosts");
    fs::write(&path, hosts).expect("a directory of ours");
    let status = Command::new("mount").arg("--bind").arg(&path).arg("/etc/hosts").status();
    assert!(status.expect("util-linux is installed").success(), "mount /etc/hosts");
}
