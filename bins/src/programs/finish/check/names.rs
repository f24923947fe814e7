//! Whether slurmctld will find the nodes that are always there.

use super::Point;
use crate::config::{Cloud, Settings};
use slurmconf::NodeDef;
use std::net::ToSocketAddrs as _;

/// What is missing for nodes that are always there to be found by name: slurmctld leaves out those that it cannot look up.
/// Machines of OCI with a host name are in the DNS of their network; in an OpenStack they often are in none.
pub(super) fn point(settings: &Settings, nodes: &[NodeDef]) -> Option<Point> {
    let in_dns = match &settings.cloud {
        Cloud::Oracle(oracle) => oracle.hostname_label,
        Cloud::OpenStack(_) => false,
    };
    if in_dns || settings.paths.hosts.is_some() {
        return None;
    }
    unresolved(nodes, |name| (name, 0).to_socket_addrs().is_ok())
}

/// The same by what can be looked up; one name stands for all, as each may take seconds.
fn unresolved(nodes: &[NodeDef], resolves: impl Fn(&str) -> bool) -> Option<Point> {
    let first = nodes.iter().find(|node| !node.is_cloud())?.names.iter().next()?;
    (!resolves(&first)).then(|| {
        Point::Odd(format!(
            "{first} is always there, and slurmctld has to look its name up, which cannot be done: hosts_file: /etc/hosts in \
             startnode.yaml, unless DNS will have it with its machine"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmconf::Config;

    #[test]
    fn nodes_that_slurmctld_could_not_look_up_were_all_well() {
        let said = |text: &str, resolves: bool| {
            let config = Config::parse(text).unwrap();
            let found = unresolved(&config.nodes, |_| resolves);
            matches!(&found, Some(Point::Odd(text)) if text.starts_with("web-1 is always there"))
        };
        let both = "NodeName=n[1-4] State=CLOUD\nNodeName=web-[1-2]\n";
        assert!(said(both, false));
        assert!(!said(both, true));
        assert!(!said("NodeName=n[1-4] State=CLOUD\n", false), "we tell where these are");
    }
}
