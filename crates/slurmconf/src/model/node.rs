//! Nodes.

use super::{
    SuspendTime,
    features::Features,
    gres::GresList,
    value::{Attributes, hostlist, long_number, number, remember},
};
use crate::{
    document::{Pair, encoded},
    error::Problem,
};
use hostlist::Hostlist;
use std::fmt;

/// A `NodeName` line: one or many nodes with the same attributes.
///
/// A field is `None` if neither the line nor a `NodeName=DEFAULT` line sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeDef {
    /// The nodes.
    pub names: Hostlist,
    /// `NodeAddr`: as many as names, or one for all.
    pub addr: Option<Hostlist>,
    /// `NodeHostname`: as many as names, or one for all.
    pub hostname: Option<Hostlist>,
    /// `Port`: one number, or a range of as many as names.
    pub port: Option<String>,
    /// `State`
    pub state: Option<ConfiguredState>,
    /// `CPUs`
    pub cpus: Option<u32>,
    /// `Boards`
    pub boards: Option<u32>,
    /// `SocketsPerBoard`
    pub sockets_per_board: Option<u32>,
    /// `Sockets` on all boards; `SocketsPerBoard` takes precedence
    pub sockets: Option<u32>,
    /// `CoresPerSocket`
    pub cores_per_socket: Option<u32>,
    /// `ThreadsPerCore`
    pub threads_per_core: Option<u32>,
    /// `RealMemory` in MiB
    pub real_memory: Option<u64>,
    /// `Weight`; nodes of less weight are used first
    pub weight: Option<u32>,
    /// `Gres`
    pub gres: Option<GresList>,
    /// `Features`
    pub features: Option<Features>,
    /// `SuspendTime`, since 26.05; takes precedence over partitions and cluster
    pub suspend_time: Option<SuspendTime>,
    /// Other attributes, in order.
    pub other: Vec<(String, String)>,
}

/// The initial state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfiguredState {
    /// Elastic: started on demand.
    Cloud,
    /// Defined, and not in use.
    Future,
    /// Determined when the node registers; the default.
    Unknown,
    /// Any other state.
    Other(String),
}

/// The processors of a node, as slurmctld computes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Boards.
    pub boards: u32,
    /// Sockets on all boards together.
    pub sockets: u32,
    /// Cores in each socket.
    pub cores_per_socket: u32,
    /// Threads in each core.
    pub threads_per_core: u32,
    /// CPUs that Slurm counts.
    pub cpus: u32,
}

impl NodeDef {
    /// True if the nodes are elastic.
    #[must_use]
    pub fn is_cloud(&self) -> bool {
        self.state == Some(ConfiguredState::Cloud)
    }

    /// The value of the feature `shape=`.
    #[must_use]
    pub fn shape(&self) -> Option<&str> {
        self.features.as_ref()?.value("shape")
    }

