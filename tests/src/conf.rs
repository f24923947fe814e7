//! The configuration of a test's cluster.

use crate::release::Release;
use std::path::Path;
use std::process::Command;

/// How Slurm learns where nodes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// From startnode, which sets them with scontrol.
    FromStartnode,
    /// Nodes say it themselves when they register; from 23.11 on they always do.
    Registered,
}

/// What a test chooses of slurm.conf.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    /// Seconds until an idle node goes.
    pub(crate) suspend: u32,
    /// Seconds that a node may take to come: longer than tests are patient, so that what is seen before is our work.
    pub(crate) resume_timeout: u32,
    /// Seconds until a node that does not answer is down.
    pub(crate) slurmd_timeout: u32,
    /// Seconds for which clients try to reach slurmctld.
    pub(crate) slurmctld_timeout: u32,
    /// Seconds until a job's credential ends: within them its nodes have to be told of it, and for so long it waits when it is
    /// put back in the queue.
    pub(crate) credential: u32,
    pub(crate) addresses: Addresses,
    /// Slurm runs the reboot program on the node itself.
    pub(crate) reboot_on_the_node: bool,
    /// Lines behind the nodes.
    pub(crate) partitions: String,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            suspend: 2,
            resume_timeout: 600,
            slurmd_timeout: 300,
            slurmctld_timeout: 10,
            credential: 10,
            addresses: Addresses::Registered,
            reboot_on_the_node: false,
            partitions: "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
                .to_owned(),
        }
    }
}

/// What slurm.conf says besides the nodes.
pub(crate) fn slurm_conf(release: &Release, dir: &Path, choices: &Choices) -> String {
    let mut parameters = vec!["idle_on_node_suspend", "power_save_interval=1"];
    if !choices.reboot_on_the_node {
        parameters.push("reboot_from_controller");
    }
    if release.version().has_expedited_requeue() {
        parameters.push("enable_expedited_requeue");
    }
    if release.is_old() && choices.addresses == Addresses::Registered {
        parameters.push("cloud_reg_addrs");
    }
    let private = if release.is_old() { "PrivateData=cloud\n" } else { "" };
    let (daemons, times) = (daemons(release, dir, choices.credential), times(choices));
    let (at, parameters) = (dir.display(), parameters.join(","));
    format!(
        "{daemons}{times}SlurmctldParameters={parameters}
{private}PrologSlurmctld={at}/bin/prolog
ResumeProgram={at}/bin/startnode
SuspendProgram={at}/bin/stopnode
ResumeFailProgram={at}/bin/startnode-failed
RebootProgram={at}/bin/rebuild
# STARTNODES
# ENDNODES
{}",
        choices.partitions
    )
}

fn times(choices: &Choices) -> String {
    let Choices { suspend, resume_timeout, slurmd_timeout, slurmctld_timeout, .. } = choices;
    format!(
        "SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
SlurmctldTimeout={slurmctld_timeout}
SlurmdTimeout={slurmd_timeout}
MessageTimeout=10
BatchStartTimeout=30
KillWait=1
InactiveLimit=0
MinJobAge=3600
Waittime=0
SuspendTime={suspend}
SuspendTimeout=2
ResumeTimeout={resume_timeout}
SuspendRate=0
ResumeRate=0
"
    )
}

fn daemons(release: &Release, dir: &Path, credential: u32) -> String {
    let dir = dir.display();
    let user = Command::new("id").arg("-un").output().expect("coreutils are installed");
    let user = String::from_utf8_lossy(&user.stdout);
    let user = user.trim();
    let plugins = release.dir().join("lib/slurm");
    let plugins = plugins.display();
    format!(
        "ClusterName=c1
SlurmUser={user}
SlurmdUser={user}
PluginDir={plugins}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/run/munge,cred_expire={credential}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/run/slurmctld.pid
SlurmdPidFile={dir}/run/slurmd.%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/slurmd.%n.log
SlurmctldDebug=debug
DebugFlags=Power
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
TreeWidth=65533
MailProg=/bin/true
"
    )
}
