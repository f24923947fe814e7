//! A cluster: munged, slurmctld and a cloud, with our programs in between.

use crate::loopback::Loopback;
use crate::model::Home;
use crate::release::Release;
use crate::test_cloud::{Machine, TestCloud};
use crate::wait::{wait, wait_for};
use cloud_sim::{Instance, State};
use serde_json::Value;
use slurm_testbed::{Guard, answer};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// In the place of a node's name, says that machines boot only when Slurm has been told where they are.
pub(crate) const TOLD: &str = "told";

/// A cluster that runs, until this value is dropped.
#[derive(Debug)]
pub struct Cluster<C = Loopback> {
    release: Release,
    // Dropped in this order: slurmctld needs the cloud's answers and munged.
    slurmctld: RefCell<Option<Guard>>,
    cloud: C,
    _munged: Guard,
    home: Home,
}

/// In the loopback cloud.
impl Cluster {
    /// The cloud's other side.
    #[must_use]
    pub fn cloud(&self) -> &Loopback {
        &self.cloud
    }

    /// The machines that are there.
    #[must_use]
    pub fn machines(&self) -> Vec<Instance> {
        let mut all = self.cloud().instances();
        all.retain(|instance| instance.lifecycle_state.is_live());
        all
    }

    /// Makes a second machine for a node that has one, and gives its id: launched once more as the first was, but for the
    /// host name, of which there is one in a network. No machine of the node boots from here on, and so not this one.
    #[must_use]
    pub fn twin(&self, node: &str) -> String {
        self.fate(node, "never");
        let launches =
            self.cloud().requests().into_iter().filter(|request| {
                request.operation == "LaunchInstance" && request.status == Some(200)
            });
        let mut bodies = launches.map(|request| -> Value {
            serde_json::from_str(&request.body).expect("a launch has an object")
        });
        let body = bodies.rfind(|body| body["displayName"] == node);
        let mut body = body.expect("it was launched");
        if let Some(Value::Object(vnic)) = body.get_mut("createVnicDetails") {
            vnic.remove("hostnameLabel");
        }
        let id = self.cloud().launch(&body);
        self.until("the second machine runs", || {
            let of_id = |machine: &Instance| machine.id == id;
            let twin = self.machines().into_iter().find(of_id);
            twin.is_some_and(|machine| machine.lifecycle_state == State::Running)
        });
        id
    }
}

/// In any cloud.
impl<C: TestCloud> Cluster<C> {
    pub(crate) fn new(release: Release, cloud: C, munged: Guard, home: Home) -> Self {
        Self { release, slurmctld: RefCell::new(None), cloud, _munged: munged, home }
    }

    /// The cloud.
    #[must_use]
    pub fn site(&self) -> &C {
        &self.cloud
    }

