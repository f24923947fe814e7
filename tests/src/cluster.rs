//! A cluster: munged, slurmctld and the loopback cloud, with our programs in between.

use crate::child::{Guard, wait};
use crate::conf::{Times, slurm_conf};
use crate::network;
use crate::release::Release;
use cloud_sim::{Admin, Cloud, Settings, Timing};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// What a cluster is to be.
#[derive(Debug)]
pub struct Builder {
    release: Release,
    limits: String,
    times: Times,
    settings: Settings,
    extra: String,
    boot: String,
}

/// A cluster that runs, until this value is dropped.
#[derive(Debug)]
pub struct Cluster {
    release: Release,
    // Dropped in this order: the machines go with the cloud, slurmctld needs munged, and all their directory.
    cloud: Cloud,
    _slurmctld: Guard,
    _munged: Guard,
    dir: TempDir,
}

impl Builder {
    /// So many nodes in the first availability domain.
    #[must_use]
    pub fn nodes(self, count: u32) -> Self {
        self.limits(&format!("VM.Standard2.1: {{1: {count}}}\n"))
    }

    /// What limits.yaml says.
    #[must_use]
    pub fn limits(mut self, text: &str) -> Self {
        text.clone_into(&mut self.limits);
        self
    }

    /// How many seconds a node is idle before it goes.
    #[must_use]
    pub fn suspend_time(mut self, seconds: u32) -> Self {
        self.times.suspend = seconds;
        self
    }

    /// How many seconds a node may take to come.
    #[must_use]
    pub fn resume_timeout(mut self, seconds: u32) -> Self {
        self.times.resume_timeout = seconds;
        self
    }

    /// How the cloud is made.
    #[must_use]
    pub fn cloud(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// More lines for startnode.yaml.
    #[must_use]
    pub fn config(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.extra);
        self
    }

    /// Machines start, and never boot.
    #[must_use]
    pub fn never_boots(mut self) -> Self {
        "never".clone_into(&mut self.boot);
        self
    }

    /// Starts it all and waits until slurmctld answers.
    #[must_use]
    pub fn start(mut self) -> Cluster {
        network::enter();
        let dir = directories();
        let munged = munged(&self.release, dir.path());
        self.settings.state = Some(dir.path().join("cloud"));
        self.settings.machine_up = vec![dir.path().join("bin/machine").display().to_string()];
        self.programs(dir.path());
        let cloud = start_cloud(self.settings.clone());
        self.write(dir.path(), &cloud);
        finish(dir.path(), &["--no-restart", "--quiet"]);
        let slurmctld = slurmctld(&self.release, dir.path());
        let mut cluster =
            Cluster { release: self.release, cloud, _slurmctld: slurmctld, _munged: munged, dir };
        cluster.wait_for_slurmctld();
        cluster
    }

    fn write(&self, dir: &Path, cloud: &Cloud) {
        cloud.credentials().write_config(&dir.join("oci")).expect("a directory of ours");
        let text = slurm_conf(&self.release, dir, self.times, &dir.join("bin"));
        fs::write(dir.join("etc/slurm.conf"), text).expect("a directory of ours");
        // 22.05 knows no "disabled", and the later ones need no cgroups here.
        let old = self.release.version() < slurmconf::SlurmVersion::new(23, 11);
        let plugin = if old { "cgroup/v1" } else { "disabled" };
        fs::write(dir.join("etc/cgroup.conf"), format!("CgroupPlugin={plugin}\n"))
            .expect("a directory of ours");
        fs::write(dir.join("limits.yaml"), &self.limits).expect("a directory of ours");
        let (endpoint, dir_name) = (cloud.endpoint(), dir.display());
        let slurm = self.release.dir().join("bin");
        let text = format!(
            "csp: oracle\nregion: us-phoenix-1\ncompartment_id: ocid1.compartment.oc1..aaaacomp\n\
             subnet_id: ocid1.subnet.oc1.phx.test\nad_root: 'Uocm:PHX-AD-'\ncluster_id: c1\n\
             endpoint: {endpoint}\nconfig_file: {dir_name}/oci/config\nslurm_conf: {dir_name}/etc/slurm.conf\n\
             slurm_bin: {}\nrestart_command: [{dir_name}/bin/restart]\n{}\n\
             elastic: {{state_dir: {dir_name}/elastic, log: {dir_name}/log/elastic.log, cooldown: 5s, requests_per_second: 200}}\n",
            slurm.display(),
            self.extra
        );
        fs::write(dir.join("etc/startnode.yaml"), text).expect("a directory of ours");
    }

