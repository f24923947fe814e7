//! Settings of [`MemorySlurm`](super::MemorySlurm), and the values that it takes and returns.

use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;
use std::time::{Duration, SystemTime};

/// When a registration returns a `DOWN` node to service: `ReturnToService`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnToService {
    /// 0: never.
    Never,
    /// 1: only if it was down because it did not respond.
    NotResponding,
    /// 2: always.
    Always,
}

/// Settings of a [`MemorySlurm`](super::MemorySlurm).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemorySlurmSettings {
    /// The release whose rules it follows.
    pub version: SlurmVersion,
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
    /// `ResumeTimeout`.
    pub resume_timeout: Duration,
    /// The most nodes in one call of `ResumeProgram`; a job may be split over several. (The real `ResumeRate` is per
    /// minute.)
    pub resume_rate: Option<usize>,
    /// `SuspendTime`; `None` is never.
    pub suspend_time: Option<Duration>,
    /// `SuspendTimeout`.
    pub suspend_timeout: Duration,
    /// `SlurmdTimeout`: after half of it a lost node is not responding, after all of it the node is down. (The real
    /// slurmctld takes up to twice as long.)
    pub slurmd_timeout: Duration,
    /// How long a requeued job waits.
    pub requeue_delay: Duration,
    /// `SlurmctldParameters=idle_on_node_suspend`.
    pub idle_on_node_suspend: bool,
    /// True for a slurmctld before 23.11 without `cloud_reg_addrs`: it cannot reach a cloud node until its address is
    /// set.
    pub needs_addresses: bool,
    /// `ReturnToService`.
    pub return_to_service: ReturnToService,
    /// How long a successful call takes.
    pub latency: Duration,
    /// How long a call without an answer takes.
    pub timeout: Duration,
    /// How long a restart takes.
    pub restart_time: Duration,
    /// The time of day at the start.
    pub epoch: SystemTime,
}

impl MemorySlurmSettings {
    /// Cloud nodes in the partition `main`, on the newest supported release.
    #[must_use]
    pub fn cloud(nodes: &Hostlist) -> Self {
        let names = nodes.iter().filter_map(|name| NodeName::new(&name).ok());
        Self {
            version: SlurmVersion::new(26, 5).patch(5),
            nodes: names.map(NodeSpec::cloud).collect(),
            resume_timeout: Duration::from_mins(5),
            resume_rate: None,
            suspend_time: Some(Duration::from_mins(5)),
            suspend_timeout: Duration::from_secs(30),
            slurmd_timeout: Duration::from_mins(5),
            requeue_delay: Duration::from_secs(121),
            idle_on_node_suspend: true,
            needs_addresses: false,
            return_to_service: ReturnToService::Always,
            latency: Duration::from_millis(20),
            timeout: Duration::from_secs(10),
            restart_time: Duration::from_secs(2),
            epoch: SystemTime::UNIX_EPOCH + Duration::from_hours(500_000),
        }
    }

    /// True if slurmctld needs the addresses of cloud nodes.
    pub(super) fn looks_for_nodes(&self) -> bool {
        self.needs_addresses && !self.version.resets_addresses()
    }

    /// True if slurmctld appends to a reason; 22.05 overwrites it.
    pub(super) fn appends_reasons(&self) -> bool {
        self.version >= SlurmVersion::new(23, 11)
    }

    /// True if a reason stays after a return to service, until the next job: observed on 24.11, not on 22.05 and 26.05.
    pub(super) fn keeps_reasons(&self) -> bool {
        (SlurmVersion::new(23, 11)..SlurmVersion::new(26, 5)).contains(&self.version)
    }
}

/// A node in slurm.conf.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Its name.
    pub name: NodeName,
    /// `State=CLOUD`; other nodes are up from the start.
    pub cloud: bool,
    /// The number of CPUs.
    pub cpus: u32,
    /// Its features.
    pub features: Vec<String>,
    /// Its partitions.
    pub partitions: Vec<String>,
}

impl NodeSpec {
    /// A node of a cloud, powered down, with two CPUs, in the partition `main`.
    #[must_use]
    pub fn cloud(name: NodeName) -> Self {
        Self { name, cloud: true, cpus: 2, features: Vec::new(), partitions: vec!["main".into()] }
    }

    /// A persistent node.
    #[must_use]
    pub fn fixed(name: NodeName) -> Self {
        Self { cloud: false, ..Self::cloud(name) }
    }
}

/// A job to submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// The number of nodes.
    pub nodes: usize,
    /// CPUs on each node; `None` is all of them.
    pub cpus: Option<u32>,
    /// How long it runs.
    pub run_time: Duration,
    /// Its partition.
    pub partition: String,
    /// A required feature.
    pub feature: Option<String>,
    /// Required nodes; empty is any.
    pub wanted: Vec<NodeName>,
    /// Requeue the job when a node fails, as Slurm does by default.
    pub requeue: bool,
    /// Reboot the nodes first.
    pub reboot: bool,
}

impl JobSpec {
    /// A job for whole nodes in the partition `main`.
    #[must_use]
    pub fn new(nodes: usize, run_time: Duration) -> Self {
        Self {
            nodes,
            cpus: None,
            run_time,
            partition: "main".into(),
            feature: None,
            wanted: Vec::new(),
            requeue: true,
            reboot: false,
        }
    }
}

/// A program that slurmctld starts, and its argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `ResumeProgram`.
    Resume {
        /// The nodes.
        nodes: Hostlist,
        /// The nodes with the jobs of the resume file.
        request: crate::ResumeRequest,
    },
    /// `ResumeProgram` for a job with `--reboot`: `SLURM_JOB_ID` is set, and there is no resume file.
    RebootJob {
        /// The nodes.
        nodes: Hostlist,
        /// The job.
        job: crate::JobId,
    },
    /// `SuspendProgram`.
    Suspend {
        /// The nodes.
        nodes: Hostlist,
    },
    /// `ResumeFailProgram`.
    ResumeFail {
        /// The nodes.
        nodes: Hostlist,
    },
    /// `RebootProgram` on the controller.
    Reboot {
        /// The nodes.
        nodes: Hostlist,
    },
}

/// The result of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// The node is in service, unless it is drained.
    Accepted,
    /// The machine booted before slurmctld asked for one, so it is an old one.
    OldBoot,
    /// The node stays `DOWN` because of `ReturnToService`.
    StaysDown,
    /// There is no such node, or slurmctld does not answer.
    Unheard,
}
