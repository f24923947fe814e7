//! Answers for many expressions at once, as JSON, so that others can drive the crate with their own tables.
//!
//! ```text
//! batch [--dialect modern|22.05] [--strict]   one expression a line, as a JSON string
//! batch --fold                                one list of names a line, as a JSON array
//! ```
//!
//! Expressions are read exactly as Slurm reads them, mistakes it makes in silence included;
//! `--strict` makes those errors, as the library does by default.

use hostlist::{Dialect, Hostlist, Parser};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{self, BufRead, Write as _};
use std::process::ExitCode;

/// More names than this are told by their digest only.
const MAX_LISTED: usize = 2000;

fn main() -> ExitCode {
    let mut parser = Parser::new().lenient(true);
    let mut fold = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--fold" => fold = true,
            "--strict" => parser = parser.lenient(false),
            "--dialect" => match arguments.next().as_deref() {
                Some("modern") => parser = parser.dialect(Dialect::Modern),
                Some("22.05") => parser = parser.dialect(Dialect::V22_05),
                other => return usage(&format!("--dialect takes modern or 22.05, not {other:?}")),
            },
            other => return usage(&format!("unknown argument {other}")),
        }
    }
    let answer = |line: &str| if fold { folded(line) } else { read(line, &parser) };
    match answer_lines(answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => usage(&error.to_string()),
    }
}

fn usage(reason: &str) -> ExitCode {
    let _ = writeln!(
        io::stderr(),
        "batch: {reason}\nusage: batch [--dialect modern|22.05] [--strict] | batch --fold"
    );
    ExitCode::from(2)
}

fn answer_lines(answer: impl Fn(&str) -> serde_json::Result<Value>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (number, line) in (1..).zip(io::stdin().lock().lines()) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer =
            answer(&line).map_err(|error| io::Error::other(format!("line {number}: {error}")))?;
        writeln!(out, "{answer}")?;
    }
    out.flush()
}

fn read(line: &str, parser: &Parser) -> serde_json::Result<Value> {
    let expression: String = serde_json::from_str(line)?;
    let list = match parser.parse(&expression) {
        Ok(list) => list,
        Err(error) => {
            return Ok(json!({
                "expr": expression, "count": null, "hosts": null, "sha256": null,
                "folded": null, "sorted": null, "uniq": null, "error": error.reason(),
            }));
        }
    };
    Ok(json!({
        "expr": expression,
        "count": list.len(),
        "hosts": (list.len() <= MAX_LISTED).then(|| list.to_vec()),
        "sha256": digest(&list),
        "folded": list.to_string(),
        "sorted": list.sorted().to_string(),
        "uniq": list.uniq().to_string(),
        "error": null,
    }))
}

fn folded(line: &str) -> serde_json::Result<Value> {
    let names: Vec<String> = serde_json::from_str(line)?;
    let list: Hostlist = names.into_iter().collect();
    Ok(json!({
        "folded": list.to_string(),
        "sorted": list.sorted().to_string(),
        "uniq": list.uniq().to_string(),
    }))
}

/// SHA-256 of the names, each ended by a newline.
fn digest(list: &Hostlist) -> String {
    let mut hasher = Sha256::new();
    list.for_each(|name| {
        hasher.update(name);
        hasher.update("\n");
    });
    hex(&hasher.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
