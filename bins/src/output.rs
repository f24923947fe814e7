//! Text for people on standard output and standard error, with colours on a terminal.
//!
//! Never `println!`: it panics when slurmctld has closed the pipe, and then the machines just started are lost sight of.

use hostlist::Hostlist;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Clears the current line of a terminal.
const OVER: &str = "\r\x1b[K";

/// Where to write, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// How much to print.
    pub volume: Volume,
    /// True if standard output takes colours.
    pub colour: bool,
    /// True if standard output is a terminal.
    terminal: bool,
    /// True if standard error is a terminal, on which progress is drawn.
    pub draws: bool,
}

/// How much to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volume {
    /// Errors only.
    Quiet,
    /// Results.
    #[default]
    Normal,
    /// Results and details.
    Verbose,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Added, successful.
    Green,
    /// Removed, failed.
    Red,
    /// A warning.
    Yellow,
    /// Headings.
    Bold,
    /// Secondary text.
    Dim,
}

impl Output {
    /// The output of this process: colours only on a terminal, and not if `no_color` is set.
    #[must_use]
    pub fn new(volume: Volume, no_color: bool) -> Self {
        Self {
            volume,
            colour: !no_color && io::stdout().is_terminal(),
            terminal: io::stdout().is_terminal(),
            draws: volume >= Volume::Normal && io::stderr().is_terminal(),
        }
    }

    /// This output without progress, for output that machines read.
    #[must_use]
    pub fn without_progress(self) -> Self {
        Self { draws: false, ..self }
    }

    /// How many characters fit on a line: as many as the terminal has, or enough for a page.
    #[must_use]
    pub fn width(&self) -> usize {
        let size = terminal_size::terminal_size().filter(|_| self.terminal);
        size.map_or(120, |(terminal_size::Width(columns), _)| usize::from(columns))
    }

    /// Draws a line on the terminal that the next line replaces; does nothing elsewhere.
    pub fn draw(&self, line: impl Display) {
        if self.draws {
            let _ = write!(io::stderr(), "{OVER}{line}");
        }
    }

    /// The escape sequence that removes the progress line before another is printed.
    fn room(self, terminal: bool) -> &'static str {
        if self.draws && terminal { OVER } else { "" }
    }

    /// Prints a line on standard output, whatever the volume.
    pub fn print(&self, line: impl Display) {
        self.printed(writeln!(io::stdout(), "{}{line}", self.room(self.terminal)));
    }

    /// Writes a file to standard output, byte for byte.
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

    /// Prints a line on standard output, unless quiet.
    pub fn say(&self, line: impl Display) {
        if self.volume >= Volume::Normal {
            self.print(line);
        }
    }

    /// Prints a line on standard error, whatever the volume.
    pub fn complain(&self, line: impl Display) {
        let _ = writeln!(io::stderr(), "{}{line}", self.room(true));
    }

    /// The text in a colour, if the output has colours.
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

/// Longest host list in a line for people, in characters.
const LONGEST_LIST: usize = 200;

/// A host list that fits into a line: of a long one the beginning, and how many nodes it has.
#[must_use]
pub fn shortened(nodes: &Hostlist) -> String {
    let text = nodes.to_string();
    let Some((start, _)) = text.char_indices().nth(LONGEST_LIST).map(|(at, _)| text.split_at(at))
    else {
        return text;
    };
    let whole = start.rfind(',').and_then(|comma| start.get(..comma)).unwrap_or(start);
    format!("{whole},… ({} nodes)", nodes.len())
}

/// True once standard output could not be written, as on a full disk; there is one standard output per process.
static LOST: AtomicBool = AtomicBool::new(false);

/// True if standard output could not be written, as on a full disk.
#[must_use]
pub fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// True for an error that loses output; that nobody reads it is none.
fn is_lost(error: &io::Error) -> bool {
    let closed = error.raw_os_error() == Some(nix::libc::EBADF);
    !(closed || error.kind() == io::ErrorKind::BrokenPipe)
}

/// An error with all its causes as one text, `error: cause: cause`; an excerpt of a file comes last.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_host_list_is_shortened_and_counted() {
        let short: Hostlist = "n[1-5000]".parse().unwrap();
        assert_eq!(shortened(&short), "n[1-5000]");
        let odd: Hostlist = (0..2500).map(|number| format!("n{}", 2 * number + 1)).collect();
        let text = shortened(&odd);
        assert!(text.starts_with("n[1,3,5,") && text.ends_with(",… (2500 nodes)"), "{text}");
        assert!(text.chars().count() < LONGEST_LIST + 20, "{text}");
    }
}
