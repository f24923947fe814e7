//! The state directory: the state between runs, which may be lost.
//!
//! The cloud and Slurm are the source of truth. All programs write the state directory (`/var/lib/slurm-elastic`), on
//! several hosts, as root or as slurmctld's user. Files belong to the owner of the directory, and links in it are not
//! followed. Only this module accesses it:
//!
//! | file | content | written by | read by | effect of losing it |
//! |---|---|---|---|---|
//! | `nodes/<node>` | the node's lock (`flock`) and its [record](NodeRecord) of what was last asked of the cloud | whoever works on the node | whoever works on it next | one of the nets below a kill: the next start looks a little longer before it launches |
//! | `yield/<node>` | until when somebody wants the node's lock | `stopnode`, `rebuild` | the program that holds the lock | seconds: the wish is renewed |
//! | `cooldowns.json` | pools without capacity and nodes that rest | `startnode`, `reconcile` | the same | some launches that fail again |
//! | `pace.json` | the pace that each cloud endpoint takes ([`pace`]), for an hour | all programs that ask a cloud | the same | some seconds of a large start, or some requests that the cloud refuses |
//! | `sightings.json` | what `reconcile` saw, and since when | `reconcile` | `reconcile` | one run more before anything is terminated |
//! | `reported.txt` | what `reconcile` has logged already | `reconcile` | `reconcile` | lines in the log that are there twice |
//! | `told.json` | the notices that administrators have, and when they were sent | all that notify | the same | notifications that come twice |
//! | `tally.json` | what `reconcile` has counted of the events, for metrics, and the lives that go on | `reconcile` | `reconcile` | counters begin at 0 |
//! | `applied.conf` | the lines between the markers that slurmctld runs with | `finish`, `resize` | the same | lines that were written and not applied go unnoticed, unless nodes differ |
//! | `slurm.conf.lock` | the [lock](crate::conf::ConfLock) of slurm.conf, and who holds it | `finish`, `resize` | the same | nothing |
//! | `rollout-<image>.json` | the nodes that a [rollout](RolloutMemory) has tried | `rebuild submit` | `rebuild` | nodes that failed are tried again |
//! | `events.jsonl` | one line for each event, appended with one write | all | operators | history |
//!
//! Documents are replaced atomically. The previous version is kept as `.previous`, and a `.lock` file excludes concurrent
//! writers.

pub(crate) mod atomic_write;
pub(crate) mod cooldowns;
mod directory;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
pub(crate) mod lock;
mod memory;
mod owner;
pub mod pace;
mod record;
mod rollout_memory;
mod safe_open;

pub(crate) use atomic_write::rehearse as rehearse_write;
pub use directory::StateDir;
pub use error::{Error, Result};
pub use history::{Event, EventKind};
pub use memory::MemoryState;
pub use owner::inherit_owner;
pub(crate) use record::LEAVING;
pub use record::{Launch, NodeRecord};
pub use rollout_memory::{RolloutMemory, rollouts_under_way};

use crate::time::is_ahead;
use history::Position;
use hostlist::NodeName;
use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

/// Time for which a request to yield a node is valid.
pub(crate) const WISH: Duration = Duration::from_secs(10);

/// True while a request to yield is valid. One that is valid for longer comes from a clock that was ahead.
fn is_wished(until: SystemTime, now: SystemTime) -> bool {
    now < until && !is_ahead(until, now)
}

/// A file that is read and replaced as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateFile {
    /// The cool-downs of the pools.
    Cooldowns,
    /// Sightings of the last reconcile.
    Sightings,
    /// The lines between the markers of slurm.conf that slurmctld runs with.
    AppliedConf,
    /// Findings that reconcile has reported.
    Reported,
    /// Notifications that were sent, with their times.
    Notices,
    /// Counters of events, for metrics.
    Tally,
    /// The pace that clouds take.
    Pace,
}

impl StateFile {
    fn file(self) -> &'static str {
        match self {
            Self::Cooldowns => "cooldowns.json",
            Self::Sightings => "sightings.json",
            Self::AppliedConf => "applied.conf",
            Self::Reported => "reported.txt",
            Self::Notices => "told.json",
            Self::Tally => "tally.json",
            Self::Pace => "pace.json",
        }
    }
}

/// How long to wait for a document that another process is changing. It writes a small file to a disk that may be busy.
const DOCUMENT_WAIT: Duration = Duration::from_secs(2);

/// Pause between two attempts.
const DOCUMENT_PAUSE: Duration = Duration::from_millis(2);

/// Replaces a document, and waits for another process that is changing it. Returns false on a timeout.
pub(crate) fn change_soon(
    state: &dyn State,
    document: StateFile,
    change: &mut dyn FnMut(Option<&str>) -> String,
) -> Result<bool> {
    let begun = Instant::now();
    loop {
        let changed = state.change(document, change)?;
        if changed || begun.elapsed() >= DOCUMENT_WAIT {
            return Ok(changed);
        }
        std::thread::park_timeout(DOCUMENT_PAUSE);
    }
}

/// The state between runs.
///
/// No call blocks. Callers that have to wait use their own clock.
pub trait State: fmt::Debug + Send + Sync {
    /// Takes the lock of a node, or returns none if it is held.
    fn try_lock(&self, node: &NodeName) -> Result<Option<Box<dyn NodeLock>>>;

    /// Reads the record of a node without its lock, for callers that change nothing.
    fn record(&self, node: &NodeName) -> NodeRecord;

    /// Reads a document; none if it does not exist or cannot be read.
    fn load(&self, document: StateFile) -> Result<Option<String>>;

    /// Replaces a document with the result of a function. Returns false while another process is changing it.
    fn change(
        &self,
        document: StateFile,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool>;

    /// The log of events.
    fn history(&self) -> Result<history::Log>;

    /// Appends an event.
    fn note(&self, event: &Event) -> Result<()>;

    /// Returns the events after a position in the log, and the position after them.
    fn events_after(&self, position: Position) -> Result<(Vec<Event>, Position)>;

    /// Requests that other processes yield these nodes, until the given time.
    fn ask_to_yield(&self, nodes: &[NodeName], until: SystemTime) -> Result<()>;

    /// Withdraws the request to yield.
    fn stop_asking(&self, nodes: &[NodeName]) -> Result<()>;

    /// Returns those of these nodes that other processes request.
    fn asked_to_yield(&self, now: SystemTime) -> Result<BTreeSet<NodeName>>;
}

/// The lock of a node, held until it is dropped or the process ends.
pub trait NodeLock: fmt::Debug + Send + Sync {
    /// The record of this node.
    fn record(&self) -> NodeRecord;

    /// Stores the record of this node.
    fn keep(&mut self, record: &NodeRecord) -> Result<()>;

    /// What the lock does not do, if work continues without it.
    fn trouble(&self) -> Option<String> {
        None
    }
}
