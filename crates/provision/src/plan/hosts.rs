//! Our block in /etc/hosts.

use super::Machine;
use std::fmt::Write as _;

/// The lines that our block stands between.
const BEGIN: &str = "# BEGIN slurm-elastic";
const END: &str = "# END slurm-elastic";

/// A hosts file whose markers do not make sense; it is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct HostsError {
    line: usize,
    what: &'static str,
}

/// The hosts file with a line for each machine in our block, and all else byte for byte.
///
/// Without a block, one is added at the end; without machines it is taken away. With a `domain` each
/// machine has its full name first.
///
/// ```
/// let hosts = provision::plan::hosts(b"127.0.0.1 localhost\n", &[], None)?;
/// assert_eq!(hosts, b"127.0.0.1 localhost\n");
/// # Ok::<(), provision::plan::HostsError>(())
/// ```
pub fn hosts(
    old: &[u8],
    machines: &[Machine],
    domain: Option<&str>,
) -> Result<Vec<u8>, HostsError> {
    let (before, after) = around(old)?;
    let mut block = String::new();
    for Machine { node, address, .. } in machines {
        let full = domain.map(|domain| format!("{node}.{domain} ")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(block, "{address} {full}{node}");
    }
    let mut new = before.to_vec();
    if !block.is_empty() {
        if new.last().is_some_and(|byte| *byte != b'\n') {
            new.push(b'\n');
        }
        new.extend(format!("{BEGIN}\n{block}{END}\n").bytes());
    }
    new.extend(after);
    Ok(new)
}

/// What stands before and after our block.
fn around(old: &[u8]) -> Result<(&[u8], &[u8]), HostsError> {
    let (mut begin, mut end) = (None, None);
    let mut offset = 0;
    for (line, number) in old.split_inclusive(|byte| *byte == b'\n').zip(1..) {
        let next = offset + line.len();
        let error = |what| Err(HostsError { line: number, what });
        let word = line.trim_ascii();
        if word == BEGIN.as_bytes() {
            if begin.is_some() {
                return error("our block begins a second time");
            }
            begin = Some((offset, number));
        }
        if word == END.as_bytes() {
            if begin.is_none() || end.is_some() {
                return error("our block ends without a beginning");
            }
            end = Some(next);
        }
        offset = next;
    }
    match (begin, end) {
        (Some((begin, _)), Some(end)) => {
            Ok((old.get(..begin).unwrap_or_default(), old.get(end..).unwrap_or_default()))
        }
        (Some((_, line)), None) => {
            Err(HostsError { line, what: "our block begins and does not end" })
        }
        (None, _) => Ok((old, &[])),
    }
}
