//! Reads the log and its rotated files, up to a bound.

use crate::error::Error;
use crate::event::Event;
use crate::open::open;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The name of the log in the state directory.
pub const FILE: &str = "events.jsonl";

/// Maximum number of bytes to read, newest first: about a million events.
const MOST_BYTES: u64 = 256 << 20;

/// Maximum length of a line.
const LONGEST_LINE: u64 = 64 << 10;

/// Maximum number of rotated files.
const MOST_FILES: u32 = 1000;

/// Maximum number of invalid lines that are described. All are counted.
const MOST_DESCRIBED: usize = 5;

/// An invalid line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The file.
    pub path: PathBuf,
    /// The line number, from 1, relative to where reading started if the file was too long.
    pub line: u64,
    /// Why it is invalid.
    pub why: String,
}

/// The content of a log.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The events, in the order of the log.
    pub events: Vec<Event>,
    /// Number of invalid lines.
    pub broken: u64,
    /// The first invalid lines.
    pub first_broken: Vec<Broken>,
    /// Rotated files that are skipped because they are compressed.
    pub compressed: Vec<PathBuf>,
    /// True if older events were left out because the log is too long.
    pub is_cut: bool,
}

impl Log {
    /// Warnings about what is missing from the events, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(first) = self.first_broken.first() {
            let (lines, path) = (self.broken, first.path.display());
            let noun = if lines == 1 { "line is" } else { "lines are" };
            warnings.push(format!(
                "{lines} {noun} not readable, the first at {path}:{}: {}",
                first.line, first.why
            ));
        }
        if let Some(first) = self.compressed.first() {
            warnings.push(format!(
                "{} compressed log files are not read, such as {}",
                self.compressed.len(),
                first.display()
            ));
        }
        if self.is_cut {
            warnings.push(format!("only the last {} MB of events are read", MOST_BYTES >> 20));
        }
        warnings
    }
}

/// Reads the log in a state directory: its rotated files, then `events.jsonl`. A missing log is an empty one.
pub fn read(directory: &Path) -> Result<Log, Error> {
    read_at_most(directory, MOST_BYTES)
}

/// Reads the newest bytes of the log, for recent events only.
pub fn read_at_most(directory: &Path, most: u64) -> Result<Log, Error> {
    let mut log = Log::default();
    let (mut parts, mut left) = (Vec::new(), most);
    for number in 0..MOST_FILES {
        let path = rotated(directory, number);
        let opened = open(&path).map_err(|source| Error { path: path.clone(), source })?;
        let Some((file, metadata)) = opened else {
            let compressed = compressed(directory, number);
            let found = compressed.is_some();
            log.compressed.extend(compressed);
            // After a rotation, the log does not exist until the next event.
            if found || number == 0 {
                continue;
            }
            break;
        };
        let size = metadata.len();
        let skip = size.saturating_sub(left);
        left = left.saturating_sub(size);
        parts.push((path, file, skip));
        if skip > 0 {
            log.is_cut = true;
            break;
        }
    }
    for (path, file, skip) in parts.into_iter().rev() {
        read_file(&path, file, skip, &mut log).map_err(|source| Error { path, source })?;
    }
    Ok(log)
}

pub(crate) fn rotated(directory: &Path, number: u32) -> PathBuf {
    match number {
        0 => directory.join(FILE),
        number => directory.join(format!("{FILE}.{number}")),
    }
}

fn compressed(directory: &Path, number: u32) -> Option<PathBuf> {
    let name = |ending| directory.join(format!("{FILE}.{number}.{ending}"));
    ["gz", "xz", "zst", "bz2"].map(name).into_iter().find(|path| path.exists())
}

fn read_file(path: &Path, mut file: File, skip: u64, log: &mut Log) -> io::Result<()> {
    file.seek(SeekFrom::Start(skip))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    if skip > 0 {
        // The rest of an earlier line.
        reader.skip_until(b'\n')?;
    }
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut text)? == 0 {
            return Ok(());
        }
        let ended = text.last() == Some(&b'\n');
        let is_long = !ended && u64::try_from(text.len()).is_ok_and(|size| size >= LONGEST_LINE);
        if is_long {
            reader.skip_until(b'\n')?;
        }
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        match serde_json::from_slice(text) {
            Ok(event) => log.events.push(event),
            Err(error) => {
                let why = if is_long { "too long".to_owned() } else { error.to_string() };
                log.broken += 1;
                if log.first_broken.len() < MOST_DESCRIBED {
                    log.first_broken.push(Broken { path: path.to_owned(), line, why });
                }
            }
        }
    }
    Ok(())
}
