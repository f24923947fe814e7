//! The state on disk: one line per change, with all that it changed, so that a line that was cut
//! short loses the change and never a part of it. Rewritten short at each start and when it has
//! grown.

use crate::error::Error;
use crate::table::{Row, Table};
use crate::world::World;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file, and what changed since it was last written to.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    file: Option<(PathBuf, File)>,
    touched: Vec<(Table, String)>,
    /// How many bytes the file has.
    length: u64,
    /// How many it had when it could not be rewritten.
    stuck: u64,
    present: Present,
    /// What the settings furnish, which is not written down: its rows, by table and id.
    furnished: Furnished,
    /// Why it ended, if it did.
    failure: Option<(PathBuf, Arc<io::Error>)>,
}

/// How long the rows are that are not of the past.
#[derive(Debug, Default)]
struct Present {
    lengths: HashMap<(Table, String), u64>,
    sum: u64,
}

impl Present {
    /// Notes the newest row of a thing; `None` if it is gone.
    fn put(&mut self, thing: (Table, String), row: Option<u64>) {
        let before = match row {
            Some(row) => self.lengths.insert(thing, row),
            None => self.lengths.remove(&thing),
        };
        let sum = self.sum.saturating_add(row.unwrap_or(0));
        self.sum = sum.saturating_sub(before.unwrap_or(0));
    }
}

/// The rows of things.
pub(crate) type Furnished = Vec<((Table, String), Vec<u8>)>;

/// A file of less than this is not worth a rewrite.
const SMALL: u64 = 1 << 20;

/// How many times as long as the rows that are not of the past the file may be.
const GROWTH: u64 = 4;

impl Journal {
    /// Opens the journal of a directory and reads what it remembers.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Vec<Vec<Row>>), Error> {
        let path = path_in(directory);
        let fail = |source| Error::File { path: path.clone(), source };
        fs::create_dir_all(directory).map_err(fail)?;
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).read(true).open(&path).map_err(fail)?;
        let lines = read(&path, &file)?;
        Ok((Self { file: Some((path, file)), ..Self::default() }, lines))
    }

    /// Says what is there without having been written down.
    pub(crate) fn furnish(&mut self, rows: Furnished) {
        self.furnished = rows;
    }

    /// Notes that something changed, if that is written down at all.
    pub(crate) fn touch(&mut self, table: Table, id: &str) {
        if self.file.is_none() {
            return;
        }
        let last = self.touched.last();
        if last.is_none_or(|(touched, of)| *touched != table || of != id) {
            self.touched.push((table, id.to_owned()));
        }
    }

    pub(crate) fn touched(&mut self) -> Vec<(Table, String)> {
        std::mem::take(&mut self.touched)
    }

    /// Adds the line of a change. A disk that fails must not fail the cloud: the state then ends
    /// with it, and [`Journal::kept`] tells.
    fn append(&mut self, line: &[u8]) {
        let Some((path, file)) = &mut self.file else {
            return;
        };
        match file.write_all(line) {
            Ok(()) => self.length = self.length.saturating_add(length(line)),
            Err(source) => {
                self.failure = Some((path.clone(), Arc::new(source)));
                self.file = None;
            }
        }
    }

    /// Says why not all is written down, if it is not.
    pub(crate) fn kept(&self) -> Result<(), Error> {
        match &self.failure {
            None => Ok(()),
            Some((path, source)) => {
                Err(Error::Unkept { path: path.clone(), source: Arc::clone(source) })
            }
        }
    }

    /// True if most of the file is of the past.
    pub(crate) fn has_grown(&self) -> bool {
        let shortest = self.present.sum.max(self.stuck);
        self.file.is_some() && self.length > shortest.saturating_mul(GROWTH).max(SMALL)
    }

    /// Replaces the file by one with these lines only. One that cannot be replaced stays, and is
    /// tried again when it has grown as much once more.
    fn rewrite(&mut self, lines: &[u8], present: Present) -> Result<(), Error> {
        let Some((path, _)) = &self.file else {
            return Ok(());
        };
        let path = path.clone();
        self.stuck = self.length;
        let new = path.with_extension("new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(lines)?;
            // A power cut may cost the newest lines, which are not waited for. Without this it could
            // cost all: the new name can be on the disk before what is in the file. Everybody
            // waits for it, but only once for each time that the file has grown by as much again.
            file.sync_all()?;
            fs::rename(&new, &path)?;
            Ok(file)
        };
        let written: io::Result<File> = write();
        let file = written.map_err(|source| Error::File { path: path.clone(), source })?;
        self.file = Some((path, file));
        (self.length, self.stuck, self.present) = (length(lines), 0, present);
        Ok(())
    }
}

