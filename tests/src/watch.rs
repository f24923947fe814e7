//! Boots a machine for each instance that its cloud says is up, again after each of its boots, and ends it with the instance.

use crate::test_cloud::Machine;
use slurm_testbed::Guard;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two observations, at least; shorter, and Nova is kept busy with nothing else.
const PAUSE: Duration = Duration::from_millis(300);

/// How many times as long as an observation the pause after it is: with many servers, one keeps Nova busy for long.
const REST: u32 = 3;

/// Watches until it is dropped; the machines end with it.
#[derive(Debug)]
pub(crate) struct Watcher {
    // Nothing is ever sent: its end is the message.
    line: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What is up: for each instance how often it has booted.
type Up = Vec<(usize, Machine)>;

impl Watcher {
    /// Watches over what is up in a cloud, for the cluster of a directory.
    pub(crate) fn start<F>(cluster: PathBuf, up: F) -> Self
    where
        F: Fn() -> io::Result<Up> + Send + 'static,
    {
        let (line, end) = mpsc::channel();
        let mut keeper = Keeper { cluster, on: BTreeMap::new() };
        let thread = std::thread::spawn(move || {
            let mut pause = PAUSE;
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(pause) {
                let begun = Instant::now();
                keeper.observe(up());
                pause = PAUSE.max(begun.elapsed() * REST);
            }
        });
        Self { line: Some(line), thread: Some(thread) }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.line.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A machine that is on, and which boot of its instance that is.
struct On {
    name: String,
    boot: usize,
    _machine: Guard,
}

struct Keeper {
    cluster: PathBuf,
    on: BTreeMap<String, On>,
}

impl Keeper {
    /// Compares what is on with what the cloud says.
    fn observe(&mut self, up: io::Result<Up>) {
        let up = match up {
            Ok(up) => up,
            Err(error) => return self.log("cloud", &error),
        };
        let wanted: BTreeMap<&str, (usize, &Machine)> =
            up.iter().map(|(boot, machine)| (&machine.id[..], (*boot, machine))).collect();
        let stays = |id: &str, on: &On| wanted.get(id).is_some_and(|(boot, _)| *boot == on.boot);
        // First those that end: another instance may have their address already.
        let (stay, end): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.on).into_iter().partition(|(id, on)| stays(id, on));
        self.on = stay;
        for on in end.into_values() {
            self.log(&on.name, &format!("off after boot {}", on.boot));
        }
        for (id, (boot, machine)) in wanted {
            if !self.on.contains_key(id) {
                self.boot(machine, boot);
            }
        }
    }

    fn boot(&mut self, instance: &Machine, boot: usize) {
        let Machine { id, name, address, .. } = instance;
        let mut command = Command::new(self.cluster.join("bin/machine"));
        command.env("NAME", name).env("ADDRESS", address);
        let machine = Guard::spawn(&command);
        self.log(name, &format!("on at {address}, boot {boot}, instance {id}"));
        self.on.insert(id.clone(), On { name: name.clone(), boot, _machine: machine });
    }

    /// Where the loopback cloud logs the like.
    fn log(&self, who: &str, what: &dyn Display) {
        let path = self.cluster.join("cloud/machines.log");
        let append = |file: &mut fs::File| -> io::Result<()> { writeln!(file, "{who}: {what}") };
        let file = OpenOptions::new().create(true).append(true).open(path);
        // A log that cannot be written is missed by whoever reads it.
        let _ = file.and_then(|mut file| append(&mut file));
    }
}
