//! The log: one write per line, in Cluster in the Cloud's format or as JSON.
//!
//! Several programs append to one file. A line that is written with one call is never mixed with another.

use crate::args::LogFormat;
use nix::unistd::getuid;
use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Prefixes of the `tracing` targets of this project's libraries.
const LIBRARIES: [&str; 3] = ["cloud_", "provision", "slurm"];

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details, only in a verbose log.
    Debug,
    /// Normal operation.
    Info,
    /// Something unexpected; the work goes on.
    Warning,
    /// A failure.
    Error,
}

impl Level {
    /// The name in the log, as in Python's logging, which operators search for.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// The log of one run.
#[derive(Debug)]
pub struct Log {
    sink: Mutex<Sink>,
    format: LogFormat,
    least: Level,
    program: String,
    run: String,
    /// True once the user was warned that the log cannot be written.
    warned: AtomicBool,
}

#[derive(Debug)]
enum Sink {
    Nowhere,
    File(File),
    StandardError,
}

impl Log {
    /// Creates a log that drops every line.
    #[must_use]
    pub fn nowhere(program: &str) -> Self {
        Self::with(Sink::Nowhere, LogFormat::Text, program)
    }

    /// Opens the file for appending; `-` is standard error.
    pub fn open(path: &Path, format: LogFormat, program: &str) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::with(Sink::StandardError, format, program));
        }
        let file = appendable(path, getuid().is_root())?;
        // slurmctld's user must be able to append to a log that root created.
        provision::state::inherit_owner(path);
        Ok(Self::with(Sink::File(file), format, program))
    }

    fn with(sink: Sink, format: LogFormat, program: &str) -> Self {
        // Enough to distinguish the runs in one log.
        let run = format!("{:08x}", std::process::id() ^ seconds());
        Self {
            sink: Mutex::new(sink),
            format,
            least: Level::Info,
            program: program.to_owned(),
            run,
            warned: AtomicBool::new(false),
        }
    }

    /// Sets whether details are logged.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.least = if verbose { Level::Debug } else { Level::Info };
        self
    }

    /// Also writes the `tracing` events of the libraries, until another log takes them.
    pub fn take_events(self: &Arc<Self>) {
        *EVENT_LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(self));
        // It fails only if there is a subscriber already.
        let _ = tracing::subscriber::set_global_default(Events);
    }

    /// The id of this run, which is in every line.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Writes a line, which may be about a node. If the log cannot be written, the program warns once and goes on.
    pub fn write(&self, level: Level, node: Option<&str>, message: &str) {
        if level < self.least {
            return;
        }
        let (node, message) = (node.map(bounded), bounded(message));
        let line = match self.format {
            LogFormat::Text => self.text(level, node.as_deref(), &message),
            LogFormat::Json => self.json(level, node.as_deref(), &message),
        };
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let written = match &mut *sink {
            Sink::Nowhere => Ok(()),
            Sink::File(file) => file.write_all(line.as_bytes()),
            Sink::StandardError => io::stderr().write_all(line.as_bytes()),
        };
        if let Err(error) = written
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            let _ = writeln!(io::stderr(), "warning: cannot write the log: {error}");
        }
    }

    fn text(&self, level: Level, node: Option<&str>, message: &str) -> String {
        let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S,%3f").to_string();
        let (program, level) = (&self.program, level.name());
        // A cloud's message may have several lines.
        let message = one_line(message);
        let node = node.map(|node| format!("{node}:  ")).unwrap_or_default();
        format!("{now} {program:<10} {level:<8} {node}{message} [{}]\n", self.run)
    }

    fn json(&self, level: Level, node: Option<&str>, message: &str) -> String {
        let line = serde_json::json!({
            "time": jiff::Timestamp::now().to_string(),
            "program": self.program,
            "run": self.run,
            "level": level.name().to_ascii_lowercase(),
            "node": node,
            "message": message,
        });
        format!("{line}\n")
    }
}

/// Writes the `tracing` events of the libraries to the log. docs/dependencies.md says why not with `tracing-subscriber`.
struct Events;

