//! A private slurmctld, started from the cache that `tests/slurm/fetch` fills.

use slurmconf::SlurmVersion;
use slurmctl::{Controller as _, Programs, Scontrol, ScontrolConfig};
use std::{
    env,
    fs::{self, File},
    io::Read as _,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Generous: a machine busy with other tests is no reason to fail.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A Slurm release in the cache.
struct Release {
    dir: PathBuf,
    version: SlurmVersion,
}

impl Release {
    fn find(series: &str) -> Self {
        let path =
            |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || path("HOME").expect("HOME is set").join(".cache");
        let cache = || path("XDG_CACHE_HOME").unwrap_or_else(home).join("slurm-elastic");
        let root = path("SLURM_ELASTIC_CACHE").unwrap_or_else(cache);
        let dir = root.join("slurm").join(series);
        let version = fs::read_to_string(dir.join("version")).unwrap_or_else(|error| {
            panic!(
                "no Slurm {series} in {}: {error}\nrun tests/slurm/fetch {series}",
                dir.display()
            )
        });
        Self { dir, version: version.parse().unwrap() }
    }
}

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
        // Short, because a socket's path is at most 107 bytes, and open to munged's strict eyes.
        let dir = TempDir::with_prefix_in("sl", "/tmp").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(dir.path(), 0o755);
        for name in ["munge", "run", "state", "etc", "calls"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            mode(&dir.path().join(name), if name == "munge" { 0o700 } else { 0o755 });
        }
        let path = |name: &str| dir.path().join(name).display().to_string();
        // Its own, so that no other test's slurmctld on a port once ours would answer.
        let mut key = [0; 128];
        File::open("/dev/urandom").unwrap().read_exact(&mut key).unwrap();
        fs::write(path("munge/key"), key).unwrap();
        mode(Path::new(&path("munge/key")), 0o600);
        for name in ["resume", "suspend", "resumefail", "reboot"] {
            let calls = path(&format!("calls/{name}"));
            fs::write(path(name), format!("#!/bin/sh\necho \"$1\" >> {calls}\n")).unwrap();
            mode(Path::new(&path(name)), 0o755);
        }
        // 22.05 knows no "disabled", and the later ones need no cgroups for a controller.
        let old = release.version < SlurmVersion::new(23, 11);
        let plugin = if old { "cgroup/v1" } else { "disabled" };
        fs::write(path("etc/cgroup.conf"), format!("CgroupPlugin={plugin}\n")).unwrap();
        let munged = Guard::spawn(
            Command::new(release.dir.join("sbin/munged"))
                .args(["--foreground", "--num-threads=2"])
                .arg(format!("--key-file={}", path("munge/key")))
                .arg(format!("--socket={}", path("run/munge")))
                .arg(format!("--pid-file={}", path("munge/pid")))
                .arg(format!("--log-file={}", path("munge/log")))
                .arg(format!("--seed-file={}", path("munge/seed"))),
        );
        Self { release, port: 0, slurmctld: None, _munged: munged, dir }
    }

    /// False if another process took the port in the meantime.
    async fn try_start(&mut self, lines: &str) -> bool {
        let socket = self.dir.path().join("run/munge");
        until("munged's socket", async || fs::exists(&socket).unwrap().then_some(())).await;
        self.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::write(self.conf(), format!("{}{lines}", self.base())).unwrap();
        let _ = fs::remove_file(self.dir.path().join("slurmctld.log"));
        let slurmctld = self.release.dir.join("sbin/slurmctld");
        self.slurmctld = Some(Guard::spawn(
            Command::new(slurmctld).args(["-D", "-c"]).env("SLURM_CONF", self.conf()),
        ));
        let scontrol = self.scontrol().await;
        let up = until("slurmctld", async || {
            let ended = self.slurmctld.as_ref().is_some_and(Guard::has_ended);
            if ended { Some(false) } else { scontrol.ping().await.unwrap().then_some(true) }
        });
        let up = up.await;
        let taken = !up && self.log().contains("Address already in use");
        assert!(up || taken, "slurmctld {} ended:\n{}\n{lines}", self.version(), self.log());
        up
    }

    pub(crate) fn version(&self) -> SlurmVersion {
        self.release.version
    }

    /// The controller as the crate under test sees it.
    pub(crate) async fn scontrol(&self) -> Scontrol {
        Scontrol::connect(self.config()).await.unwrap()
    }

    pub(crate) fn config(&self) -> ScontrolConfig {
        let bin = self.release.dir.join("bin");
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
        let port = self.port;
        let dir = self.dir.path().display();
        let plugins = self.release.dir.join("lib/slurm");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        format!(
            "ClusterName=real\nSlurmctldHost={}(127.0.0.1)\nSlurmUser={user}SlurmdUser={user}\
             SlurmctldPort={port}\nPluginDir={}\nAuthType=auth/munge\nCredType=cred/munge\n\
             AuthInfo=socket={dir}/run/munge\nStateSaveLocation={dir}/state\n\
             SlurmdSpoolDir={dir}/run/%n\nSlurmctldPidFile={dir}/run/pid\n\
             SlurmctldLogFile={dir}/slurmctld.log\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
             MailProg=/bin/true\nPrivateData=cloud\nReturnToService=2\nSuspendRate=0\nResumeRate=0\n\
             MessageTimeout=60\n\
             SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,reboot_from_controller\n\
             SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0\n\
             ResumeProgram={dir}/resume\nSuspendProgram={dir}/suspend\nRebootProgram={dir}/reboot\n\
             ResumeFailProgram={dir}/resumefail\n",
            host.trim(),
            plugins.display(),
        )
    }

    /// slurmd of a node, as on a machine that has just booted; it ends with the value.
    pub(crate) fn slurmd(&self, node: &str) -> Guard {
        let sbin = self.release.dir.join("sbin");
        let mut slurmd = Command::new(sbin.join("slurmd"));
        slurmd.args(["-D", "-b", "-N", node, "-d"]).arg(sbin.join("slurmstepd"));
        Guard::spawn(slurmd.env("SLURM_CONF", self.conf()))
    }

    /// What a node's line needs so that slurmds of several nodes can live on this machine.
    pub(crate) fn local(nodes: usize) -> String {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        // Held until all are taken, so that no two are the same.
        let sockets: Vec<TcpListener> =
            (0..nodes).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<String> =
            sockets.iter().map(|socket| socket.local_addr().unwrap().port().to_string()).collect();
        format!("NodeAddr=127.0.0.1 NodeHostname={} Port={}", host.trim(), ports.join(","))
    }

    /// The arguments that one of Slurm's programs was called with, in their order.
    pub(crate) fn calls(&self, program: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("calls").join(program));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("slurmctld.log")).unwrap_or_default()
    }

    /// Sends a signal such as `STOP` to slurmctld.
    pub(crate) fn signal(&self, name: &str) {
        self.slurmctld.as_ref().unwrap().signal(name);
    }
}

/// A process group that ends with this value, and with the thread that started it.
pub(crate) struct Guard(std::cell::RefCell<Child>);

impl Guard {
    fn spawn(command: &mut Command) -> Self {
        let mut guarded = Command::new("setpriv");
        guarded
            .args(["--pdeathsig", "KILL", "--"])
            .arg(command.get_program())
            .args(command.get_args());
        guarded.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let quiet = guarded.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.process_group(0).spawn().unwrap().into())
    }

    fn has_ended(&self) -> bool {
        self.0.borrow_mut().try_wait().unwrap().is_some()
    }

    fn signal(&self, name: &str) {
        let group = format!("kill -s {name} -- -{}", self.0.borrow().id());
        let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.signal("KILL");
        let _ = self.0.borrow_mut().wait();
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
