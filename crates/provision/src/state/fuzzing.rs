//! Entry point for fuzzing every reader of the state directory.

use super::rollout_memory::Begun;
use super::{NodeRecord, cooldowns};

/// Reads a text as each file of the state directory. A record must survive a round trip.
pub fn read(text: &str) {
    cooldowns::read(Some(text));
    let _ = Begun::parse(text);
    let line = NodeRecord::from_line(text).to_line();
    assert_eq!(NodeRecord::from_line(&line).to_line(), line);
}
