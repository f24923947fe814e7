//! The network of a scenario.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Where the controller and the cloud are; machines are in the same range.
pub(crate) const CONTROLLER: &str = "10.77.0.1";

/// Makes a bridge for machines in the network that we are in.
///
/// Ports and addresses are free to choose, and many clusters can be side by side with the same ones. The bridge has a
/// hardware address of its own: else it has the lowest of its links', and when a machine comes or goes it may have another,
/// which the other machines learn only when they have not reached the controller for half a minute.
pub(crate) fn make() {
    for command in [
        "link set lo up",
        "link add br0 address 02:00:0a:4d:00:01 type bridge",
        "address add 10.77.0.1/16 dev br0",
        "link set br0 up",
    ] {
        let status = Command::new("ip").args(command.split(' ')).status();
        assert!(status.expect("iproute2 is installed").success(), "ip {command}");
    }
}

/// Has all nodes be known by name: slurmctld asks for ten seconds for a name that is not, with all else waiting.
///
/// Nodes that are always there get the address that their machines have, as from a name server. Elastic ones have one that
/// leads nowhere: where they are, Slurm has to be told. The file is that of the scenario's own mount namespace.
pub(crate) fn name(dir: &Path, persistent: &[String]) {
    let mut hosts = "127.0.0.1 localhost\n".to_owned();
    let elastic =
        ["vm-standard2-1-ad1", "vm-standard2-4-ad1", "c1-big", "c1-m1-tiny", "c1-t3-small"];
    let elastic = elastic.map(str::to_owned);
    let stems =
        persistent.iter().map(|stem| (77, stem)).chain(elastic.iter().map(|stem| (79, stem)));
    for (group, (range, stem)) in stems.enumerate() {
        for number in 1..=40 {
            let line = format!("10.{range}.{}.{number} {stem}-{number:04}\n", 200 + group);
            hosts.push_str(&line);
        }
    }
    let path = dir.join("hosts");
    fs::write(&path, hosts).expect("a directory of ours");
    let status = Command::new("mount").arg("--bind").arg(&path).arg("/etc/hosts").status();
    assert!(status.expect("util-linux is installed").success(), "mount /etc/hosts");
}
