//! What the scenarios rely on.

use e2e::in_namespaces;
use std::process::Command;

fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Machines that had not heard of it reached nobody for half a minute, and their jobs failed.
#[test]
fn the_controller_keeps_its_hardware_address() {
    in_namespaces(|| {
        let bridge = || {
            let shown = ip("-oneline link show br0");
            let mut words = shown.split_whitespace();
            words.find(|word| *word == "link/ether").and_then(|_| words.next()).map(str::to_owned)
        };
        let before = bridge();
        assert!(before.is_some());
        ip("link add low address 02:00:00:00:00:01 type veth peer name other");
        ip("link set low master br0 up");
        assert_eq!(bridge(), before, "when a machine comes");
        ip("link delete low");
        assert_eq!(bridge(), before, "when it goes");
    });
}
