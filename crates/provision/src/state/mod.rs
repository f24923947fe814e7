//! The state directory: what is remembered between runs, and may be lost.
//!
//! The cloud and Slurm are the truth. The state directory (`/var/lib/slurm-elastic`) is written by all programs, which may
//! run on several hosts, as root or as slurmctld's user; files belong to the owner of the directory, and links in it are
//! not followed. This module is its only owner:
//!
//! | file | what it holds | written by | read by | losing it costs |
//! |---|---|---|---|---|
//! | `nodes/<node>` | the node's lock (`flock`) and its [record](NodeRecord) of what was last asked of the cloud | whoever works on the node | whoever works on it next | one of the nets below a kill: the next start looks a little longer before it launches |
//! | `yield/<node>` | until when somebody wants the node's lock | `stopnode`, `rebuild` | the program that holds the lock | seconds: the wish is renewed |
//! | `cooldowns.json` | pools without capacity and nodes that rest | `startnode`, `reconcile` | the same | some launches that fail again |
//! | `pace.json` | the pace that each cloud endpoint takes ([`pace`]), for an hour | all programs that ask a cloud | the same | some seconds of a large start, or some requests that the cloud refuses |
//! | `sightings.json` | what `reconcile` saw, and since when | `reconcile` | `reconcile` | one run more before anything is terminated |
//! | `reported.txt` | what `reconcile` has logged already | `reconcile` | `reconcile` | lines in the log that are there twice |
//! | `told.json` | what administrators have been told, and when | all that notify | the same | notifications that come twice |
//! | `tally.json` | what `reconcile` has counted of the events, for metrics, and the lives that go on | `reconcile` | `reconcile` | counters begin at 0 |
//! | `applied.conf` | the lines between the markers that slurmctld runs with | `finish`, `resize` | the same | lines that were written and not applied go unnoticed, unless nodes differ |
//! | `slurm.conf.lock` | the [lock](crate::conf::ConfLock) of slurm.conf, and who holds it | `finish`, `resize` | the same | nothing |
//! | `rollout-<image>.json` | the nodes that a [rollout](RolloutMemory) has tried | `rebuild submit` | `rebuild` | nodes that failed are tried again |
//! | `events.jsonl` | one line for each event, appended with one write | all | operators | history |
//!
//! Documents are replaced atomically; the version before stays beside them as `.previous`, and a `.lock` keeps two writers
//! apart.

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

/// How long a wish for a node lasts, from when it was last said.
pub(crate) const WISH: Duration = Duration::from_secs(10);

/// True while a wish lasts: it is made for seconds, and one for longer by a clock that was ahead.
fn is_wished(until: SystemTime, now: SystemTime) -> bool {
    now < until && !is_ahead(until, now)
}

/// A text that is read and replaced as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Document {
    /// The cool-downs of the pools.
    Cooldowns,
    /// What the last reconcile saw.
    Sightings,
    /// The lines between the markers of slurm.conf that slurmctld runs with.
    AppliedConf,
    /// What reconcile has reported already.
    Reported,
    /// What administrators have been told, and when.
    Told,
    /// What reconcile has counted of the events.
    Tally,
    /// The pace that clouds take.
    Pace,
}

impl Document {
    fn file(self) -> &'static str {
        match self {
            Self::Cooldowns => "cooldowns.json",
            Self::Sightings => "sightings.json",
            Self::AppliedConf => "applied.conf",
            Self::Reported => "reported.txt",
            Self::Told => "told.json",
            Self::Tally => "tally.json",
            Self::Pace => "pace.json",
        }
    }
}

/// How long a document is tried that another process is about: it writes a small file, and waits for
/// a disk, which others may keep busy.
const DOCUMENT_WAIT: Duration = Duration::from_secs(2);

/// Between two tries.
const DOCUMENT_PAUSE: Duration = Duration::from_millis(2);

/// Replaces a document, and tries it for a moment while another is about it; false if that lasts.
pub(crate) fn change_soon(
    state: &dyn State,
    document: Document,
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

/// What is remembered between runs.
///
/// All calls return at once; who has to wait does so with its own clock.
pub trait State: fmt::Debug + Send + Sync {
    /// The lock of a node, or none while another has it.
    fn try_lock(&self, node: &NodeName) -> Result<Option<Box<dyn NodeLock>>>;

    /// What was last asked of the cloud for a node, read without its lock, for whoever changes nothing.
    fn record(&self, node: &NodeName) -> NodeRecord;

    /// A document as last written; none if there is none, or none that can be read.
    fn load(&self, document: Document) -> Result<Option<String>>;

    /// Replaces a document by what the function makes of it; false while another is about it.
    fn change(
        &self,
        document: Document,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool>;

    /// The log of events.
    fn history(&self) -> Result<history::Log>;

    /// Appends an event.
    fn note(&self, event: &Event) -> Result<()>;

    /// The events after a position in the log, and the position behind them.
    fn events_after(&self, position: Position) -> Result<(Vec<Event>, Position)>;

    /// Asks whoever works on these nodes to let go of them, until the time given.
    fn ask_to_yield(&self, nodes: &[NodeName], until: SystemTime) -> Result<()>;

    /// Takes the wish back.
    fn stop_asking(&self, nodes: &[NodeName]) -> Result<()>;

    /// The nodes that others want us to let go of.
    fn asked_to_yield(&self, now: SystemTime) -> Result<BTreeSet<NodeName>>;
}

/// A node that is ours to work on, until this is dropped or the process ends.
pub trait NodeLock: fmt::Debug + Send + Sync {
    /// What was last asked of the cloud for this node.
    fn record(&self) -> NodeRecord;

    /// Remembers what is asked of the cloud.
    fn keep(&mut self, record: &NodeRecord) -> Result<()>;

    /// Why the node is not really locked, if this only stands for a lock: whoever has it works on the node as if it were
    /// alone.
    fn unlocked(&self) -> Option<&str> {
        None
    }
}
