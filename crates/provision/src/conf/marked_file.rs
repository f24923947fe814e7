//! The file with the markers of the node section.

use crate::state::{self, rehearse_write};
use slurmconf::{Config, Document, Markers, SlurmVersion};
use std::path::{Path, PathBuf};

/// The file that has the markers: slurm.conf, or one that it includes.
#[derive(Clone, Debug)]
pub struct MarkedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub document: Document,
}

/// An error in finding the markers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkerError {
    /// slurm.conf cannot be read.
    #[error(transparent)]
    Conf(#[from] slurmconf::Error),
    /// Both markers are missing.
    #[error(
        "{} has no line {start:?}, nor has a file it includes; put these two lines where the nodes are to stand:\n{start}\n{end}",
        path.display(), start = Markers::NODES.start, end = Markers::NODES.end
    )]
    None {
        /// slurm.conf.
        path: PathBuf,
    },
    /// One of the two markers is missing.
    #[error(
        "{file} has a line {found:?} and no line {missing:?}; put this line {place}:\n{missing}"
    )]
    One {
        /// The file with the other marker.
        file: String,
        /// The marker that was found.
        found: &'static str,
        /// The missing marker.
        missing: &'static str,
        /// Where the missing marker belongs.
        place: &'static str,
    },
}

impl MarkedFile {
    /// Finds the markers in slurm.conf and the files that it includes, in the order in which slurmctld reads them.
    pub fn find(conf: &Path, version: SlurmVersion) -> Result<Self, MarkerError> {
        let mut files = Vec::new();
        Config::load(conf, version, |path| {
            let bytes = std::fs::read(path)?;
            let document = Document::parse(bytes.clone()).named(&path.display().to_string());
            files.push(Self { path: path.to_owned(), document });
            Ok(bytes)
        })?;
        let mut lone = None;
        for file in files {
            let Err(error) = file.document.section(Markers::NODES) else { return Ok(file) };
            if !error.is_missing_marker() {
                return Err(error.into());
            }
            lone = lone.or_else(|| lone_marker(&file.document));
        }
        Err(lone.unwrap_or_else(|| MarkerError::None { path: conf.to_owned() }))
    }

    /// The lines between the markers.
    pub fn section(&self) -> slurmconf::Result<String> {
        self.document.section(Markers::NODES)
    }

    /// The default partition of the node section; the last of several, as in slurmctld.
    #[must_use]
    pub fn default_partition(&self) -> Option<String> {
        let found = self.parsed().partitions.into_iter().rfind(|it| it.default == Some(true));
        found.map(|partition| partition.name)
    }

    /// Tries everything but replacing the file, to find a full disk, missing permissions or an owner that cannot be set
    /// before anything is changed.
    pub fn rehearse(&self, text: &[u8]) -> state::Result<()> {
        rehearse_write(&self.path, text)
    }

    /// The nodes of the section. A section that cannot be parsed counts as empty, because it is rewritten.
    pub(super) fn parsed(&self) -> Config {
        self.section().ok().and_then(|text| Config::parse(&text).ok()).unwrap_or_default()
    }
}

/// The error about a file with only one marker.
fn lone_marker(document: &Document) -> Option<MarkerError> {
    let has = |marker: &str| {
        let mut lines = document.as_bytes().split(|&byte| byte == b'\n');
        lines.any(|line| line.trim_ascii_end() == marker.as_bytes())
    };
    let Markers { start, end } = Markers::NODES;
    let (found, missing, place) = match (has(start), has(end)) {
        (true, false) => (start, end, "after the last of the nodes"),
        (false, true) => (end, start, "before the first of the nodes"),
        (true, true) | (false, false) => return None,
    };
    Some(MarkerError::One { file: document.name().to_owned(), found, missing, place })
}
