//! slurm.conf and its includes as one text.

use super::include::Walk;
use crate::{
    document::{Line, Statement},
    error::Result,
    version::SlurmVersion,
};
use std::{io, path::Path};

/// Reads the file at `path` and every file it includes, as [`Config::load`](crate::Config::load) does, into one text
/// without includes and comments. `rewrite` returns each line as it should be, or `None` to drop it.
pub fn flatten_includes(
    path: &Path,
    version: SlurmVersion,
    mut read: impl FnMut(&Path) -> io::Result<Vec<u8>>,
    mut rewrite: impl FnMut(&Line<'_>, &Statement<'_>) -> Option<String>,
) -> Result<String> {
    let mut text = String::new();
    let mut walk = Walk { version, read: &mut read, files: 0, open: Vec::new(), cluster: None };
    walk.file(path, &mut |line, statement| {
        let Some(written) = rewrite(line, &statement) else { return Ok(()) };
        let written = written.trim_end();
        text.push_str(written);
        // A continuation at the end of a file must not join the first line of the next file.
        text.push_str(if written.ends_with('\\') { "\n\n" } else { "\n" });
        Ok(())
    })?;
    Ok(text)
}
