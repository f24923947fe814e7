//! What is remembered between runs, and may be lost.
//!
//! The cloud and Slurm are the truth. A state holds locks, so that no two processes work on one
//! node; a note per node of what was last asked of the cloud, so that a process that was killed
//! between a request and its answer is not followed by a second machine; the cool-downs; and a log
//! of events. Losing it costs the memory of cool-downs and one of the nets below a kill.

pub(crate) mod cooldowns;
mod directory;
mod error;
mod events;
mod lock;
mod memory;
mod ours;
mod owner;
mod record;
pub(crate) mod whole;

pub use directory::StateDir;
pub use error::{Error, Result};
pub use events::{Event, EventKind};
pub use memory::MemoryState;
pub use owner::give_to_directory;
pub(crate) use record::LEAVING;
pub use record::{Launch, NodeRecord};
pub use whole::{
    rehearse as rehearse_whole, replace as replace_whole, replace_ours as replace_whole_ours,
};

use crate::time::is_ahead;
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
    /// What stood between the markers of slurm.conf when slurmctld last took it up.
    Told,
}

impl Document {
    fn file(self) -> &'static str {
        match self {
            Self::Cooldowns => "cooldowns.json",
            Self::Sightings => "sightings.json",
            Self::Told => "told.conf",
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

    /// A document as last written; none if there is none, or none that can be read.
    fn load(&self, document: Document) -> Result<Option<String>>;

    /// Replaces a document by what the function makes of it; false while another is about it.
    fn change(
        &self,
        document: Document,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool>;

    /// Appends an event.
    fn note(&self, event: &Event) -> Result<()>;

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

    /// Why it is no lock at all, if it only stands for one: whoever has it works on the node as if it
    /// were alone.
    fn trouble(&self) -> Option<&str> {
        None
    }
}
