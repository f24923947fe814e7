//! A cloud, the files of a cluster, and the programs that are called on them.

use crate::slurm::{Fake, Slurm};
use cloud_sim::{Admin, Cloud, CloudSettings, Fault, Instance, Timing};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;

pub(crate) const PROGRAMS: [&str; 11] = [
    "cost",
    "explain",
    "finish",
    "listnodes",
    "nodewatch",
    "rebuild",
    "reconcile",
    "resize",
    "startnode",
    "stopnode",
    "timeline",
];

/// The compiled program by one of its names: a hard link, as `./install` makes them.
pub(crate) fn program(name: &str) -> &'static str {
    static LINKS: LazyLock<BTreeMap<&'static str, String>> = LazyLock::new(links);
    LINKS.get(name).unwrap_or_else(|| panic!("there is no program {name}"))
}

/// Makes the links, or makes them anew when the program was compiled again.
fn links() -> BTreeMap<&'static str, String> {
    let executable = env!("CARGO_BIN_EXE_slurm-elastic");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    fs::create_dir_all(&folder).unwrap();
    let file = |path: &Path| fs::metadata(path).map(|found| found.ino());
    let link = |name: &'static str| {
        let path = folder.join(name);
        if file(&path).ok() != file(executable.as_ref()).ok() {
            // Other tests are doing the same.
            let new = folder.join(format!("{name}.{}", std::process::id()));
            fs::hard_link(executable, &new).unwrap();
            fs::rename(&new, &path).unwrap();
            let _ = fs::remove_file(&new);
        }
        (name, path.display().to_string())
    };
    bins::multicall::names().into_iter().chain([bins::multicall::NAME]).map(link).collect()
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: &std::process::Output, dir: &Path) -> Self {
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes).replace(&dir.display().to_string(), "DIR")
        };
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// The output, if the program ended with this code.
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// The output, if each of these texts is on standard error.
    pub(crate) fn saying(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "nothing about {word:?}: {self:#?}");
        }
        self
    }

    /// All of it, for a snapshot.
    pub(crate) fn text(&self) -> String {
        let Self { code, stdout, stderr } = self;
        let code = code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        format!("exit code {code}\n--- standard output\n{stdout}--- standard error\n{stderr}")
    }
}

/// The files and the cloud of a cluster called c1.
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) slurm: Slurm,
    cloud: Cloud,
}

impl Fixture {
    /// Nodes vm-standard2-1-ad1-[0001-0004], as `finish` writes them; slurmctld is not running.
    pub(crate) fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    /// A fixture with another cloud and another slurm.conf.
    pub(crate) fn with(
        change: impl FnOnce(&mut CloudSettings),
        conf: impl FnOnce(&mut String),
    ) -> Self {
        Self::on("24.11", change, conf)
    }

    /// A fixture on a given release of Slurm.
    pub(crate) fn on(
        series: &str,
        change: impl FnOnce(&mut CloudSettings),
        conf: impl FnOnce(&mut String),
    ) -> Self {
        let dir = TempDir::with_prefix_in("cli", "/tmp").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut settings = CloudSettings { timing: quick(), ..CloudSettings::default() };
        change(&mut settings);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let cloud = runtime.block_on(Cloud::start(settings)).unwrap();
        cloud.credentials().write_config(&dir.path().join("home/.oci")).unwrap();
        let slurm = Slurm::new(series, dir.path());
        let mut text = slurm.conf_text();
        conf(&mut text);
        let stage = Self { dir, slurm, cloud };
        stage.write("etc/slurm.conf", &text);
        stage.write("limits.yaml", "VM.Standard2.1: {1: 4}\n");
        stage.write("home/bootstrap.sh", "#!/bin/sh\nsystemctl start slurmd\n");
        stage.write("home/opc_authorized_keys", "ssh-ed25519 AAAA operator\n");
        stage.write("startnode.yaml", &stage.configuration());
        fs::create_dir(stage.path("log")).unwrap();
        stage
    }

    /// A fixture with slurmctld running, on the nodes that limits.yaml gives.
    pub(crate) fn running(mut self) -> Self {
        let section = self.run("finish", &["--print"]).with_code(0).stdout;
        let text = self.read("etc/slurm.conf");
        self.write("etc/slurm.conf", &text.replace("# This section will be replaced\n", &section));
        self.slurm.start();
        self.cloud().clear_requests();
        self
    }

