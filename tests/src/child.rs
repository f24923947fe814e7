//! Child processes that go when the test goes, and the one way to wait.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Generous: a machine busy with other tests is no reason to fail.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Asks again and again, up to a deadline; none if it passed.
#[expect(clippy::disallowed_methods, reason = "the one place that sleeps, between two looks")]
pub fn wait<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A process group that ends with this value, and with the thread that started it.
#[derive(Debug)]
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
        Self(guarded.spawn().expect("setpriv is installed"))
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("our own child").is_some()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let group = format!("kill -s KILL -- -{}", self.0.id());
        let _ = Command::new("sh").args(["-c", &group]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}
