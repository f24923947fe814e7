//! A private slurmctld, started from the cache that `tests/slurm/fetch` fills.

use slurm_testbed::{Guard, PATIENCE, Release, answer, cgroup, daemons, munged, own_port};
use slurmconf::SlurmVersion;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Output,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A directory with munged running, and slurmctld once it is started. Both end with it.
pub(crate) struct Testbed {
    release: Release,
    port: u16,
    // Dropped in this order: slurmctld needs munged, and both their directory.
    slurmctld: Option<Guard>,
    _munged: Guard,
    dir: TempDir,
}

impl Testbed {
    pub(crate) fn new(release: Release) -> Self {
        // Short, for munged's socket.
        let dir = TempDir::with_prefix_in("sc", "/tmp").unwrap();
        let munged = munged(&release, dir.path());
        for name in ["state", "etc", "bin"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let bed = Self { release, port: 0, slurmctld: None, _munged: munged, dir };
        bed.write("cgroup.conf", &cgroup(&bed.release));
        bed
    }

    pub(crate) fn version(&self) -> SlurmVersion {
        self.release.version()
    }

    /// Writes a file beside slurm.conf.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join("etc").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The path of a program that does nothing.
    pub(crate) fn program(&self, name: &str) -> String {
        let path = self.dir.path().join("bin").join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Starts slurmctld on `text` and what it needs besides, waits until it answers, and says how long that took.
    pub(crate) fn start(&mut self, text: &str) -> Duration {
        for _ in 0..5 {
            if let Some(time) = self.try_start(text) {
                return time;
            }
        }
        panic!("five free ports were taken by others:\n{}", self.log());
    }

    /// `None` if another process took the port in the meantime.
    fn try_start(&mut self, text: &str) -> Option<Duration> {
        self.port = own_port();
        self.write("slurm.conf", &format!("{}{text}", self.base()));
        // Nothing is carried over from the one before.
        self.slurmctld = None;
        let state = self.dir.path().join("state");
        fs::remove_dir_all(&state).unwrap();
        fs::create_dir(&state).unwrap();
        let _ = fs::remove_file(self.dir.path().join("run/slurmctld.log"));
        let mut slurmctld = self.release.daemon("slurmctld", &self.conf());
        slurmctld.args(["-D", "-c"]);
        let started = Instant::now();
        self.slurmctld = Some(Guard::spawn(&slurmctld));
        let answers = || self.command("scontrol", &["ping"]).status.success();
        let up = wait("slurmctld", || {
            let ended = self.slurmctld.as_ref().and_then(Guard::ended);
            if ended.is_some() { Some(false) } else { answers().then_some(true) }
        });
        if !up && self.log().contains("Address already in use") {
            return None;
        }
        assert!(up, "slurmctld {} ended:\n{}\n{text}", self.version(), self.log());
        Some(started.elapsed())
    }

    /// Gives the running slurmctld another configuration.
    pub(crate) fn reconfigure(&self, text: &str) {
        self.write("slurm.conf", &format!("{}{text}", self.base()));
        self.ask("scontrol", &["reconfigure"]);
    }

    fn conf(&self) -> PathBuf {
        self.dir.path().join("etc/slurm.conf")
    }

    /// What any slurmctld needs to run here.
    fn base(&self) -> String {
        let daemons = daemons(&self.release, self.dir.path(), self.port);
        format!("{daemons}SelectTypeParameters=CR_CPU_Memory\n")
    }

    /// What a client command prints.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = answer(|| self.command(program, arguments));
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}\n{}", self.log());
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Output {
        self.release.client(program, &self.conf()).args(arguments).output().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("run/slurmctld.log")).unwrap_or_default()
    }

    /// The log's lines that an operator would have to worry about.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let harmless = [
            // A first start finds no state to recover.
            "state file",
            "Trying backup state save file",
            // The machine is busy with other tests.
            "High latency for 1000 calls to gettimeofday",
            "very large processing time",
            // The testbed switches core dumps off.
            "Core limit is only",
        ];
        let worries = ["error", "fatal", "defunct", "warning"];
        let log = self.log();
        log.lines()
            .filter(|line| worries.iter().any(|word| line.to_lowercase().contains(word)))
            .filter(|line| !harmless.iter().any(|phrase| line.contains(phrase)))
            .map(str::to_owned)
            .collect()
    }
}

/// Asks again and again, up to a deadline.
pub(crate) fn wait<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    slurm_testbed::wait(PATIENCE, look).unwrap_or_else(|| panic!("no {what} after {PATIENCE:?}"))
}
