//! The steps that write files.

use hostlist::NodeName;

/// A file that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileStep {
    /// Write a file whole.
    Write {
        /// Which.
        which: WrittenFile,
        /// The text that it was planned from: a file that has another by then is somebody else's to change.
        before: Vec<u8>,
        /// Its text, in bytes: comments of others may be in any encoding.
        text: Vec<u8>,
        /// What changes, in a few words.
        summary: String,
        /// The nodes that slurm.conf has no more when it is written.
        drops: Vec<NodeName>,
    },
    /// Work a file out anew from the next listing of the cloud, and write it if it changed.
    Refresh {
        /// Which.
        which: WrittenFile,
    },
}

/// A file that we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenFile {
    /// slurm.conf, between the markers.
    SlurmConf,
    /// Our block in /etc/hosts.
    Hosts,
    /// The inventory.
    Inventory,
    /// Slurm's topology.conf.
    Topology,
}
