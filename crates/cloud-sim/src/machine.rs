//! Machines: programs that run when an instance starts and stops.

use crate::group;
use crate::instance::Record;
use crate::stale_processes;
use crate::temporary;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How long a machine that is told to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// How often a look is taken at whether a machine's program has ended.
const LOOK: Duration = Duration::from_millis(50);

/// How long the program for the end of a machine may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a machine's programs are told about it.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    id: String,
    name: String,
    address: String,
    domain: String,
    shape: String,
    image: String,
    metadata: Map<String, Value>,
}

impl Machine {
    pub(crate) fn of(record: &Record) -> Self {
        let instance = &record.instance;
        Self {
            id: instance.id.clone(),
            name: instance.display_name.clone(),
            address: record.vnic.address.to_string(),
            domain: instance.availability_domain.clone(),
            shape: instance.shape.clone(),
            image: instance.image_id.clone().unwrap_or_default(),
            metadata: instance.metadata.clone(),
        }
    }

    fn environment(&self, file: &Path, service: &str) -> Vec<(String, OsString)> {
        let plain = [
            ("INSTANCE_ID", &self.id),
            ("NAME", &self.name),
            ("ADDRESS", &self.address),
            ("AVAILABILITY_DOMAIN", &self.domain),
            ("SHAPE", &self.shape),
            ("IMAGE_ID", &self.image),
        ];
        let plain = plain.into_iter().map(|(name, value)| (name.to_owned(), value.into()));
        let metadata = self.metadata.iter().filter_map(|(key, value)| {
            let upper = |byte: char| {
                if byte.is_ascii_alphanumeric() { byte.to_ascii_uppercase() } else { '_' }
            };
            let key: String = key.chars().map(upper).collect();
            Some((format!("METADATA_{key}"), value.as_str()?.into()))
        });
        let files = [
            ("METADATA_FILE".to_owned(), file.into()),
            (
                "METADATA_SERVICE".to_owned(),
                format!("{service}/machines/{}/opc/v2", self.id).into(),
            ),
        ];
        plain.chain(metadata).chain(files).collect()
    }

    fn describe(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "address": self.address,
            "availabilityDomain": self.domain,
            "shape": self.shape,
            "imageId": self.image,
            "metadata": self.metadata,
        })
    }
}

/// What is to be done with a machine.
#[derive(Debug)]
pub(crate) enum Order {
    Up(Machine),
    Down(Machine),
    /// The instance of this id is no more.
    Forget(String),
}

/// The programs, and where the machines' files are.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    pub(crate) up: Vec<String>,
    pub(crate) down: Vec<String>,
    pub(crate) directory: PathBuf,
    /// True if the directory ends with the cloud.
    pub(crate) temporary: bool,
    /// The cloud's address, for the metadata service.
    pub(crate) service: String,
    /// True when machines are to be ended at once, whatever they still do.
    pub(crate) hurry: watch::Receiver<bool>,
}

/// Ends the machines that an earlier run left behind in its directory, because it was killed.
pub(crate) async fn end_left(directory: PathBuf) {
    stale_processes::end(&machines_in(&directory)).await;
}

/// Where the machines' files are.
fn machines_in(directory: &Path) -> PathBuf {
    directory.join("machines")
}

/// Carries out orders until there can be no more; then every machine that is on is switched off.
///
/// The orders of one machine are carried out one after another, those of different machines at
/// the same time.
pub(crate) async fn keep(mut orders: mpsc::UnboundedReceiver<Order>, programs: Programs) {
    let mut keepers = JoinSet::new();
    let mut lines: HashMap<String, mpsc::UnboundedSender<Order>> = HashMap::new();
    if programs.temporary {
        // Others', of which none is in the way of ours.
        tokio::spawn(temporary::sweep());
    } else {
        end_left(programs.directory.clone()).await;
    }
    while let Some(order) = orders.recv().await {
        while keepers.try_join_next().is_some() {}
        let machine = match &order {
            Order::Up(machine) | Order::Down(machine) => machine,
            Order::Forget(id) => {
                match lines.remove(id) {
                    // After what is still to be done with it, which needs its file.
                    Some(line) => drop(line.send(order)),
                    None => programs.forget(id),
                }
                continue;
            }
        };
        let line = lines.entry(machine.id.clone()).or_insert_with(|| {
            let (line, own) = mpsc::unbounded_channel();
            keepers.spawn(keep_one(own, programs.clone()));
            line
        });
        // Its keeper ends only when the line does.
        let _ = line.send(order);
    }
    drop(lines);
    while keepers.join_next().await.is_some() {}
    if programs.temporary {
        // What is left of it is in nobody's way: the next has another.
        let _ = std::fs::remove_dir_all(&programs.directory);
    }
}

/// A machine that is on.
struct On {
    machine: Machine,
    /// The program that was run for its start. It is not reaped before the machine is switched
    /// off, so that the number of its group does not become another's.
    child: Option<Child>,
    /// True if it was seen to have ended.
    ended: bool,
}

