//! A file and all it includes, as one text.

use super::include::Walk;
use crate::{
    document::{Line, Statement},
    error::Result,
    version::SlurmVersion,
};
use std::{io, path::Path};

/// Reads the file at `path` and all it includes, as [`Config::load`](crate::Config::load) does, and gives them as one
/// text that includes nothing: each line as `rewrite` has it, or not at all where that gives none. Comments are left out.
///
/// ```
/// use slurmconf::{SlurmVersion, Statement, flatten_includes};
/// use std::path::Path;
///
/// let read = |path: &Path| match path.to_str() {
///     Some("/etc/slurm.conf") => Ok(b"ClusterName=c1\nInclude more.conf\nSlurmctldPort=6817\n".to_vec()),
///     _ => Ok(b"# more\nSlurmctldHost=h1\nNodeName=n1".to_vec()),
/// };
/// let text = flatten_includes(Path::new("/etc/slurm.conf"), SlurmVersion::new(24, 11), read, |line, statement| match statement {
///     Statement::Parameter(pair) if pair.key == "SlurmctldHost" => None,
///     _ => Some(line.text().into_owned()),
/// })?;
/// assert_eq!(text, "ClusterName=c1\nNodeName=n1\nSlurmctldPort=6817\n");
/// # Ok::<(), slurmconf::Error>(())
/// ```
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
        // A last line of a file that asks for more would take in the next file's first.
        text.push_str(if written.ends_with('\\') { "\n\n" } else { "\n" });
        Ok(())
    })?;
    Ok(text)
}