    /// Wrappers that say where the configuration is; all else is as slurmctld has it.
    fn programs(&self, dir: &Path) {
        let config = dir.join("etc/startnode.yaml");
        let names =
            ["startnode", "stopnode", "rebuild", "finish", "resize", "reconcile", "listnodes"];
        let mut scripts: BTreeMap<String, String> = names
            .iter()
            .map(|name| {
                let program = program(name);
                let call =
                    format!("exec {} --config {} \"$@\"", program.display(), config.display());
                ((*name).to_owned(), call)
            })
            .collect();
        let call = format!(
            "exec {} --config {} --failed \"$@\"",
            program("startnode").display(),
            config.display()
        );
        scripts.insert("startnode-failed".to_owned(), call);
        let tree = self.release.dir().display();
        let conf = dir.join("etc/slurm.conf");
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("slurm");
        let environment = format!(
            "export SLURM_TREE={tree} SLURM_CONF={} BOOT={} PATH=/usr/bin:/bin:/usr/sbin:/sbin\n",
            conf.display(),
            self.boot
        );
        for name in ["machine", "prolog"] {
            let call = format!("{environment}exec {} \"$@\"", here.join(name).display());
            scripts.insert(name.to_owned(), call);
        }
        let pid = dir.join("run/slurmctld.pid");
        let restart = format!(
            "kill \"$(cat {0})\" && while kill -0 \"$(cat {0})\" 2>/dev/null; do sleep 0.1; done",
            pid.display()
        );
        scripts.insert("restart".to_owned(), restart);
        // Starts slurmctld again whenever it ends, as systemd would.
        let keep = format!("{environment}while :; do {tree}/sbin/slurmctld -D; sleep 0.2; done");
        scripts.insert("slurmctld".to_owned(), keep);
        for (name, text) in scripts {
            let path = dir.join("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a directory of ours");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
        }
    }
}

/// One of our programs, beside the test that runs.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let folder = test.parent().and_then(Path::parent).expect("target/debug/deps");
    let path = folder.join(name);
    assert!(path.is_file(), "no {}; run cargo build -p bins", path.display());
    path
}

fn directories() -> TempDir {
    // Short, because a socket's path is at most 107 bytes, and open to munged's strict eyes.
    let dir = TempDir::with_prefix_in("se", "/tmp").expect("a temporary directory");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a directory of ours");
    };
    mode(dir.path(), 0o755);
    for name in ["munge", "run", "state", "etc", "bin", "log", "spool", "cloud", "oci"] {
        fs::create_dir(dir.path().join(name)).expect("a directory of ours");
        mode(&dir.path().join(name), if name == "munge" { 0o700 } else { 0o755 });
    }
    dir
}

fn munged(release: &Release, dir: &Path) -> Guard {
    let path = |name: &str| dir.join(name).display().to_string();
    let mut key = [0; 128];
    let mut random = fs::File::open("/dev/urandom").expect("Linux has it");
    random.read_exact(&mut key).expect("it has no end");
    fs::write(path("munge/key"), key).expect("a directory of ours");
    fs::set_permissions(path("munge/key"), fs::Permissions::from_mode(0o600)).expect("our file");
    let mut munged = Command::new(release.dir().join("sbin/munged"));
    munged
        .args(["--foreground", "--num-threads=4"])
        .arg(format!("--key-file={}", path("munge/key")))
        .arg(format!("--socket={}", path("run/munge")))
        .arg(format!("--pid-file={}", path("munge/pid")))
        .arg(format!("--log-file={}", path("munge/log")))
        .arg(format!("--seed-file={}", path("munge/seed")));
    let munged = Guard::spawn(&munged);
    let socket = path("run/munge");
    wait(|| fs::exists(&socket).unwrap_or(false).then_some(())).expect("munged's socket");
    munged
}

fn start_cloud(settings: Settings) -> Cloud {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(Cloud::start(settings)).expect("the loopback cloud")
}

fn finish(dir: &Path, arguments: &[&str]) {
    let output = Command::new(dir.join("bin/finish")).args(arguments).current_dir(dir).output();
    let output = output.expect("our own script");
    assert!(output.status.success(), "finish {arguments:?}: {output:?}");
}

fn slurmctld(release: &Release, dir: &Path) -> Guard {
    let _ = release;
    Guard::spawn(&Command::new(dir.join("bin/slurmctld")))
}

impl Cluster {
    /// A cluster on a release such as `24.11`, whose nodes come and go within seconds.
    #[must_use]
    pub fn builder(series: &str) -> Builder {
        let mut settings = Settings::default();
        settings.subnets.truncate(1);
        for subnet in &mut settings.subnets {
            "ocid1.subnet.oc1.phx.test".clone_into(&mut subnet.id);
            "10.77.1.0/24".clone_into(&mut subnet.cidr);
        }
        settings.timing = Timing {
            vnic: 0.2,
            provision: 0.5,
            start: 0.5,
            stop: 0.5,
            terminate: 0.5,
            fail: 0.5,
            ..Timing::default()
        };
        Builder {
            release: Release::find(series),
            limits: String::new(),
            times: Times { suspend: 3, resume_timeout: 60 },
            settings,
            extra: String::new(),
            boot: "0".to_owned(),
        }
    }

