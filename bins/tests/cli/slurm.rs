//! A slurmctld of the test's own, from the cache that `tests/slurm/fetch` fills.

use slurmconf::SlurmVersion;
use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Generous: a machine busy with other tests is no reason to fail.
const PATIENCE: Duration = Duration::from_mins(1);

/// A release, and once it is started munged and slurmctld.
pub(crate) struct Slurm {
    release: PathBuf,
    version: SlurmVersion,
    dir: PathBuf,
    port: u16,
    // Dropped in this order: slurmctld needs munged.
    slurmctld: Option<Guard>,
    munged: Option<Guard>,
}

impl Slurm {
    pub(crate) fn new(series: &str, dir: &Path) -> Self {
        let release = release(series);
        let version = fs::read_to_string(release.join("version")).unwrap_or_else(|error| {
            panic!(
                "no Slurm {series} in {}: {error}\nrun tests/slurm/fetch {series}",
                release.display()
            )
        });
        for name in ["munge", "run", "spool", "etc"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let version: SlurmVersion = version.parse().unwrap();
        // 22.05 knows no "disabled", and the later ones need no cgroups for a controller.
        let plugin = if version < SlurmVersion::new(23, 11) { "cgroup/v1" } else { "disabled" };
        fs::write(dir.join("etc/cgroup.conf"), format!("CgroupPlugin={plugin}\n")).unwrap();
        Self { release, version, dir: dir.to_owned(), port, slurmctld: None, munged: None }
    }

    /// Where scontrol is.
    pub(crate) fn bin(&self) -> PathBuf {
        self.release.join("bin")
    }

    /// slurm.conf with the markers and nothing between them; what slurmctld calls does nothing.
    pub(crate) fn conf_text(&self) -> String {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let (dir, port) = (self.dir.display(), self.port);
        let old = self.version < SlurmVersion::new(23, 11);
        let cloud = if old { "PrivateData=cloud\n" } else { "" };
        format!(
            "ClusterName=c1\nSlurmctldHost={}(127.0.0.1)\nSlurmUser={user}\nSlurmdUser={user}\n\
             SlurmctldPort={port}\nPluginDir={}\nAuthType=auth/munge\nCredType=cred/munge\n\
             AuthInfo=socket={dir}/run/munge\nStateSaveLocation={dir}/spool\nSlurmdSpoolDir={dir}/run/%n\n\
             SlurmctldPidFile={dir}/run/slurmctld.pid\nSlurmctldLogFile={dir}/run/slurmctld.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\nMailProg=/bin/true\nReturnToService=2\nMessageTimeout=60\n{cloud}\
             SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,reboot_from_controller\n\
             SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0\n\
             ResumeProgram=/bin/true\nSuspendProgram=/bin/true\nResumeFailProgram=/bin/true\n\
             RebootProgram=/bin/true\nSuspendTime=86400\nSuspendTimeout=30\nResumeTimeout=600\n\
             # STARTNODES\n# This section will be replaced\n# ENDNODES\n\
             PartitionName=compute Nodes=ALL MaxTime=INFINITE State=UP Default=YES OverSubscribe=NO\n",
            host.trim(),
            self.release.join("lib/slurm").display(),
            user = String::from_utf8_lossy(&user).trim(),
        )
    }

    /// Starts munged and slurmctld, and writes the program that starts slurmctld again.
    pub(crate) fn start(&mut self) {
        self.munged = Some(munged(&self.release, &self.dir));
        let (dir, release) = (self.dir.display(), self.release.display());
        let environment = format!("export PATH=/usr/bin:/bin SLURM_CONF={dir}/etc/slurm.conf\n");
        // Starts slurmctld again whenever it ends, as systemd would.
        self.script(
            "keep",
            &format!(
                "{environment}while :; do setpriv --pdeathsig KILL {release}/sbin/slurmctld -D\n\
                 echo ended >> {dir}/run/ended\nsleep 0.05\ndone\n"
            ),
        );
        // Fails when slurmctld has ended several times.
        self.script(
            "restart",
            &format!(
                "{environment}ended() {{ wc -l < {dir}/run/ended; }}\ntouch {dir}/run/ended\nbefore=$(ended)\n\
                 pid=$(cat {dir}/run/slurmctld.pid)\nkill $pid 2>/dev/null\n\
                 while kill -0 $pid 2>/dev/null; do sleep 0.05; done\n\
                 while [ $(ended) -lt $((before + 4)) ]; do\n\
                 {release}/bin/scontrol ping | grep -q 'is UP' && exit 0\nsleep 0.05\ndone\nexit 1\n"
            ),
        );
        self.slurmctld = Some(Guard::spawn(&self.with_hosts("keep")));
        self.wait();
    }

    /// A script that knows the names of the stage's hosts file, where there is one: slurmctld looks each node up by name that
    /// is not elastic, and tries for ten seconds.
    fn with_hosts(&self, script: &str) -> Command {
        let (script, hosts) = (self.dir.join(script), self.dir.join("hosts"));
        if !hosts.exists() {
            return Command::new(script);
        }
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-eu", "-c"]);
        command.arg("mount --bind \"$1\" /etc/hosts\nexec \"$0\"").arg(script).arg(hosts);
        command
    }

    /// Puts programs into `bin` of the stage that stand before the real ones.
    pub(crate) fn fake(&self, fake: &Fake<'_>) {
        fs::create_dir_all(self.dir.join("bin")).unwrap();
        let (real, dir) = (self.bin(), self.dir.display());
        let setup = format!("REAL={} DIR={dir}\n", real.display());
        self.script("bin/scontrol", &format!("{setup}{}\n", fake.scontrol));
        self.script("bin/sbatch", &format!("{setup}{}\n", fake.sbatch));
        self.script("bin/squeue", &format!("{setup}exec \"$REAL/squeue\" \"$@\"\n"));
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What one of Slurm's programs prints.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        // Without a controller they try for minutes.
        let output = Command::new("timeout")
            .arg("60")
            .arg(self.bin().join(program))
            .args(arguments)
            .env("SLURM_CONF", self.dir.join("etc/slurm.conf"))
            .current_dir(self.dir.join("run"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// True if slurmctld answers.
    pub(crate) fn is_up(&self) -> bool {
        self.ask("scontrol", &["ping"]).contains("is UP")
    }

    /// A field of what slurmctld says of a node.
    pub(crate) fn node(&self, node: &str, field: &str) -> String {
        let text = self.ask("scontrol", &["show", "node", "-o", node]);
        let found =
            text.split_whitespace().find_map(|word| word.strip_prefix(field)?.strip_prefix('='));
        found.unwrap_or_default().to_owned()
    }

    fn wait(&mut self) {
        wait(
            "slurmctld",
            || self.is_up().then_some(()),
            || fs::read_to_string(self.dir.join("run/slurmctld.log")).unwrap_or_default(),
        );
    }
}

/// What stands before Slurm's programs: shell that knows the real ones in `REAL` and the stage in `DIR`.
pub(crate) struct Fake<'a> {
    pub(crate) scontrol: &'a str,
    pub(crate) sbatch: &'a str,
}

/// Asks again and again, up to a deadline.
#[expect(clippy::disallowed_methods, reason = "the one place that sleeps, between two looks")]
pub(crate) fn wait<T>(
    what: &str,
    mut look: impl FnMut() -> Option<T>,
    story: impl Fn() -> String,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what} after {PATIENCE:?}\n{}", story());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn release(series: &str) -> PathBuf {
    let path =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || path("HOME").expect("HOME is set").join(".cache");
    let cache = || path("XDG_CACHE_HOME").unwrap_or_else(home).join("slurm-elastic");
    path("SLURM_ELASTIC_CACHE").unwrap_or_else(cache).join("slurm").join(series)
}

fn munged(release: &Path, dir: &Path) -> Guard {
    let path = |name: &str| dir.join(name).display().to_string();
    let mode = |name: &str, mode| {
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("munge", 0o700);
    mode("run", 0o755);
    let mut key = [0; 128];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut key).unwrap();
    fs::write(path("munge/key"), key).unwrap();
    mode("munge/key", 0o600);
    let mut munged = Command::new(release.join("sbin/munged"));
    munged
        .args(["--foreground", "--num-threads=2"])
        .arg(format!("--key-file={}", path("munge/key")))
        .arg(format!("--socket={}", path("run/munge")))
        .arg(format!("--pid-file={}", path("munge/pid")))
        .arg(format!("--log-file={}", path("munge/log")))
        .arg(format!("--seed-file={}", path("munge/seed")));
    let munged = Guard::spawn(&munged);
    let socket = path("run/munge");
    wait("munged's socket", || fs::exists(&socket).unwrap().then_some(()), String::new);
    munged
}

/// A process group that ends with this value, and with the thread that started it.
pub(crate) struct Guard(Child);

impl Guard {
    pub(crate) fn spawn(command: &Command) -> Self {
        let mut guarded = Command::new("setpriv");
        guarded
            .args(["--pdeathsig", "KILL", "--"])
            .arg(command.get_program())
            .args(command.get_args())
            .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        Self(guarded.spawn().unwrap())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let group = format!("kill -s KILL -- -{}", self.0.id());
        let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}