    pub(crate) fn configuration(&self) -> String {
        let dir = self.dir.path().display();
        format!(
            "csp: oracle\nregion: us-phoenix-1\ncompartment_id: ocid1.compartment.oc1..aaaacomp\n\
             vcn_id: ocid1.vcn.oc1.phx.aaaavcn\nad_root: 'Uocm:PHX-AD-'\nansible_branch: 6\ncluster_id: c1\n\
             endpoint: {}\nslurm_bin: {}\nslurm_conf: {dir}/etc/slurm.conf\nrestart_command: [{dir}/restart]\n\
             elastic: {{state_dir: {dir}/state, log: {dir}/log/elastic.log, cooldown: 5s, requests_per_second: 500}}\n",
            self.cloud.endpoint(),
            self.slurm.bin().display(),
        )
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The call as an operator makes it, with nothing in its environment but a home.
    pub(crate) fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program(name));
        command
            .arg("--config")
            .arg(self.path("startnode.yaml"))
            .args(arguments)
            .env_clear()
            .env("HOME", self.path("home"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, name: &str, arguments: &[&str]) -> Ended {
        Ended::of(&self.command(name, arguments).output().unwrap(), self.dir.path())
    }

    /// The cloud's other side.
    pub(crate) fn cloud(&self) -> Admin {
        self.cloud.admin()
    }

    /// From now on slurmctld does not answer.
    pub(crate) fn silence(&self) {
        let scontrol = "[ \"$1\" = --version ] && exec \"$REAL/scontrol\" --version\nexit 1";
        self.slurm.fake(&Fake { scontrol, sbatch: "exit 1" });
        let (real, ours) = (self.slurm.bin(), self.path("bin"));
        let (real, ours) = (real.display().to_string(), ours.display().to_string());
        self.write("startnode.yaml", &self.configuration().replace(&real, &ours));
    }

    /// Names of the machines that are there.
    pub(crate) fn live(&self) -> Vec<String> {
        let all = self.cloud().instances();
        let live = all.into_iter().filter(|instance| instance.lifecycle_state.is_live());
        live.map(|instance| instance.display_name).collect()
    }

    /// The machine of a node, if there is one.
    pub(crate) fn machine(&self, node: &str) -> Instance {
        let all = self.cloud().instances();
        let mut fitting = all
            .into_iter()
            .filter(|instance| instance.display_name == node && instance.lifecycle_state.is_live());
        fitting.next().unwrap_or_else(|| panic!("{node} has no machine"))
    }

    /// What requests would have changed something in the cloud.
    pub(crate) fn changes(&self) -> Vec<String> {
        let all = self.cloud().requests();
        let changing = all.into_iter().filter(|request| request.method != "GET");
        changing.map(|request| format!("{} {}", request.method, request.target)).collect()
    }

    /// Every file with its text, so that two moments can be compared; what a running slurmctld writes is left out.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, (u64, Vec<u8>)> {
        let mut files = BTreeMap::new();
        for folder in ["etc", "home"] {
            collect(&self.path(folder), &mut files);
        }
        for name in ["limits.yaml", "startnode.yaml"] {
            let path = self.path(name);
            if let Ok(text) = fs::read(&path) {
                files.insert(path, (0, text));
            }
        }
        files
    }
}

impl Drop for Fixture {
    /// A body that drifts under one token would be launched a second time and not be noticed.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.cloud().token_mismatches(), 0, "a token had two bodies");
        }
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, (u64, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            let inode = fs::metadata(&path).unwrap().ino();
            files.insert(path.clone(), (inode, fs::read(&path).unwrap()));
        }
    }
}

/// An answer of the cloud that is no success.
pub(crate) fn answer(status: u16, code: &str, message: &str) -> Fault {
    let (code, message) = (code.to_owned(), message.to_owned());
    Fault::Answer { status, code, message, headers: BTreeMap::new() }
}

/// Everything takes a moment.
fn quick() -> Timing {
    Timing {
        vnic: 0.05,
        provision: 0.1,
        start: 0.1,
        stop: 0.1,
        terminate: 0.1,
        fail: 0.1,
        image: 0.1,
        ..Timing::default()
    }
}
