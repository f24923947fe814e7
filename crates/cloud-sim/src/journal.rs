//! The state on disk: one line per change, rewritten short at each start and when it has grown.

use crate::error::Error;
use crate::world::World;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kinds of things that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Table {
    Instances,
    Images,
    WorkRequests,
    Tokens,
    ComputeClusters,
    Configurations,
    Pools,
    BootVolumes,
}

/// One line: the new form of a thing, or that it is gone.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    table: Table,
    id: String,
    now: Option<Value>,
}

/// The file, and what changed since it was last written to.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    file: Option<(PathBuf, File)>,
    touched: Vec<(Table, String)>,
    /// How many bytes the file has.
    length: u64,
    /// How many it had when it was last rewritten.
    compact: u64,
    /// What the settings furnish, which is not written down.
    furnished: Vec<Row>,
    /// Why it ended, if it did.
    failure: Option<(PathBuf, Arc<io::Error>)>,
}

/// A file of less than this is not worth a rewrite.
const SMALL: u64 = 1 << 20;

/// How many times its shortest length the file may reach.
const GROWTH: u64 = 4;

impl Journal {
    /// Opens the journal of a directory and reads what it remembers.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Vec<Row>), Error> {
        let path = path_in(directory);
        let fail = |source| Error::File { path: path.clone(), source };
        fs::create_dir_all(directory).map_err(fail)?;
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).read(true).open(&path).map_err(fail)?;
        let rows = read(&path, &file)?;
        Ok((Self { file: Some((path, file)), ..Self::default() }, rows))
    }

    /// Says what is there without having been written down.
    pub(crate) fn furnish(&mut self, rows: Vec<Row>) {
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

    /// Adds the lines of one change in one write, so that all of it is there or nothing. A disk
    /// that fails must not fail the cloud: the state then ends with it, and [`Journal::kept`] tells.
    pub(crate) fn append(&mut self, rows: &[Row]) {
        let Some((path, file)) = &mut self.file else {
            return;
        };
        if rows.is_empty() {
            return;
        }
        match write_rows(file, rows) {
            Ok(bytes) => self.length = self.length.saturating_add(bytes),
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
        self.file.is_some() && self.length > self.compact.saturating_mul(GROWTH).max(SMALL)
    }

    /// Replaces the file by one with these rows only. One that cannot be replaced stays, and is
    /// tried again when it has grown as much once more.
    pub(crate) fn rewrite(&mut self, rows: &[Row]) -> Result<(), Error> {
        let Some((path, _)) = &self.file else {
            return Ok(());
        };
        let path = path.clone();
        self.compact = self.length;
        let new = path.with_extension("new");
        let write = || {
            let mut file = File::create(&new)?;
            let bytes = write_rows(&mut file, rows)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            Ok((file, bytes))
        };
        let written: io::Result<(File, u64)> = write();
        let (file, bytes) = written.map_err(|source| Error::File { path: path.clone(), source })?;
        self.file = Some((path, file));
        (self.length, self.compact) = (bytes, bytes);
        Ok(())
    }
}

fn path_in(directory: &Path) -> PathBuf {
    directory.join("journal.jsonl")
}

fn write_rows(file: &mut File, rows: &[Row]) -> io::Result<u64> {
    let mut text = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut text, row)?;
        text.push(b'\n');
    }
    file.write_all(&text)?;
    Ok(u64::try_from(text.len()).unwrap_or(u64::MAX))
}

/// Reads all lines. The last may be cut short, where the program was killed as it wrote.
fn read(path: &Path, file: &File) -> Result<Vec<Row>, Error> {
    let fail = |source| Error::File { path: path.to_owned(), source };
    let mut text = Vec::new();
    BufReader::new(file).read_to_end(&mut text).map_err(fail)?;
    // Bytes and not text: the cut may be inside a character.
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let mut rows = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        match serde_json::from_slice(line) {
            Ok(row) => rows.push(row),
            Err(_) if index + 1 == lines.len() => {}
            Err(source) => {
                return Err(Error::Journal { path: path.to_owned(), line: index + 1, source });
            }
        }
    }
    Ok(rows)
}

