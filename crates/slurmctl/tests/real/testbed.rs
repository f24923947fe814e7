//! A private slurmctld, started from the cache that `tests/slurm/fetch` fills.

pub(crate) use slurm_testbed::{Guard, PATIENCE};

use slurm_testbed::{Release, cgroup, daemons, hostname, munged, own_port};
use slurmconf::SlurmVersion;
use slurmctl::{Controller as _, Programs, Scontrol, ScontrolConfig};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// munged and slurmctld with a directory of their own; all end with it.
pub(crate) struct Testbed {
    release: Release,
    port: u16,
    // Dropped in this order: slurmctld needs munged, and both their directory.
    slurmctld: Option<Guard>,
    _munged: Guard,
    dir: TempDir,
}

impl Testbed {
    /// A controller of a series such as `24.11`, with these lines in its slurm.conf.
    pub(crate) async fn start(series: &str, lines: &str) -> Self {
        let mut bed = Self::new(Release::find(series));
        for _ in 0..5 {
            if bed.try_start(lines).await {
                return bed;
            }
        }
        panic!("five free ports were taken by others:\n{}", bed.log());
    }

    fn new(release: Release) -> Self {
        // Short, for munged's socket.
        let dir = TempDir::with_prefix_in("sl", "/tmp").unwrap();
        let munged = munged(&release, dir.path());
        for name in ["state", "etc", "calls"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in ["resume", "suspend", "resumefail", "reboot"] {
            let (calls, path) = (dir.path().join("calls").join(name), dir.path().join(name));
            fs::write(&path, format!("#!/bin/sh\necho \"$1\" >> {}\n", calls.display())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(dir.path().join("etc/cgroup.conf"), cgroup(&release)).unwrap();
        Self { release, port: 0, slurmctld: None, _munged: munged, dir }
    }

    /// False if another process took the port in the meantime.
    async fn try_start(&mut self, lines: &str) -> bool {
        self.port = own_port();
        fs::write(self.conf(), format!("{}{lines}", self.base())).unwrap();
        let _ = fs::remove_file(self.dir.path().join("run/slurmctld.log"));
        let mut slurmctld = self.release.daemon("slurmctld", &self.conf());
        self.slurmctld = Some(Guard::spawn(slurmctld.args(["-D", "-c"])));
        let scontrol = self.scontrol().await;
        let up = until("slurmctld", async || {
            let ended = self.slurmctld.as_ref().and_then(Guard::ended);
            if ended.is_some() {
                Some(false)
            } else {
                scontrol.ping().await.unwrap().then_some(true)
            }
        });
        let up = up.await;
        let taken = !up && self.log().contains("Address already in use");
        assert!(up || taken, "slurmctld {} ended:\n{}\n{lines}", self.version(), self.log());
        up
    }

    pub(crate) fn version(&self) -> SlurmVersion {
        self.release.version()
    }

    /// The controller as the crate under test sees it.
    pub(crate) async fn scontrol(&self) -> Scontrol {
        Scontrol::connect(self.config()).await.unwrap()
    }

    pub(crate) fn config(&self) -> ScontrolConfig {
        let bin = self.release.bin();
        let mut config = ScontrolConfig::new(Programs::find(&[&bin], Path::exists).unwrap());
        config.slurm_conf = Some(self.conf());
        // Generous, as above; tests that want to see it pass set their own.
        config.timeout = PATIENCE;
        config
    }

    fn conf(&self) -> PathBuf {
        self.dir.path().join("etc/slurm.conf")
    }

    /// Adds lines to slurm.conf.
    pub(crate) fn add_to_conf(&self, lines: &str) {
        let text = fs::read_to_string(self.conf()).unwrap();
        fs::write(self.conf(), format!("{text}{lines}")).unwrap();
    }

    /// What any slurmctld needs to run here, with power saving and programs that note their calls.
    fn base(&self) -> String {
        let (dir, daemons) = (self.dir.path(), daemons(&self.release, self.dir.path(), self.port));
        let dir = dir.display();
        format!(
            "ClusterName=real\n{daemons}SelectTypeParameters=CR_CPU\n\
             PrivateData=cloud\nReturnToService=2\nSuspendRate=0\nResumeRate=0\n\
             MessageTimeout=60\n\
             SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,reboot_from_controller\n\
             SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0\n\
             ResumeProgram={dir}/resume\nSuspendProgram={dir}/suspend\nRebootProgram={dir}/reboot\n\
             ResumeFailProgram={dir}/resumefail\n",
        )
    }

    /// slurmd of a node, as on a machine that has just booted; it ends with the value.
    pub(crate) fn slurmd(&self, node: &str) -> Guard {
        let mut slurmd = self.release.daemon("slurmd", &self.conf());
        let slurmstepd = self.release.dir().join("sbin/slurmstepd");
        Guard::spawn(slurmd.args(["-D", "-b", "-N", node, "-d"]).arg(slurmstepd))
    }

    /// What a node's line needs so that slurmds of several nodes can live on this machine.
    pub(crate) fn local(nodes: usize) -> String {
        let ports: Vec<String> = (0..nodes).map(|_| own_port().to_string()).collect();
        format!("NodeAddr=127.0.0.1 NodeHostname={} Port={}", hostname(), ports.join(","))
    }

    /// The arguments that one of Slurm's programs was called with, in their order.
    pub(crate) fn calls(&self, program: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("calls").join(program));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("run/slurmctld.log")).unwrap_or_default()
    }

    /// Sends a signal such as `STOP` to slurmctld.
    pub(crate) fn signal(&self, name: &str) {
        self.slurmctld.as_ref().unwrap().signal(name);
    }
}

/// Asks again and again, up to a deadline.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what} after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
