//! What the machines of a cluster are, and where it lives.

use crate::folder::Folder;
use crate::namespaces::directory;
use crate::network;
use cloud_sim::CloudSettings;
use slurm_testbed::{hostname, own_port};
use std::path::PathBuf;

/// What the machines of a cluster are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A slurmd with network, process, host-name, mount and time namespaces of its own. The cluster is made in a scenario
    /// that has such, too: see [`in_namespaces`](crate::in_namespaces()).
    Netns,
    /// A slurmd on a port of its own of this machine, which needs no rights. All of them have this machine's name.
    Local,
}

impl Model {
    /// Where the controller and the cloud are.
    pub(crate) fn controller(self) -> &'static str {
        match self {
            Self::Netns => network::CONTROLLER,
            Self::Local => "127.0.0.1",
        }
    }

    /// Has the cloud listen and give addresses where machines can have them.
    pub(crate) fn arrange(self, settings: &mut CloudSettings) {
        settings.listen = format!("{}:0", self.controller());
        let range = match self {
            Self::Netns => "10.77.0.0/16",
            // All of it is this machine.
            Self::Local => "127.77.0.0/16",
        };
        for subnet in &mut settings.subnets {
            range.clone_into(&mut subnet.cidr);
        }
    }

    /// How a machine is made, as words for the script that does it.
    pub(crate) fn boot(self) -> &'static str {
        match self {
            Self::Netns => "boot",
            Self::Local => "local",
        }
    }

    pub(crate) fn home(self, nodes: usize) -> Home {
        match self {
            Self::Netns => {
                let dir =
                    directory().expect("a cluster is made in a scenario: see in_namespaces()");
                Home { dir, ports: Vec::new(), _folder: None }
            }
            Self::Local => {
                let folder = Folder::new();
                Home {
                    dir: folder.path().to_owned(),
                    ports: (0..=nodes).map(|_| own_port()).collect(),
                    _folder: Some(folder),
                }
            }
        }
    }
}

/// Where a cluster lives.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) dir: PathBuf,
    /// Of slurmctld and of each slurmd, if these are beside others on one machine.
    ports: Vec<u16>,
    /// Goes last, and with it whatever still runs there.
    _folder: Option<Folder>,
}

impl Home {
    /// What slurm.conf says of slurmctld's port.
    pub(crate) fn controller_port(&self) -> String {
        self.ports.first().map(|port| format!("SlurmctldPort={port}\n")).unwrap_or_default()
    }

    /// What a line of nodes says besides what `finish` writes: where they are if all are here.
    pub(crate) fn node_words(&self) -> String {
        let Some((_, ports)) = self.ports.split_first() else { return String::new() };
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        format!(" NodeAddr=127.0.0.1 NodeHostname={} Port=[{}]", hostname(), ports.join(","))
    }
}
