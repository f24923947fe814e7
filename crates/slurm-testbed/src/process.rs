//! Child processes, and waiting.

use std::cell::RefCell;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The usual deadline, generous for a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Polls until there is a result; `None` after the deadline.
#[expect(clippy::disallowed_methods, reason = "the one place that sleeps, between two polls")]
pub fn wait<T>(patience: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = poll() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A process group that is killed when this value is dropped or its thread ends.
#[derive(Debug)]
pub struct Guard(RefCell<Child>);

impl Guard {
    /// Starts a program, without its output.
    #[must_use]
    pub fn spawn(command: &Command) -> Self {
        let mut guarded = Command::new("setpriv");
        if let Some(folder) = command.get_current_dir() {
            guarded.current_dir(folder);
        }
        guarded
            // Slurm's daemons raise the soft limit on core dumps to the hard one; a core goes to the working directory.
            .args(["--pdeathsig", "KILL", "--", "prlimit", "--core=0", "--"])
            .arg(command.get_program())
            .args(command.get_args())
            .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let child = guarded.spawn().unwrap_or_else(|error| panic!("{guarded:?}: {error}"));
        Self(RefCell::new(child))
    }

    /// The exit status, once the process has ended.
    #[must_use]
    pub fn ended(&self) -> Option<ExitStatus> {
        self.0.borrow_mut().try_wait().expect("our own child")
    }

    /// Sends a signal, such as `STOP`, to the process group.
    pub fn signal(&self, name: &str) {
        // Not every machine has the program kill; shells have it built in.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn a_daemon_that_crashes_leaves_no_core_dump() {
        let folder = TempDir::new().expect("temporary files can be written");
        let crash = r#"ulimit -S -c "$(ulimit -H -c)"; ulimit -S -c >limit; kill -s SEGV $$"#;
        let mut daemon = Command::new("sh");
        let daemon = Guard::spawn(daemon.args(["-c", crash]).current_dir(folder.path()));
        assert!(wait(PATIENCE, || daemon.ended()).is_some_and(|status| !status.success()));
        let files = fs::read_dir(folder.path()).expect("it is there").map(|file| {
            let path = file.expect("it is there").path();
            fs::read_to_string(path).unwrap_or_else(|error| error.to_string())
        });
        assert_eq!(files.collect::<Vec<_>>(), ["0\n"], "the limit, and no other file");
    }
}
