//! Boots a machine for each server that is ACTIVE, again after each of its boots, and ends it with the server.

use super::client::Client;
use crate::test_cloud::Machine;
use slurm_testbed::Guard;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
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
pub(super) struct Watcher {
    // Nothing is ever sent: its end is the message.
    line: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Watches over the servers of an OpenStack for the cluster of a directory.
    pub(super) fn start(client: Client, openstack: PathBuf, cluster: PathBuf) -> Self {
        let (line, end) = mpsc::channel();
        let mut keeper = Keeper { client, openstack, cluster, on: BTreeMap::new() };
        let thread = std::thread::spawn(move || {
            let mut pause = PAUSE;
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(pause) {
                let begun = Instant::now();
                keeper.observe();
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

/// A machine that is on, and which boot of its server that is.
struct On {
    name: String,
    boot: usize,
    _machine: Guard,
}

struct Keeper {
    client: Client,
    openstack: PathBuf,
    cluster: PathBuf,
    on: BTreeMap<String, On>,
}

impl Keeper {
    /// Compares what is on with what Nova says.
    fn observe(&mut self) {
        let servers = match self.client.servers() {
            Ok(servers) => servers,
            Err(error) => return self.log("nova", &error),
        };
        // A reboot may be over before anybody sees its state; the hypervisor has counted it.
        // One without an address is on its way out.
        let active =
            servers.iter().filter(|server| server.state == "ACTIVE" && !server.address.is_empty());
        let boot = |server: &Machine| boots(&self.openstack, &server.id).len();
        let wanted: BTreeMap<&str, (usize, &Machine)> =
            active.map(|server| (&server.id[..], (boot(server), server))).collect();
        let stays = |id: &str, on: &On| wanted.get(id).is_some_and(|(boot, _)| *boot == on.boot);
        // First those that end: another server may have their address already.
        let (stay, end): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.on).into_iter().partition(|(id, on)| stays(id, on));
        self.on = stay;
        for on in end.into_values() {
            self.log(&on.name, &format!("off after boot {}", on.boot));
        }
        for (id, (boot, server)) in wanted {
            if !self.on.contains_key(id) {
                self.boot(server, boot);
            }
        }
    }

    fn boot(&mut self, server: &Machine, boot: usize) {
        let Machine { id, name, address, .. } = server;
        let mut command = Command::new(self.cluster.join("bin/machine"));
        command.env("NAME", name).env("ADDRESS", address);
        let machine = Guard::spawn(&command);
        self.log(name, &format!("on at {address}, boot {boot}, server {id}"));
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

/// How a server has booted each time.
pub(super) fn boots(openstack: &Path, id: &str) -> Vec<String> {
    let file = openstack.join("hypervisor").join(format!("boots-{id}"));
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
