//! Reads new events of the log incrementally.

use crate::error::Error;
use crate::event::Event;
use crate::open::open;
use crate::read::{FILE, rotated};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Maximum number of bytes to read at a time. The next call continues.
const MOST_BYTES: u64 = 16 << 20;

/// A position in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The inode of the file, which stays the same when the log is rotated.
    pub file: u64,
    /// The number of bytes read.
    pub offset: u64,
}

/// Returns the events after a position, and the position after them. An incomplete line is left for the next call.
pub fn read_after(directory: &Path, position: Position) -> Result<(Vec<Event>, Position), Error> {
    let path = directory.join(FILE);
    let failed = |source| Error { path: path.clone(), source };
    let Some((file, metadata)) = open(&path).map_err(failed)? else {
        return Ok((Vec::new(), position));
    };
    let inode = metadata.ino();
    let mut events = Vec::new();
    if position.file == inode {
        let offset = add_from(file, position.offset, &mut events).map_err(failed)?;
        return Ok((events, Position { file: inode, offset }));
    }
    let before = open(&rotated(directory, 1)).map_err(failed)?;
    if let Some((old, _)) = before.filter(|(_, old)| old.ino() == position.file) {
        add_from(old, position.offset, &mut events).map_err(failed)?;
    }
    let offset = add_from(file, 0, &mut events).map_err(failed)?;
    Ok((events, Position { file: inode, offset }))
}

/// Adds the events after an offset, and returns the offset after them. A truncated file is read from the start.
fn add_from(mut file: File, offset: u64, events: &mut Vec<Event>) -> io::Result<u64> {
    let offset = if file.metadata()?.len() < offset { 0 } else { offset };
    file.seek(SeekFrom::Start(offset))?;
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text)?;
    // A line that is longer than all that is read never ends: it is skipped.
    let is_full = u64::try_from(text.len()).is_ok_and(|length| length == MOST_BYTES);
    let all = if is_full { text.len() } else { 0 };
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(all, |last| last + 1);
    let lines = text.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
    // Readers of the whole log report invalid lines.
    events.extend(lines.filter_map(|line| serde_json::from_slice::<Event>(line).ok()));
    Ok(offset + u64::try_from(end).unwrap_or_default())
}
