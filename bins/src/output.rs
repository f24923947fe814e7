//! Text for people on standard output and standard error, with colours on a terminal.
//!
//! `println!` is not used: it panics when slurmctld has closed the pipe, and the machines just started would go untracked.

use hostlist::Hostlist;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Clears the current line of a terminal.
const OVER: &str = "\r\x1b[K";

/// Volume, colours and kind of standard output and standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// How much to print.
    pub volume: Volume,
    /// True to print colours on standard output.
    pub colour: bool,
    /// True if standard output is a terminal.
    terminal: bool,
    /// True to draw progress on standard error, which is then a terminal.
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
    /// A colour of the terminal's palette of 256.
    Indexed(u8),
}

impl Output {
    /// Inspects the output of this process. Colours need a terminal, and `no_color` disables them.
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

    /// Number of characters per line: the width of the terminal, or 120.
    #[must_use]
    pub fn width(&self) -> usize {
        let size = terminal_size::terminal_size().filter(|_| self.terminal);
        size.map_or(120, |(terminal_size::Width(columns), _)| usize::from(columns))
    }

    /// Draws a line on the terminal that the next output replaces. Does nothing elsewhere.
    pub fn draw(&self, line: impl Display) {
        if self.draws {
            let _ = write!(io::stderr(), "{OVER}{line}");
        }
    }

    /// The escape sequence that clears the progress line before another line is printed.
    fn clear_progress(self, terminal: bool) -> &'static str {
        if self.draws && terminal { OVER } else { "" }
    }

    /// Prints a line on standard output, whatever the volume.
    pub fn print(&self, line: impl Display) {
        self.printed(writeln!(io::stdout(), "{}{line}", self.clear_progress(self.terminal)));
    }

    /// Writes a file to standard output, byte for byte.
    pub fn print_file(&self, file: &[u8]) {
        let mut stdout = io::stdout();
        self.printed(stdout.write_all(file).and_then(|()| stdout.flush()));
    }

    fn printed(self, written: io::Result<()>) {
        if let Err(error) = written
            && loses_output(&error)
            && !LOST.swap(true, Ordering::Relaxed)
        {
            self.print_error(format_args!("cannot write to standard output: {error}"));
        }
    }

    /// Prints a line on standard output, unless quiet.
    pub fn print_unless_quiet(&self, line: impl Display) {
        if self.volume >= Volume::Normal {
            self.print(line);
        }
    }

    /// Prints a line on standard error, whatever the volume.
    pub fn print_error(&self, line: impl Display) {
        let _ = writeln!(io::stderr(), "{}{line}", self.clear_progress(true));
    }

    /// Colours a text, if the output has colours.
    #[must_use]
    pub fn paint(&self, colour: Colour, text: impl Display) -> String {
        if !self.colour {
            return text.to_string();
        }
        match colour {
            Colour::Green => format!("\x1b[32m{text}\x1b[0m"),
            Colour::Red => format!("\x1b[31m{text}\x1b[0m"),
            Colour::Yellow => format!("\x1b[33m{text}\x1b[0m"),
            Colour::Bold => format!("\x1b[1m{text}\x1b[0m"),
            Colour::Dim => format!("\x1b[2m{text}\x1b[0m"),
            Colour::Indexed(number) => format!("\x1b[38;5;{number}m{text}\x1b[0m"),
        }
    }
}

/// Maximum length of a printed host list, in characters.
const LONGEST_LIST: usize = 200;

/// Shortens a host list that is too long for a line, and adds its number of nodes.
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

/// True once writing to standard output has failed, for example on a full disk. There is one standard output per process.
static LOST: AtomicBool = AtomicBool::new(false);

/// True if writing to standard output has failed, for example on a full disk.
#[must_use]
pub fn has_lost_output() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// True for an error that loses output. A closed reader is none.
fn loses_output(error: &io::Error) -> bool {
    let closed = error.raw_os_error() == Some(nix::libc::EBADF);
    !(closed || error.kind() == io::ErrorKind::BrokenPipe)
}

/// Formats an error with all its causes, as `error: cause: cause`. An excerpt of a file comes last.
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
