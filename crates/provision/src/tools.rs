//! The ports of a run: everything that has an effect.

use crate::state::{Event, EventKind, State};
use cloud_core::Provider;
use hostlist::NodeName;
use slurmctl::Controller;
use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;
use tokio::sync::watch;

/// Receives events as they happen.
pub trait Progress: Send + Sync {
    /// Called for each event.
    fn event(&self, event: &Event);
}

/// Ignores events.
impl Progress for () {
    fn event(&self, _: &Event) {}
}

/// The files that plans write; one that is not named is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// slurm.conf, or the included file that has our section.
    pub slurm_conf: Option<PathBuf>,
    /// `/etc/hosts` or its like.
    pub hosts: Option<PathBuf>,
    /// The inventory.
    pub inventory: Option<PathBuf>,
    /// Slurm's topology.conf, which `reconcile` writes.
    pub topology: Option<PathBuf>,
    /// Numbers for Prometheus, which `reconcile` writes.
    pub metrics: Option<PathBuf>,
}

/// The ports of a run.
#[derive(Clone)]
pub struct Tools<'a> {
    /// The cloud.
    pub cloud: &'a dyn Provider,
    /// The controller.
    pub slurm: &'a dyn Controller,
    /// What is remembered between runs.
    pub state: &'a dyn State,
    /// The clock.
    pub clock: &'a (dyn Fn() -> SystemTime + Send + Sync),
    /// Receives events.
    pub progress: &'a dyn Progress,
    /// The files that plans write.
    pub files: &'a Files,
    /// The name of this run in events.
    pub run: &'a str,
    /// Cancels a run early.
    pub cancel: Cancel,
}

impl fmt::Debug for Tools<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("run", &self.run).finish_non_exhaustive()
    }
}

static NO_FILES: Files =
    Files { slurm_conf: None, hosts: None, inventory: None, topology: None, metrics: None };

impl<'a> Tools<'a> {
    /// Creates tools with the system's clock, without files and progress. Set the fields for more.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// use cloud_core::memory::{MemoryCloud, MemoryCloudSettings};
    /// use provision::{Tools, state::MemoryState};
    /// use slurmctl::memory::MemorySlurm;
    ///
    /// let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    /// let slurm = MemorySlurm::new(slurmctl::memory::MemorySlurmSettings::cloud(&"n[1-3]".parse().unwrap()));
    /// let state = MemoryState::new();
    /// let tools = Tools::new(&cloud, &slurm, &state).with_run("nightly");
    /// assert_eq!(tools.run, "nightly");
    /// # });
    /// ```
    #[must_use]
    pub fn new(cloud: &'a dyn Provider, slurm: &'a dyn Controller, state: &'a dyn State) -> Self {
        Self {
            cloud,
            slurm,
            state,
            clock: &SystemTime::now,
            progress: &(),
            files: &NO_FILES,
            run: "run",
            cancel: Cancel::never(),
        }
    }

    /// Sets the name of the run in events.
    #[must_use]
    pub fn with_run(self, run: &'a str) -> Self {
        Self { run, ..self }
    }
}

impl Tools<'_> {
    /// The current time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Reports and logs an event. The run goes on if the log cannot be written.
    pub(crate) fn note(&self, event: &Event) {
        self.progress.event(event);
        let _ = self.state.note(event);
    }

    /// An event of this run, now.
    pub(crate) fn event(&self, kind: EventKind) -> Event {
        Event::new(self.now(), self.run, kind)
    }

    /// Reports and logs an event of a node.
    pub(crate) fn note_node(&self, kind: EventKind, node: &NodeName, detail: &str) {
        self.note(&self.event(kind).of(node).because(detail));
    }
}

/// A token that cancels a run early; clones share the cancellation.
///
/// ```
/// use provision::Cancel;
///
/// let (signal, cancel) = Cancel::new();
/// assert!(!cancel.is_cancelled());
/// signal.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Option<watch::Receiver<bool>>);

/// Cancels every clone of a [`Cancel`].
#[derive(Debug)]
pub struct CancelSignal(watch::Sender<bool>);

impl Cancel {
    /// Creates a token, and the signal that cancels it.
    #[must_use]
    pub fn new() -> (CancelSignal, Self) {
        let (sender, receiver) = watch::channel(false);
        (CancelSignal(sender), Self(Some(receiver)))
    }

    /// Creates a token that is never cancelled.
    #[must_use]
    pub fn never() -> Self {
        Self(None)
    }

    /// True if it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|receiver| *receiver.borrow())
    }

    /// Returns when it is cancelled; never, if the signal was dropped.
    pub async fn cancelled(&mut self) {
        let is_cancelled = match &mut self.0 {
            Some(receiver) => receiver.wait_for(|cancelled| *cancelled).await.is_ok(),
            None => false,
        };
        if !is_cancelled {
            std::future::pending::<()>().await;
        }
    }
}

impl CancelSignal {
    /// Cancels all tokens.
    pub fn cancel(&self) {
        // Without a receiver there is nothing to cancel.
        let _ = self.0.send(true);
    }
}
