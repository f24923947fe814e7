//! What a controller in memory is like.

use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;
use std::time::{Duration, SystemTime};

/// When a node that is down comes back by registering, as `ReturnToService` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnToService {
    /// 0: never.
    Never,
    /// 1: only if it was down because it did not answer.
    NotResponding,
    /// 2: always.
    Always,
}

/// What a [`MemorySlurm`](super::MemorySlurm) is like.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Whose rules hold, where versions differ.
    pub version: SlurmVersion,
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
    /// `ResumeTimeout`.
    pub resume_timeout: Duration,
    /// Most nodes that are asked for in one call, as `ResumeRate` has it: a job may be split over several.
    /// (The real one counts by the minute.)
    pub resume_rate: Option<usize>,
    /// `SuspendTime`; without it idle nodes stay up.
    pub suspend_time: Option<Duration>,
    /// `SuspendTimeout`.
    pub suspend_timeout: Duration,
    /// `SlurmdTimeout`: half of it until a node that is lost is called not responding, all of it
    /// until it is down. (The real one takes up to twice as long.)
    pub slurmd_timeout: Duration,
    /// How long a requeued job waits.
    pub requeue_delay: Duration,
    /// `SlurmctldParameters=idle_on_node_suspend`.
    pub idle_on_node_suspend: bool,
    /// Before 23.11 and without `cloud_reg_addrs`, slurmctld knows where a cloud node is only if it was
    /// told, and no job gets there before that: a node that registered from elsewhere falls silent.
    /// Off as it is by default, a registration is enough.
    pub needs_addresses: bool,
    /// `ReturnToService`.
    pub return_to_service: ReturnToService,
    /// How long a call takes that works.
    pub latency: Duration,
    /// How long a call takes that is not answered.
    pub timeout: Duration,
    /// How long a restart takes.
    pub restart_time: Duration,
    /// What the clock showed when it was made.
    pub epoch: SystemTime,
}

impl Settings {
    /// Cloud nodes of this name, all in the partition `main`, on the newest version we know.
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
}

impl Settings {
    /// True if slurmctld has to be told where cloud nodes are.
    pub(super) fn looks_for_nodes(&self) -> bool {
        self.needs_addresses && !self.version.resets_addresses()
    }

    /// True if slurmctld adds its reason to the one that is there; 22.05 writes over it.
    pub(super) fn appends_reasons(&self) -> bool {
        self.version >= SlurmVersion::new(23, 11)
    }

    /// True if a reason outlives the return to service and goes with the next job.
    ///
    /// 24.11 does that, 22.05 and 26.05 do not; where between them it changed was not watched.
    pub(super) fn keeps_reasons(&self) -> bool {
        (SlurmVersion::new(23, 11)..SlurmVersion::new(26, 5)).contains(&self.version)
    }
}

/// A node, as slurm.conf has it.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// Its name.
    pub name: NodeName,
    /// `State=CLOUD`; others are up from the beginning.
    pub cloud: bool,
    /// How many CPUs it has.
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

    /// A node that is always there.
    #[must_use]
    pub fn fixed(name: NodeName) -> Self {
        Self { cloud: false, ..Self::cloud(name) }
    }
}

/// A job to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// How many nodes it wants.
    pub nodes: usize,
    /// How many CPUs it wants on each; all of them without a number.
    pub cpus: Option<u32>,
    /// How long it runs.
    pub run_time: Duration,
    /// Its partition.
    pub partition: String,
    /// A feature that its nodes must have.
    pub feature: Option<String>,
    /// Nodes that it must have; none of them means any.
    pub wanted: Vec<NodeName>,
    /// Back into the queue when a node is lost, as Slurm does by default.
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

/// A program that slurmctld would start now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `ResumeProgram`.
    Resume {
        /// The argument.
        nodes: Hostlist,
        /// The same with the jobs of the resume file.
        request: crate::ResumeRequest,
    },
    /// `ResumeProgram` for a job that wants its nodes rebooted: `SLURM_JOB_ID` set, no resume file.
    RebootJob {
        /// The argument.
        nodes: Hostlist,
        /// The job.
        job: crate::JobId,
    },
    /// `SuspendProgram`.
    Suspend {
        /// The argument.
        nodes: Hostlist,
    },
    /// `ResumeFailProgram`.
    ResumeFail {
        /// The argument.
        nodes: Hostlist,
    },
    /// `RebootProgram` on the controller.
    Reboot {
        /// The argument.
        nodes: Hostlist,
    },
}

/// What came of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// The node is in service, or as much in service as its drain flag allows.
    Accepted,
    /// The machine has not booted since slurmctld asked for it, so it is not the one that was asked for.
    OldBoot,
    /// The node stays down, since `ReturnToService` says so.
    StaysDown,
    /// There is no such node, or slurmctld does not answer.
    Unheard,
}