    /// The value of the feature `zone=`, or of CitC's `ad=`, unless that is CitC's `None`.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        let features = self.features.as_ref()?;
        let citc = || features.value("ad").filter(|zone| *zone != "None");
        features.value("zone").or_else(citc)
    }

    /// The processors, with Slurm's rules for missing values.
    ///
    /// `SocketsPerBoard` takes precedence over `Sockets`. Without both, sockets follow from `CPUs` if the division is
    /// exact. More boards than sockets are one board. A `CPUs` that is neither the number of sockets, cores nor threads
    /// is corrected.
    #[must_use]
    pub fn topology(&self) -> Topology {
        let boards = self.boards.unwrap_or(1).max(1);
        let cores = self.cores_per_socket.unwrap_or(1).max(1);
        let threads = self.threads_per_core.unwrap_or(1).max(1);
        let each = cores.saturating_mul(threads);
        let from_cpus = || {
            let whole = self.cpus.filter(|cpus| *cpus >= each && cpus.is_multiple_of(each));
            whole.map(|cpus| cpus / each)
        };
        let on_boards = self.sockets_per_board.map(|count| count.max(1).saturating_mul(boards));
        let sockets = on_boards.or(self.sockets).or_else(from_cpus).unwrap_or(boards).max(1);
        let boards = if sockets < boards { 1 } else { boards };
        let all_cores = sockets.saturating_mul(cores);
        let all = all_cores.saturating_mul(threads);
        let given = self.cpus.filter(|cpus| [sockets, all_cores, all].contains(cpus));
        Topology {
            boards,
            sockets,
            cores_per_socket: cores,
            threads_per_core: threads,
            cpus: given.unwrap_or(all),
        }
    }

    /// Takes an attribute with one spelling; the last value counts.
    pub(super) fn apply(&mut self, pair: &Pair<'_>) -> Result<(), Problem> {
        match pair.key.to_ascii_lowercase().as_str() {
            "nodeaddr" => self.addr = Some(hostlist(pair)?),
            "nodehostname" => self.hostname = Some(hostlist(pair)?),
            "port" => self.port = Some(pair.value.to_string()),
            "state" => self.state = Some(ConfiguredState::from(&*pair.value)),
            "cpus" => self.cpus = Some(number(pair)?),
            "boards" => self.boards = Some(number(pair)?),
            "socketsperboard" => self.sockets_per_board = Some(number(pair)?),
            "sockets" => self.sockets = Some(number(pair)?),
            "corespersocket" => self.cores_per_socket = Some(number(pair)?),
            "threadspercore" => self.threads_per_core = Some(number(pair)?),
            "realmemory" => self.real_memory = Some(long_number(pair)?),
            "weight" => self.weight = Some(long_number(pair)?),
            "suspendtime" => self.suspend_time = Some(SuspendTime::read(pair)?),
            "gres" => self.gres = Some(GresList::from(&*pair.value)),
            _ => remember(&mut self.other, pair),
        }
        Ok(())
    }

    /// Attributes with a value for each node, or one for all.
    pub(crate) fn own(&self) -> Vec<(&'static str, Vec<String>)> {
        let port = self.port.as_ref().map(|port| {
            port.parse::<Hostlist>().map_or_else(|_| vec![port.clone()], |list| list.to_vec())
        });
        let addr = self.addr.as_ref().map(Hostlist::to_vec);
        let hostname = self.hostname.as_ref().map(Hostlist::to_vec);
        let all = [("NodeAddr", addr), ("NodeHostname", hostname), ("Port", port)];
        all.into_iter().filter_map(|(key, values)| Some((key, values?))).collect()
    }

    /// Every attribute that is set, as key and text.
    pub(crate) fn attributes(&self) -> Vec<(&str, String)> {
        let mut all = Vec::new();
        let mut add = |key, value: Option<String>| all.extend(value.map(|value| (key, value)));
        add("NodeAddr", self.addr.as_ref().map(ToString::to_string));
        add("NodeHostname", self.hostname.as_ref().map(ToString::to_string));
        add("Port", self.port.clone());
        add("State", self.state.as_ref().map(ToString::to_string));
        add("CPUs", self.cpus.map(|number| number.to_string()));
        add("Boards", self.boards.map(|number| number.to_string()));
        add("SocketsPerBoard", self.sockets_per_board.map(|number| number.to_string()));
        add("Sockets", self.sockets.map(|number| number.to_string()));
        add("CoresPerSocket", self.cores_per_socket.map(|number| number.to_string()));
        add("ThreadsPerCore", self.threads_per_core.map(|number| number.to_string()));
        add("RealMemory", self.real_memory.map(|number| number.to_string()));
        add("Weight", self.weight.map(|number| number.to_string()));
        add("Gres", self.gres.as_ref().map(ToString::to_string));
        add("Features", self.features.as_ref().map(ToString::to_string));
        add("SuspendTime", self.suspend_time.map(|time| time.to_string()));
        all.extend(self.other.iter().map(|(key, value)| (key.as_str(), value.clone())));
        all
    }
}

impl fmt::Display for NodeDef {
    /// Writes the line with folded names. A value with both a blank and a quote does not read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeName={}", encoded(&self.names.to_string()))?;
        let mut out = Attributes(f);
        self.attributes().iter().try_for_each(|(key, value)| out.put(key, value))
    }
}

impl From<&str> for ConfiguredState {
    fn from(word: &str) -> Self {
        match word.to_ascii_uppercase().as_str() {
            "CLOUD" => Self::Cloud,
            "FUTURE" => Self::Future,
            "UNKNOWN" => Self::Unknown,
            _ => Self::Other(word.to_owned()),
        }
    }
}

impl fmt::Display for ConfiguredState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cloud => "CLOUD",
            Self::Future => "FUTURE",
            Self::Unknown => "UNKNOWN",
            Self::Other(word) => word,
        })
    }
}
