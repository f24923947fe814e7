//! What people read: text on standard output and error, in colour only on a terminal.
//!
//! Never `println!`: it panics when slurmctld has closed the pipe, and then the machines just started are lost sight of.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

/// Where to write, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// How much to say.
    pub volume: Volume,
    /// True if standard output takes colours.
    pub colour: bool,
    /// True if standard error is a terminal, where progress can be drawn.
    pub interactive: bool,
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
            interactive: io::stderr().is_terminal(),
        }
    }

    /// A line on standard output, whatever the volume: it was asked for.
    pub fn print(&self, line: impl Display) {
        // Nobody there to read it is no error.
        let _ = writeln!(io::stdout(), "{line}");
    }

    /// A line about what was done.
    pub fn say(&self, line: impl Display) {
        if self.volume >= Volume::Normal {
            let _ = writeln!(io::stdout(), "{line}");
        }
    }

    /// A line on standard error that is always shown.
    pub fn complain(&self, line: impl Display) {
        let _ = writeln!(io::stderr(), "{line}");
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