/// The log that gets events. Each round of `reconcile --watch` opens a new one, because logrotate may replace the file.
static EVENT_LOG: Mutex<Option<Arc<Log>>> = Mutex::new(None);

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        LIBRARIES.iter().any(|name| metadata.target().starts_with(name))
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let level = match *event.metadata().level() {
            tracing::Level::ERROR => Level::Error,
            tracing::Level::WARN => Level::Warning,
            tracing::Level::INFO => Level::Info,
            _ => Level::Debug,
        };
        let message = &format!("{}{}", text.message, text.fields);
        let log = EVENT_LOG.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(log) = log {
            log.write(level, None, message);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// The message of an event, and its fields as `name=value`.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            let _ = fmt::Write::write_fmt(&mut self.fields, format_args!(" {field}={value:?}"));
        }
    }
}

/// True for a directory that only root can write, such as `/dev`.
fn only_root_writes(directory: Option<&Path>) -> bool {
    let found = directory.and_then(|directory| fs::metadata(directory).ok());
    found.is_some_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
}

/// Opens or creates a file for appending. A FIFO is an error.
fn appendable(path: &Path, is_root: bool) -> io::Result<File> {
    let file = open_appending(path, is_root)?;
    if fs::symlink_metadata(path)?.file_type().is_fifo() {
        // A reader that stops reading would block the program.
        return Err(io::Error::other("it is a FIFO; name a plain file"));
    }
    Ok(file)
}

/// Opens or creates a file for appending. Slurmctld's user often owns the directory and could put a symbolic link there, so
/// root follows only its own links.
fn open_appending(path: &Path, is_root: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).custom_flags(nix::libc::O_NONBLOCK);
    if !is_root || only_root_writes(path.parent()) {
        return options.open(path);
    }
    let real = match fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() && link.uid() != 0 => {
            let why = "it is a symbolic link of another user, which root does not follow; name the file itself";
            return Err(io::Error::other(why));
        }
        Ok(link) if link.is_symlink() => path.with_file_name(fs::read_link(path)?),
        Ok(_) | Err(_) => path.to_owned(),
    };
    options.custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOFOLLOW).open(real)
}

/// Maximum length of a text in a line of the log, in characters.
const LONGEST: usize = 2000;

/// Shortens a text that is too long for a line of the log, and says by how much.
fn bounded(text: &str) -> Cow<'_, str> {
    let Some((at, _)) = text.char_indices().nth(LONGEST) else { return Cow::Borrowed(text) };
    let (start, rest) = text.split_at(at);
    Cow::Owned(format!("{start}… ({} more characters)", rest.chars().count()))
}

fn one_line(text: &str) -> String {
    text.split(['\n', '\r'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn seconds() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn a_fifo_in_the_place_of_the_log_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("elastic.log");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        for is_root in [true, false] {
            assert!(appendable(&fifo, is_root).is_err(), "nobody reads it");
        }
        let _reader = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let error = appendable(&fifo, true).unwrap_err();
        assert!(error.to_string().contains("FIFO"), "{error}");
    }

    #[test]
    fn a_line_of_the_log_is_bounded() {
        assert_eq!(bounded("short"), "short");
        let line = bounded(&"é".repeat(LONGEST + 5)).into_owned();
        assert!(line.ends_with("é… (5 more characters)"), "{line}");
        assert!(line.chars().count() < LONGEST + 30);
    }

    #[test]
    fn root_does_not_follow_a_link_of_another_user_in_the_place_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("elastic.log"), folder.path().join("profile"));
        symlink("profile", &link).unwrap();
        assert!(appendable(Path::new("/dev/stderr"), true).is_ok(), "only root can link there");
        // Only root can change an owner.
        if getuid().is_root() {
            lchown(folder.path(), Some(12_345), None).unwrap();
            lchown(&link, Some(12_345), None).unwrap();
        }
        assert!(appendable(&link, true).is_err());
        assert!(!target.exists());
        assert!(appendable(&link, false).is_ok(), "its own user may well follow it");
        if getuid().is_root() {
            lchown(&link, Some(0), None).unwrap();
            writeln!(appendable(&link, true).unwrap(), "line").unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), "line\n", "root's own is followed");
        }
    }
}
