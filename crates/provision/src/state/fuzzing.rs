//! Every reader of a file of the state directory, for the fuzzer.

use super::rollout_memory::Begun;
use super::{NodeRecord, cooldowns};

/// Reads a text as each file of the state directory. What a record says is written and read the same.
pub fn read(text: &str) {
    cooldowns::read(Some(text));
    let _ = Begun::parse(text);
    let line = NodeRecord::from_line(text).to_line();
    assert_eq!(NodeRecord::from_line(&line).to_line(), line);
}