    /// Where everything is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.home.dir
    }

    /// The release it runs.
    #[must_use]
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Runs one of Slurm's programs.
    #[must_use]
    pub fn slurm(&self, program: &str, arguments: &[&str]) -> Output {
        let bin = self.release.dir().join("bin");
        // Without a controller they try for minutes.
        Command::new("timeout")
            .arg("60")
            .arg(bin.join(program))
            .args(arguments)
            .env("SLURM_CONF", self.dir().join("etc/slurm.conf"))
            // A job has the environment of its submission, and should find the same release.
            .env("PATH", format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", bin.display()))
            .current_dir(self.dir().join("log"))
            .output()
            .expect("coreutils are installed")
    }

    /// What one of Slurm's programs prints; it is asked again while slurmctld is too busy to answer.
    #[must_use]
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = answer(|| self.slurm(program, arguments));
        let log = || self.log("slurmctld.log");
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}\n{}", log());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Has scontrol do something.
    pub fn scontrol(&self, words: &str) {
        let _ = self.ask("scontrol", &words.split(' ').collect::<Vec<_>>());
    }

    /// Runs one of our programs as an operator would.
    #[must_use]
    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().expect("our own script")
    }

    /// Runs one of our programs, which has to succeed, and returns what it prints.
    #[must_use]
    pub fn well(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}\n{printed}{complaints}\n{}",
            output.status,
            self.story()
        );
        printed
    }

    /// Starts one of our programs and does not wait for it.
    #[must_use]
    pub fn begin(&self, program: &str, arguments: &[&str]) -> Guard {
        Guard::spawn(&self.command(program, arguments))
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.dir().join("bin").join(program));
        command.args(arguments).current_dir(self.dir());
        command
    }

    /// What becomes of the machines of a name from now on: `never` boots, or `ends` at once.
    pub fn fate(&self, node: &str, fate: &str) {
        fs::write(self.dir().join("fate").join(node), fate).expect("a directory of ours");
    }

    /// Machines of all names boot again.
    pub fn clear_fates(&self) {
        let entries = fs::read_dir(self.dir().join("fate")).expect("a directory of ours");
        for entry in entries.flatten().filter(|entry| entry.file_name() != TOLD) {
            fs::remove_file(entry.path()).expect("our own file");
        }
    }

    /// Each node's state.
    #[must_use]
    pub fn nodes(&self) -> BTreeMap<String, String> {
        self.node_fields("State")
    }

    /// A field of each node.
    #[must_use]
    pub fn node_fields(&self, field: &str) -> BTreeMap<String, String> {
        let text = self.ask("scontrol", &["show", "node", "-o"]);
        text.lines().map(|line| (value(line, "NodeName"), value(line, field))).collect()
    }

    /// All that Slurm says of a node.
    #[must_use]
    pub fn node(&self, name: &str) -> String {
        self.ask("scontrol", &["show", "node", "-o", name])
    }

    /// Waits until something is so; tells what went on if it never is.
    pub fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let found = wait_for(self.site().patience(), || condition().then_some(()));
        assert!(found.is_some(), "never seen: {what}\n{}", self.story());
    }

    /// Waits until no node has a machine, in Slurm's eyes and the cloud's.
    pub fn wait_empty(&self) {
        let down = |state: &String| state.contains("POWERED_DOWN") && !state.contains("DOWN+CLOUD");
        self.until("no machine left", || self.nodes().values().all(down) && self.live().is_empty());
    }

    /// The machines that are there, as all clouds can tell of them.
    #[must_use]
    pub fn present(&self) -> Vec<Machine> {
        self.cloud.present()
    }

    /// Their names.
    #[must_use]
    pub fn live(&self) -> Vec<String> {
        self.present().into_iter().map(|machine| machine.name).collect()
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
        let show = |what| {
            let output = self.slurm("scontrol", &["show", what, "-o"]);
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        format!(
            "nodes:\n{}jobs:\n{}machines.log:\n{machines}slurmctld.log:\n{}elastic.log:\n{}{}",
            show("node"),
            show("job"),
            self.log("slurmctld.log"),
            self.log("elastic.log"),
            self.complaints()
        )
    }

    /// What jobs have said on their error output.
    fn complaints(&self) -> String {
        let entries = fs::read_dir(self.dir().join("log")).expect("a directory of ours");
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "err"));
        paths.sort();
        let text = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
        let texts = paths.iter().map(|path| format!("{}:\n{}", path.display(), text(path)));
        texts.collect::<Vec<_>>().concat()
    }

    /// Kills every process of one of our programs in this cluster, and gives their number.
    pub fn kill(&self, program: &str) -> usize {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let config = self.dir().join("etc/startnode.yaml").display().to_string();
        let of_program = processes.filter(|process| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            // All programs are one executable, which is called by these names.
            let mut words = line.split('\0');
            words.next().is_some_and(|name| Path::new(name).ends_with(program))
                && words.any(|word| word == config)
        });
        let pids: Vec<_> = of_program.map(|process| process.file_name()).collect();
        for pid in &pids {
            let kill = format!("kill -s KILL {}", pid.display());
            let _ = Command::new("sh").args(["-c", &kill]).status();
        }
        pids.len()
    }

    /// Has idle nodes go after so many seconds from now on.
    pub fn suspend_after(&self, seconds: u32) {
        self.set("SuspendTime", seconds);
    }

    /// Changes a line of slurm.conf, which slurmctld then reads.
    pub fn set(&self, key: &str, value: impl Display) {
        change_line(&self.dir().join("etc/slurm.conf"), &format!("{key}="), &value);
        self.scontrol("reconfigure");
    }

    /// Changes a line of startnode.yaml.
    pub fn configure(&self, key: &str, value: impl Display) {
        change_line(&self.dir().join("etc/startnode.yaml"), &format!("{key}: "), &value);
    }

    /// Starts slurmctld, if it was stopped, and waits until it answers.
    pub fn start_slurmctld(&self) {
        let _ = fs::remove_file(self.dir().join("run/stopped"));
        self.slurmctld
            .borrow_mut()
            .get_or_insert_with(|| Guard::spawn(&self.command("slurmctld", &[])));
        let up = wait(|| self.slurm("scontrol", &["ping"]).status.success().then_some(()));
        assert!(up.is_some(), "slurmctld does not answer\n{}", self.log("slurmctld.log"));
    }

    /// Ends slurmctld with a signal, such as `KILL`, and keeps it from starting again.
    ///
    /// The signal is repeated, because slurmctld loses one that arrives while it reads its configuration again.
    pub fn stop_slurmctld(&self, signal: &str) {
        fs::write(self.dir().join("run/stopped"), "").expect("a directory of ours");
        let file = self.dir().join("run/slurmctld.pid");
        let mut pid = fs::read_to_string(&file).expect("it runs");
        self.until("slurmctld has ended", || {
            let kill = format!("kill -s {signal} {}", pid.trim());
            let _ = Command::new("sh").args(["-c", &kill]).status();
            let ended = || !Path::new("/proc").join(pid.trim()).exists();
            let _ = wait_for(Duration::from_secs(2), || ended().then_some(()));
            // After a reconfiguration it is another process.
            pid = fs::read_to_string(&file).unwrap_or_else(|_| pid.clone());
            !Path::new("/proc").join(pid.trim()).exists()
        });
    }
}

/// Puts a value behind the beginning of a line.
fn change_line(path: &Path, beginning: &str, value: &dyn Display) {
    let text = fs::read_to_string(path).expect("our own file");
    assert!(text.lines().any(|line| line.starts_with(beginning)), "no {beginning} in\n{text}");
    let changed = text.lines().map(|line| match line.strip_prefix(beginning) {
        Some(_) => format!("{beginning}{value}\n"),
        None => format!("{line}\n"),
    });
    // Whole: one of Slurm's programs may be reading it.
    let new = path.with_extension("new");
    fs::write(&new, changed.collect::<String>()).expect("a directory of ours");
    fs::rename(&new, path).expect("our own file");
}

/// The value of a field such as `State=IDLE`.
pub(crate) fn value(line: &str, field: &str) -> String {
    let found =
        line.split_whitespace().find_map(|word| word.strip_prefix(field)?.strip_prefix('='));
    found.unwrap_or_default().to_owned()
}
