//! The configuration of a test's cluster.

use crate::network::CONTROLLER;
use crate::release::Release;
use slurmconf::SlurmVersion;
use std::path::Path;

/// What slurm.conf says besides the nodes.
pub(crate) fn slurm_conf(release: &Release, dir: &Path, times: Times, programs: &Path) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let plugins = release.dir().join("lib/slurm");
    let old = release.version() < SlurmVersion::new(23, 11);
    let (cloud, more) = if old { ("PrivateData=cloud\n", ",cloud_reg_addrs") } else { ("", "") };
    let Times { suspend, resume_timeout } = times;
    let (dir, programs, plugins) = (dir.display(), programs.display(), plugins.display());
    format!(
        "ClusterName=c1
SlurmctldHost={host}({CONTROLLER})
SlurmUser=root
SlurmdUser=root
PluginDir={plugins}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/run/munge,cred_expire=3
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/run/slurmctld.pid
SlurmdPidFile={dir}/run/slurmd.%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/slurmd.%n.log
SlurmctldDebug=verbose
DebugFlags=Power
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
ReturnToService=2
SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,reboot_from_controller{more}
{cloud}SlurmdParameters=config_overrides
TreeWidth=65533
MailProg=/bin/true
SlurmctldTimeout=10
SlurmdTimeout=300
MessageTimeout=10
BatchStartTimeout=30
KillWait=1
InactiveLimit=0
Waittime=0
PrologSlurmctld={programs}/prolog
ResumeProgram={programs}/startnode
SuspendProgram={programs}/stopnode
ResumeFailProgram={programs}/startnode-failed
RebootProgram={programs}/rebuild
SuspendTime={suspend}
SuspendTimeout=2
ResumeTimeout={resume_timeout}
SuspendRate=0
ResumeRate=0
# STARTNODES
# ENDNODES
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"
    )
}

/// Seconds that a test chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) suspend: u32,
    pub(crate) resume_timeout: u32,
}
