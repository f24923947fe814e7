//! Following includes.

use crate::{
    document::{Document, Line, Statement},
    error::{Error, Problem, Result, file_name},
    version::SlurmVersion,
};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The deepest nesting of includes.
const MAX_DEPTH: usize = 16;

/// The most included files: two lines in each of 16 files could otherwise include 65,536.
const MAX_FILES: usize = 1000;

/// Reads a file and its includes line by line, in slurmctld's order.
pub(super) struct Walk<'a> {
    pub(super) version: SlurmVersion,
    pub(super) read: &'a mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
    /// The number of files read.
    pub(super) files: usize,
    /// The stack of open files, the outermost first.
    pub(super) open: Vec<PathBuf>,
    /// The value of `%c` in a file name: the `ClusterName` so far, in lower case.
    pub(super) cluster: Option<String>,
}

impl Walk<'_> {
    /// Calls `visit` for every line that is neither blank nor an `Include`.
    pub(super) fn file(
        &mut self,
        path: &Path,
        visit: &mut dyn FnMut(&Line<'_>, Statement<'_>) -> Result<()>,
    ) -> Result<()> {
        let bytes = (self.read)(path).map_err(|source| {
            Error::from(Problem::Unreadable { file: file_name(path).to_string(), source })
        })?;
        self.files += 1;
        let document = Document::parse(bytes).named(&file_name(path));
        self.open.push(path.to_owned());
        let done = document.lines().try_for_each(|line| self.line(&line, visit));
        self.open.pop();
        done
    }

    fn line(
        &mut self,
        line: &Line<'_>,
        visit: &mut dyn FnMut(&Line<'_>, Statement<'_>) -> Result<()>,
    ) -> Result<()> {
        match line.read()? {
            Statement::Blank => Ok(()),
            Statement::Include(file) => {
                let path = self.resolve(&file).map_err(|problem| line.problem(problem))?;
                match self.file(&path, visit) {
                    // An unreadable file is reported at the line that includes it.
                    Err(error) if error.location().is_none() => {
                        Err(line.problem(error.into_problem()))
                    }
                    done => done,
                }
            }
            Statement::Parameter(pair) => {
                if pair.key.eq_ignore_ascii_case("ClusterName") {
                    self.cluster = Some(pair.value.to_ascii_lowercase());
                }
                visit(line, Statement::Parameter(pair))
            }
            definition @ Statement::Definition(_) => visit(line, definition),
        }
    }

    fn resolve(&self, file: &str) -> std::result::Result<PathBuf, Problem> {
        if file.contains(['*', '?', '[']) {
            return Err(Problem::IncludePattern);
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::IncludeDepth(MAX_DEPTH));
        }
        if self.files >= MAX_FILES {
            return Err(Problem::IncludeFiles(MAX_FILES));
        }
        let file = match &self.cluster {
            Some(cluster) => file.replace("%c", cluster),
            None => file.to_owned(),
        };
        let nested = self.version.includes_from_including_file();
        let base = if nested { self.open.last() } else { self.open.first() };
        let directory = base.and_then(|path| path.parent()).unwrap_or(Path::new(""));
        let path = directory.join(&file);
        if self.open.contains(&path) {
            return Err(Problem::IncludeLoop { file: file_name(&path).to_string() });
        }
        Ok(path)
    }
}
