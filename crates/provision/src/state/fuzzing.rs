//! Entry point for fuzzing every reader of the state directory.

use super::rollout_memory::Begun;
use super::{NodeRecord, cooldowns, pace};
use crate::notice::SentNotices;
use crate::run;

/// Reads a text as each file of the state directory. A record must survive a round trip.
pub fn read(text: &str) {
    cooldowns::read(Some(text));
    let _ = Begun::parse(text);
    pace::read(Some(text));
    run::read_sightings(Some(text));
    SentNotices::parse(Some(text)).take_new(&mut Vec::new(), 1);
    let _ = serde_json::from_str::<history::Tally>(text);
    let line = NodeRecord::from_line(text).to_line();
    assert_eq!(NodeRecord::from_line(&line).to_line(), line);
}