impl World {
    /// A thing as it is written down; `None` if it is gone.
    pub(crate) fn row(&self, table: Table, id: &str) -> Option<Value> {
        let value = match table {
            Table::Instances => serde_json::to_value(self.instances.get(id)?),
            Table::Images => serde_json::to_value(self.images.get(id)?),
            Table::WorkRequests => serde_json::to_value(self.work_requests.get(id)?),
            Table::Tokens => serde_json::to_value(self.tokens.get(id)?),
            Table::ComputeClusters => serde_json::to_value(self.compute_clusters.get(id)?),
            Table::Configurations => serde_json::to_value(self.configurations.get(id)?),
            Table::Pools => serde_json::to_value(self.pools.get(id)?),
            Table::BootVolumes => serde_json::to_value(self.boot_volumes.get(id)?),
        };
        value.ok()
    }

    /// Takes over the lines of a journal. One that another version wrote and we cannot read is
    /// refused: it would be gone when the file is written anew.
    pub(crate) fn put_rows(&mut self, directory: &Path, rows: Vec<Row>) -> Result<(), Error> {
        for (index, row) in rows.into_iter().enumerate() {
            let unread =
                |source| Error::Journal { path: path_in(directory), line: index + 1, source };
            self.put_row(row).map_err(unread)?;
        }
        Ok(())
    }

    fn put_row(&mut self, row: Row) -> serde_json::Result<()> {
        let Row { table, id, now: row } = row;
        match table {
            Table::Instances => put(&mut self.instances, id, row),
            Table::Images => put(&mut self.images, id, row),
            Table::WorkRequests => put(&mut self.work_requests, id, row),
            Table::Tokens => put(&mut self.tokens, id, row),
            Table::ComputeClusters => put(&mut self.compute_clusters, id, row),
            Table::Configurations => put(&mut self.configurations, id, row),
            Table::Pools => put(&mut self.pools, id, row),
            Table::BootVolumes => put(&mut self.boot_volumes, id, row),
        }
    }

    pub(crate) fn row_of(&self, table: Table, id: String) -> Row {
        Row { now: self.row(table, &id), table, id }
    }

    /// Writes the file anew, with what is there now and nothing of the past.
    pub(crate) fn compact(&mut self) -> Result<(), Error> {
        let rows = self.rows_beside(&self.journal.furnished);
        self.journal.rewrite(&rows)
    }

    /// Everything that is not as the settings furnish it, and what they furnish that is gone.
    fn rows_beside(&self, furnished: &[Row]) -> Vec<Row> {
        let mut rows = self.all_rows();
        rows.retain(|row| !furnished.contains(row));
        let gone = |row: &&Row| self.row(row.table, &row.id).is_none();
        let gone = furnished.iter().filter(gone);
        rows.extend(gone.map(|row| Row { table: row.table, id: row.id.clone(), now: None }));
        rows
    }

    /// Everything, as it is written down.
    pub(crate) fn all_rows(&self) -> Vec<Row> {
        let ids = |table, ids: Vec<&String>| {
            ids.into_iter().map(move |id| (table, id.clone())).collect::<Vec<_>>()
        };
        let mut all = ids(Table::Instances, self.instances.keys().collect());
        all.extend(ids(Table::Images, self.images.keys().collect()));
        all.extend(ids(Table::WorkRequests, self.work_requests.keys().collect()));
        all.extend(ids(Table::Tokens, self.tokens.keys().collect()));
        all.extend(ids(Table::ComputeClusters, self.compute_clusters.keys().collect()));
        all.extend(ids(Table::Configurations, self.configurations.keys().collect()));
        all.extend(ids(Table::Pools, self.pools.keys().collect()));
        all.extend(ids(Table::BootVolumes, self.boot_volumes.keys().collect()));
        all.into_iter().map(|(table, id)| self.row_of(table, id)).collect()
    }
}

fn put<T: serde::de::DeserializeOwned>(
    things: &mut std::collections::BTreeMap<String, T>,
    id: String,
    row: Option<Value>,
) -> serde_json::Result<()> {
    match row {
        Some(row) => drop(things.insert(id, serde_json::from_value(row)?)),
        None => drop(things.remove(&id)),
    }
    Ok(())
}