    /// The cloud's other side.
    #[must_use]
    pub fn cloud(&self) -> Admin {
        self.cloud.admin()
    }

    /// Where everything is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The release it runs.
    #[must_use]
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Runs one of Slurm's programs.
    #[must_use]
    pub fn slurm(&self, program: &str, arguments: &[&str]) -> Output {
        // Without a controller they try for minutes.
        Command::new("timeout")
            .arg("60")
            .arg(self.release.dir().join("bin").join(program))
            .args(arguments)
            .env("SLURM_CONF", self.dir().join("etc/slurm.conf"))
            .current_dir(self.dir().join("log"))
            .output()
            .expect("coreutils are installed")
    }

    /// What one of Slurm's programs prints.
    #[must_use]
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.slurm(program, arguments);
        let log = || self.log("slurmctld.log");
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}\n{}", log());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs one of our programs as an operator would.
    #[must_use]
    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        Command::new(self.dir().join("bin").join(program))
            .args(arguments)
            .current_dir(self.dir())
            .output()
            .expect("our own script")
    }

    /// Submits a batch job and gives its number.
    #[must_use]
    pub fn sbatch(&self, arguments: &[&str]) -> u32 {
        let printed = self.ask("sbatch", &[&["--parsable"], arguments].concat());
        printed.trim().parse().unwrap_or_else(|_| panic!("sbatch printed {printed:?}"))
    }

    /// A field of what `scontrol show job` says.
    #[must_use]
    pub fn job(&self, id: u32, field: &str) -> String {
        let text = self.ask("scontrol", &["show", "job", "-o", &id.to_string()]);
        value(&text, field)
    }

    /// Each node's state.
    #[must_use]
    pub fn nodes(&self) -> BTreeMap<String, String> {
        let text = self.ask("scontrol", &["show", "node", "-o"]);
        text.lines().map(|line| (value(line, "NodeName"), value(line, "State"))).collect()
    }

    /// Waits until a job is in a state; tells what went on if it never is.
    pub fn wait_job(&self, id: u32, state: &str) {
        let found = wait(|| (self.job(id, "JobState") == state).then_some(()));
        assert!(found.is_some(), "job {id} is not {state}\n{}", self.story());
    }

    /// Waits until no node has a machine, in Slurm's eyes and the cloud's.
    pub fn wait_empty(&self) {
        let down = |state: &String| state.contains("POWERED_DOWN") || state.contains("FUTURE");
        let found = wait(|| {
            let gone = self.live().is_empty() && self.nodes().values().all(down);
            gone.then_some(())
        });
        assert!(found.is_some(), "machines are left\n{}", self.story());
    }

    /// The names of the machines that are there.
    #[must_use]
    pub fn live(&self) -> Vec<String> {
        let all = self.cloud().instances();
        let live = all.iter().filter(|instance| instance.lifecycle_state.is_live());
        live.map(|instance| instance.display_name.clone()).collect()
    }

    /// The text of a log.
    #[must_use]
    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.dir().join("log").join(name)).unwrap_or_default()
    }

    /// Everything that tells what went on.
    #[must_use]
    pub fn story(&self) -> String {
        let machines =
            fs::read_to_string(self.dir().join("cloud/machines.log")).unwrap_or_default();
        let nodes = self.slurm("scontrol", &["show", "node", "-o"]).stdout;
        let jobs = self.slurm("scontrol", &["show", "job", "-o"]).stdout;
        format!(
            "nodes:\n{}jobs:\n{}elastic.log:\n{}machines.log:\n{machines}slurmctld.log:\n{}",
            String::from_utf8_lossy(&nodes),
            String::from_utf8_lossy(&jobs),
            self.log("elastic.log"),
            self.log("slurmctld.log")
        )
    }

    fn wait_for_slurmctld(&mut self) {
        let ended = self._slurmctld.has_ended();
        let up = wait(|| self.slurm("scontrol", &["ping"]).status.success().then_some(()));
        assert!(up.is_some() && !ended, "slurmctld does not answer\n{}", self.log("slurmctld.log"));
    }
}

/// The value of a field such as `State=IDLE`.
fn value(line: &str, field: &str) -> String {
    let found =
        line.split_whitespace().find_map(|word| word.strip_prefix(field)?.strip_prefix('='));
    found.unwrap_or_default().to_owned()
}