async fn keep_one(mut orders: mpsc::UnboundedReceiver<Order>, programs: Programs) {
    let mut on: Option<On> = None;
    loop {
        let order = tokio::select! {
            order = orders.recv() => order,
            () = watch(&programs, on.as_mut()) => continue,
        };
        if let Some(on) = on.take() {
            switch_off(&programs, on).await;
        }
        match order {
            Some(Order::Up(machine)) => {
                let child = run(&programs, &programs.up, &machine, "up");
                on = Some(On { machine, child, ended: false });
            }
            Some(Order::Down(_)) => {}
            Some(Order::Forget(id)) => programs.forget(&id),
            None => return,
        }
    }
}

/// Waits until the program of a machine ends, and logs how; for ever if there is none.
async fn watch(programs: &Programs, on: Option<&mut On>) {
    let Some(On { machine, child: Some(child), ended: ended @ false }) = on else {
        return std::future::pending().await;
    };
    let Some(leader) = group(child) else {
        return std::future::pending().await;
    };
    if let Some(how) = failure(leader).await {
        programs.log(machine, &format!("up: {how}"));
    }
    *ended = true;
}

/// Waits until a program ends, and gives how, unless it ended well. It is not reaped.
async fn failure(leader: Pid) -> Option<String> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        match rustix::process::waitid(WaitId::Pid(leader), look) {
            Ok(None) => tokio::time::sleep(LOOK).await,
            Ok(Some(status)) => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (Some(0), _) => None,
                    (Some(code), _) => Some(format!("exit status: {code}")),
                    (None, signal) => Some(format!("signal: {signal:?}")),
                };
            }
            Err(_) => return None,
        }
    }
}

/// Runs the program for the end of a machine, and ends what both programs left behind.
async fn switch_off(programs: &Programs, on: On) {
    let On { machine, child, ended: _ } = on;
    let hurried = *programs.hurry.borrow();
    let down = if hurried { None } else { run(programs, &programs.down, &machine, "down") };
    if let Some(down) = down {
        let of_down = group(&down);
        if let Some(leader) = of_down
            && let Some(Some(how)) = programs.wait(PATIENCE, failure(leader)).await
        {
            programs.log(&machine, &format!("down: {how}"));
        }
        end(programs, &machine, down, of_down).await;
    }
    if let Some(child) = child {
        let left = group(&child);
        end(programs, &machine, child, left).await;
    }
}

/// Ends a program and its process group: first it is asked to, then it is made to.
async fn end(programs: &Programs, machine: &Machine, mut child: Child, group: Option<Pid>) {
    if !*programs.hurry.borrow() {
        signal(group, Signal::TERM);
    }
    if programs.wait(GRACE, child.wait()).await.is_none() {
        programs.log(machine, "did not end by itself");
        signal(group, Signal::KILL);
    } else if let Some(group) = group
        && programs.wait(GRACE, empty(group)).await.is_none()
    {
        signal(Some(group), Signal::KILL);
    }
    let _ = child.wait().await;
}

/// Waits until a process group has ended, after which its number is free.
async fn empty(group: Pid) {
    while group::lives(group) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn group(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // It may have ended by itself.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Starts a program for a machine; what goes wrong is logged, and the instance goes on.
fn run(programs: &Programs, command: &[String], machine: &Machine, what: &str) -> Option<Child> {
    let (program, arguments) = command.split_first()?;
    match try_run(programs, program, arguments, machine) {
        Ok(child) => {
            programs.log(machine, what);
            Some(child)
        }
        Err(error) => {
            programs.log(machine, &format!("{what}: {program}: {error}"));
            None
        }
    }
}

fn try_run(
    programs: &Programs,
    program: &str,
    arguments: &[String],
    machine: &Machine,
) -> std::io::Result<Child> {
    let directory = programs.machines();
    std::fs::create_dir_all(&directory)?;
    let file = directory.join(format!("{}.json", machine.id));
    // Beside it first: what runs may read it at any time.
    let new = file.with_extension("new");
    std::fs::write(&new, machine.describe().to_string())?;
    std::fs::rename(&new, &file)?;
    let log = programs.open_log()?;
    Command::new(program)
        .args(arguments)
        .envs(machine.environment(&file, &programs.service))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

impl Programs {
    /// Waits for something, though neither for ever nor when there is a hurry.
    async fn wait<T>(&self, most: Duration, what: impl Future<Output = T>) -> Option<T> {
        let mut hurry = self.hurry.clone();
        let hurried = async {
            if hurry.wait_for(|hurry| *hurry).await.is_err() {
                // Nobody is left who could be in a hurry.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            it = what => Some(it),
            () = hurried => None,
            () = tokio::time::sleep(most) => None,
        }
    }

    fn machines(&self) -> PathBuf {
        machines_in(&self.directory)
    }

    /// Deletes the file of a machine; only one that was never on has none.
    fn forget(&self, id: &str) {
        let _ = std::fs::remove_file(self.machines().join(format!("{id}.json")));
    }

    fn open_log(&self) -> std::io::Result<std::fs::File> {
        std::fs::create_dir_all(&self.directory)?;
        let path = self.directory.join("machines.log");
        std::fs::OpenOptions::new().create(true).append(true).open(path)
    }

    /// One line in `machines.log`. A log that cannot be written must not stop a machine.
    fn log(&self, machine: &Machine, what: &str) {
        let time = crate::clock::stamp(std::time::SystemTime::now());
        let line = format!("{time} {} {} {what}\n", machine.name, machine.id);
        let _ = self.open_log().and_then(|mut log| log.write_all(line.as_bytes()));
    }
}