fn path_in(directory: &Path) -> PathBuf {
    directory.join("journal.jsonl")
}

fn length(text: &[u8]) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// The rows of a line: a list, or one that stands alone, as in a file that was written anew.
fn rows(line: &[u8]) -> serde_json::Result<Vec<Row>> {
    if line.starts_with(b"[") {
        return serde_json::from_slice(line);
    }
    Ok(vec![serde_json::from_slice(line)?])
}

/// Reads all lines. The last may be cut short, where the program was killed as it wrote.
fn read(path: &Path, file: &File) -> Result<Vec<Vec<Row>>, Error> {
    let fail = |source| Error::File { path: path.to_owned(), source };
    let mut text = Vec::new();
    BufReader::new(file).read_to_end(&mut text).map_err(fail)?;
    // Bytes and not text: the cut may be inside a character.
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let mut read = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match rows(line) {
            Ok(rows) => read.push(rows),
            Err(_) if index + 1 == lines.len() => {}
            Err(source) => {
                return Err(Error::Journal { path: path.to_owned(), line: index + 1, source });
            }
        }
    }
    Ok(read)
}

impl World {
    /// Writes down what changed.
    pub(crate) fn commit(&mut self) {
        self.reindex();
        let mut line = Vec::new();
        for (table, id) in self.journal.touched() {
            let before = line.len();
            line.push(if before == 0 { b'[' } else { b',' });
            self.write_row(&mut line, table, &id);
            if line.len() == before + 1 {
                line.truncate(before);
            }
            // The rows of a life add to its instance's, which stays.
            if table != Table::Lives {
                let row = line.get(before..).map(length).filter(|_| self.has(table, &id));
                self.journal.present.put((table, id), row);
            }
        }
        if line.is_empty() {
            return;
        }
        line.extend_from_slice(b"]\n");
        self.journal.append(&line);
        if self.journal.has_grown() {
            // What cannot be shortened goes on as it is.
            let _ = self.compact();
        }
    }

    /// Takes over the lines of a journal. One that another version wrote and we cannot read is
    /// refused: it would be gone when the file is written anew.
    pub(crate) fn put_lines(
        &mut self,
        directory: &Path,
        lines: Vec<Vec<Row>>,
    ) -> Result<(), Error> {
        for (index, rows) in lines.into_iter().enumerate() {
            let unread =
                |source| Error::Journal { path: path_in(directory), line: index + 1, source };
            rows.into_iter().try_for_each(|row| self.put_row(row)).map_err(unread)?;
        }
        Ok(())
    }

    /// Writes the file anew, with what is there now and nothing of the past: everything that is not as
    /// the settings furnish it, and what they furnish that is gone.
    pub(crate) fn compact(&mut self) -> Result<(), Error> {
        let furnished = &self.journal.furnished;
        let (mut text, mut present) = (Vec::new(), Present::default());
        for (table, id) in self.all_things() {
            let before = text.len();
            self.write_row(&mut text, table, id);
            let is_it = |((of, name), row): &((Table, String), Vec<u8>)| {
                *of == table && name == id && text.get(before..) == Some(row)
            };
            if furnished.iter().any(is_it) {
                text.truncate(before);
                continue;
            }
            text.push(b'\n');
            present.put((table, id.to_owned()), text.get(before..).map(length));
        }
        for (table, id) in furnished.iter().map(|(thing, _)| thing) {
            if !self.has(*table, id) {
                self.write_row(&mut text, *table, id);
                text.push(b'\n');
            }
        }
        self.journal.rewrite(&text, present)
    }

    /// Everything, as it is written down.
    pub(crate) fn all_rows(&self) -> Furnished {
        let row = |(table, id): (Table, &str)| {
            let mut row = Vec::new();
            self.write_row(&mut row, table, id);
            ((table, id.to_owned()), row)
        };
        self.all_things().map(row).collect()
    }
}
