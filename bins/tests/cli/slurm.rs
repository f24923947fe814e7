//! A slurmctld of the test's own, from the cache that `tests/slurm/fetch` fills.

use slurm_testbed::{Guard, PATIENCE, Release, answer, cgroup, daemons, munged, own_port};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A release, and once it is started munged and slurmctld.
pub(crate) struct Slurm {
    release: Release,
    dir: PathBuf,
    port: u16,
    // Dropped in this order: slurmctld needs munged.
    slurmctld: Option<Guard>,
    munged: Option<Guard>,
}

impl Slurm {
    pub(crate) fn new(series: &str, dir: &Path) -> Self {
        let release = Release::find(series);
        for name in ["run", "state", "etc"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        fs::write(dir.join("etc/cgroup.conf"), cgroup(&release)).unwrap();
        Self { release, dir: dir.to_owned(), port: own_port(), slurmctld: None, munged: None }
    }

    /// Where scontrol is.
    pub(crate) fn bin(&self) -> PathBuf {
        self.release.bin()
    }

    /// slurm.conf with the markers and nothing between them; what slurmctld calls does nothing.
    pub(crate) fn conf_text(&self) -> String {
        let daemons = daemons(&self.release, &self.dir, self.port);
        let cloud = if self.release.is_old() { "PrivateData=cloud\n" } else { "" };
        format!(
            "ClusterName=c1\n{daemons}SelectTypeParameters=CR_CPU\nReturnToService=2\nMessageTimeout=60\n{cloud}\
             SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,reboot_from_controller\n\
             SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0\n\
             ResumeProgram=/bin/true\nSuspendProgram=/bin/true\nResumeFailProgram=/bin/true\n\
             RebootProgram=/bin/true\nSuspendTime=86400\nSuspendTimeout=30\nResumeTimeout=600\n\
             # STARTNODES\n# This section will be replaced\n# ENDNODES\n\
             PartitionName=compute Nodes=ALL MaxTime=INFINITE State=UP Default=YES OverSubscribe=NO\n",
        )
    }

    /// Starts munged and slurmctld, and writes the program that starts slurmctld again.
    pub(crate) fn start(&mut self) {
        self.munged = Some(munged(&self.release, &self.dir));
        let (dir, release) = (self.dir.display(), self.release.dir().display());
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

    /// Ends slurmctld, and keeps it from being started again.
    pub(crate) fn stop(&mut self) {
        self.slurmctld = None;
        assert!(!self.is_up());
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

    pub(crate) fn script(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = self.release.client(program, &self.dir.join("etc/slurm.conf"));
        command.args(arguments).current_dir(self.dir.join("run")).output().unwrap()
    }

    /// What one of Slurm's programs prints; it has to succeed, or to say that there is no such thing.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = answer(|| self.output(program, arguments));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let well = output.status.success() || printed.contains(" not found");
        assert!(well, "{program} {arguments:?}: {output:?}");
        printed
    }

    /// True if slurmctld answers.
    pub(crate) fn is_up(&self) -> bool {
        String::from_utf8_lossy(&self.output("scontrol", &["ping"]).stdout).contains("is UP")
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
pub(crate) fn wait<T>(
    what: &str,
    look: impl FnMut() -> Option<T>,
    story: impl Fn() -> String,
) -> T {
    slurm_testbed::wait(PATIENCE, look)
        .unwrap_or_else(|| panic!("no {what} after {PATIENCE:?}\n{}", story()))
}
