//! What people read: text on standard output and error, in colour only on a terminal.
//!
//! Never `println!`: it panics when slurmctld has closed the pipe, and then the machines just started are lost sight of.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// To the beginning of the line, and nothing more in it.
const OVER: &str = "\r\x1b[K";

/// Where to write, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// How much to say.
    pub volume: Volume,
    /// True if standard output takes colours.
    pub colour: bool,
    /// True if standard output is a terminal.
    terminal: bool,
    /// True if standard error is a terminal, on which progress is drawn.
    pub draws: bool,
}

/// How much to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// Errors only.
    Quiet,
    /// What was done.
    #[default]
    Normal,
    /// Also how.
    Verbose,
}

/// A colour that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Added, well.
    Green,
    /// Removed, failed.
    Red,
    /// Worth a look.
    Yellow,
    /// Headings.
    Bold,
    /// Beside the point.
    Dim,
}

impl Output {
    /// Looks at the standard descriptors; `NO_COLOR` is respected.
    #[must_use]
    pub fn new(volume: Volume, no_color: bool) -> Self {
        Self {
            volume,
            colour: !no_color && io::stdout().is_terminal(),
            terminal: io::stdout().is_terminal(),
            draws: volume >= Volume::Normal && io::stderr().is_terminal(),
        }
    }

    /// The same without progress, as where lines are for machines.
    #[must_use]
    pub fn without_progress(self) -> Self {
        Self { draws: false, ..self }
    }

    /// A line on the terminal that the next one takes the place of; nothing elsewhere.
    pub fn draw(&self, line: impl Display) {
        if self.draws {
            let _ = write!(io::stderr(), "{OVER}{line}");
        }
    }

    /// What makes room for a line where progress may stand.
    fn room(self, terminal: bool) -> &'static str {
        if self.draws && terminal { OVER } else { "" }
    }

    /// A line on standard output, whatever the volume: it was asked for.
    pub fn print(&self, line: impl Display) {
        self.printed(writeln!(io::stdout(), "{}{line}", self.room(self.terminal)));
    }

    /// A file on standard output, byte for byte.
    pub fn hand_out(&self, file: &[u8]) {
        let mut stdout = io::stdout();
        self.printed(stdout.write_all(file).and_then(|()| stdout.flush()));
    }

    fn printed(self, written: io::Result<()>) {
        if let Err(error) = written
            && is_lost(&error)
            && !LOST.swap(true, Ordering::Relaxed)
        {
            self.complain(format_args!("cannot write to standard output: {error}"));
        }
    }

    /// A line about what was done.
    pub fn say(&self, line: impl Display) {
        if self.volume >= Volume::Normal {
            self.print(line);
        }
    }

    /// A line on standard error that is always shown.
    pub fn complain(&self, line: impl Display) {
        let _ = writeln!(io::stderr(), "{}{line}", self.room(true));
    }

    /// The text in a colour, where there are colours.
    #[must_use]
    pub fn paint(&self, colour: Colour, text: impl Display) -> String {
        if !self.colour {
            return text.to_string();
        }
        let code = match colour {
            Colour::Green => 32,
            Colour::Red => 31,
            Colour::Yellow => 33,
            Colour::Bold => 1,
            Colour::Dim => 2,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Whether something that was to be on standard output is not: there is one for the process, and so is this.
static LOST: AtomicBool = AtomicBool::new(false);

/// True if something that was to be on standard output is not, as on a full disk.
#[must_use]
pub fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Nobody there to read it is no error.
fn is_lost(error: &io::Error) -> bool {
    let closed = error.raw_os_error() == Some(nix::libc::EBADF);
    !(closed || error.kind() == io::ErrorKind::BrokenPipe)
}

/// An error with all its causes, as one text: `what: why: why`; an excerpt that it has comes last.
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let whole = error.to_string();
    let (first, excerpt) = whole.split_at(whole.find('\n').unwrap_or(whole.len()));
    let mut text = first.to_owned();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.push_str(excerpt);
    text
}
