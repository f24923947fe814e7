//! Child processes, and the one way to wait.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Generous: a machine busy with other tests is no reason to fail, nor is slurmctld, which does some things every 30 seconds.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Asks again and again, up to a deadline; none if it passed.
pub fn wait<T>(look: impl FnMut() -> Option<T>) -> Option<T> {
    wait_for(PATIENCE, look)
}

/// The same, with a deadline of its own.
pub fn wait_for<T>(patience: Duration, look: impl FnMut() -> Option<T>) -> Option<T> {
    slurm_testbed::wait(patience, look)
}

/// A process group that ends with this value.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// Starts a program, without its output.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.0.try_wait().expect("our own child")
    }

    /// Sends a signal, such as `STOP`, to the process group.
    pub fn signal(&self, name: &str) {
        // A shell has kill built in; not every machine has the program.
        let group = format!("kill -s {name} -- -{}", self.0.id());
        let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.signal("KILL");
        let _ = self.0.wait();
    }
}
