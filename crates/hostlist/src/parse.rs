//! Reading an expression: tokens, brackets, limits.

use crate::bracket::{self, Extras};
use crate::digits::push_number;
use crate::error::{ErrorKind, ParseError};
use crate::list::{Hostlist, Text};
use crate::product::{Part, Product};
use crate::span::Span;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str::FromStr;

/// The grammar of a Slurm release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Slurm 23.11 to 26.05: text may follow the last bracket, `[` needs its `]`, a newline separates.
    #[default]
    Modern,
    /// Slurm 22.05: nothing may follow the last bracket, `n[1-3` is the host `n]`, a newline is part
    /// of a name.
    V22_05,
}

/// A parser with a dialect and limits.
///
/// ```
/// use hostlist::{Dialect, ErrorKind, Parser};
///
/// let parser = Parser::new().dialect(Dialect::V22_05).max_hosts(1000);
/// assert_eq!(parser.parse("n[1-3],m")?.len(), 4);
/// let error = parser.parse("n[0-65535]m[0-65535]").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::TooManyHosts);
/// # Ok::<(), hostlist::ParseError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Parser {
    dialect: Dialect,
    extras: Extras,
    max_hosts: u64,
    max_bytes: u64,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            dialect: Dialect::Modern,
            extras: Extras::default(),
            max_hosts: 1 << 24,
            max_bytes: 1 << 30,
        }
    }
}

impl Parser {
    /// A parser of the modern dialect, with limits of 2²⁴ hosts and 1 GiB of names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the dialect.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Also accepts what Slurm accepts by mistake: text after the low end of a range (`n[1a-3]`), and errors in all but
    /// the last two of three or more brackets, which silently drop the token.
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.extras.lenient = lenient;
        self
    }

    /// Also accepts ClusterShell's steps, which Slurm refuses: `n[0-6/2]` is `n[0,2,4,6]`.
    ///
    /// ```
    /// let list = hostlist::Parser::new().steps(true).parse("n[00-09/3]")?;
    /// assert_eq!(list.to_string(), "n[00,03,06,09]");
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    pub fn steps(mut self, steps: bool) -> Self {
        self.extras.steps = steps;
        self
    }

    /// Limits the number of hosts.
    pub fn max_hosts(mut self, hosts: u64) -> Self {
        self.max_hosts = hosts;
        self
    }

    /// Limits the length of all names together.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Parses an expression.
    pub fn parse(&self, expression: &str) -> Result<Hostlist, ParseError> {
        let refuse = |(kind, at)| ParseError::new(kind, expression, at);
        if u32::try_from(expression.len()).is_err() {
            return Err(refuse((ErrorKind::TooLong, 0)));
        }
        if expression.as_bytes().contains(&0) {
            return Err(refuse((ErrorKind::Nul, expression.find('\0').unwrap_or_default())));
        }
        let mut reader = Reader { parser: self, list: Hostlist::with_room(), bytes: 0 };
        let mut tokens = Tokens::new(expression, self.dialect);
        while let Some((token, at)) = tokens.next() {
            reader.token(token).map_err(|(kind, offset)| refuse((kind, at + offset)))?;
            reader.check_total().map_err(|kind| refuse((kind, at)))?;
        }
        Ok(reader.list)
    }

    /// Parses bytes; it is an error if they are not UTF-8.
    pub fn parse_bytes(&self, expression: &[u8]) -> Result<Hostlist, ParseError> {
        match core::str::from_utf8(expression) {
            Ok(text) => self.parse(text),
            Err(error) => {
                let at = error.valid_up_to();
                let shown = String::from_utf8_lossy(expression);
                Err(ParseError::new(ErrorKind::NotUtf8, &shown, at))
            }
        }
    }
}

impl Hostlist {
    /// Parses an expression of a dialect, with the limits of [`Parser::new`].
    pub fn parse_with(expression: &str, dialect: Dialect) -> Result<Self, ParseError> {
        Parser::new().dialect(dialect).parse(expression)
    }
}

impl FromStr for Hostlist {
    type Err = ParseError;

    fn from_str(expression: &str) -> Result<Self, ParseError> {
        Parser::new().parse(expression)
    }
}

/// The reason of an error, and the byte in the token.
pub(crate) type Refusal = (ErrorKind, usize);

/// Cuts an expression at its separators, but not inside brackets.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// The first `]` at or after some earlier point (past the end where there is none), so that it is
    /// not searched for again and again.
    close: Option<usize>,
    dialect: Dialect,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str, dialect: Dialect) -> Self {
        Self { text, at: 0, close: None, dialect }
    }

    fn separates(&self, byte: u8) -> bool {
        matches!(byte, b',' | b' ' | b'\t') || (byte == b'\n' && self.dialect == Dialect::Modern)
    }

    /// The next token and where it begins.
    fn next(&mut self) -> Option<(&'a str, usize)> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let start = self.at + rest.iter().position(|byte| !self.separates(*byte))?;
        let end = self.end(start);
        self.at = end;
        Some((self.text.get(start..end)?, start))
    }

    /// The first separator that does not stand between a `[` and the first `]` after the last pair.
    fn end(&mut self, start: usize) -> usize {
        let mut scan = start;
        loop {
            let rest = self.text.as_bytes().get(scan..).unwrap_or_default();
            let stop = rest.iter().position(|byte| *byte == b'[' || self.separates(*byte));
            let Some(stop) = stop else { return self.text.len() };
            if rest.get(stop) != Some(&b'[') {
                return scan + stop;
            }
            let close = self.close_from(scan);
            if close < scan + stop || close == self.text.len() {
                let separator = rest.iter().position(|byte| self.separates(*byte));
                return separator.map_or(self.text.len(), |separator| scan + separator);
            }
            scan = close + 1;
        }
    }

    fn close_from(&mut self, from: usize) -> usize {
        if let Some(close) = self.close.filter(|close| *close >= from) {
            return close;
        }
        let rest = self.text.get(from..).unwrap_or_default();
        let close = rest.find(']').map_or(self.text.len(), |at| from + at);
        self.close = Some(close);
        close
    }
}

/// Turns tokens into items of the list.
struct Reader<'a> {
    parser: &'a Parser,
    list: Hostlist,
    /// Bytes of all names so far.
    bytes: u64,
}

impl Reader<'_> {
    fn check_total(&self) -> Result<(), ErrorKind> {
        let hosts = u64::try_from(self.list.len()).unwrap_or(u64::MAX);
        if hosts > self.parser.max_hosts {
            return Err(ErrorKind::TooManyHosts);
        }
        if self.bytes > self.parser.max_bytes {
            return Err(ErrorKind::TooManyBytes);
        }
        Ok(())
    }

    fn add_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn token(&mut self, token: &str) -> Result<(), Refusal> {
        let Some((before, after)) = token.rsplit_once('[') else {
            self.plain(token);
            return Ok(());
        };
        let Some((numbers, suffix)) = after.split_once(']') else {
            return self.unclosed(before, after);
        };
        if !suffix.is_empty() && self.parser.dialect == Dialect::V22_05 {
            return Err((ErrorKind::Suffix, token.len() - suffix.len()));
        }
        let place = |(kind, at): Refusal| (kind, before.len() + 1 + at);
        let extras = self.parser.extras;
        if suffix.is_empty() && !before.bytes().any(|byte| byte == b'[') {
            let prefix = u64::try_from(before.len()).unwrap_or(u64::MAX);
            let mut text = None;
            return bracket::read(numbers, extras, |span| {
                match text {
                    Some(text) => self.list.push_span(text, span),
                    None => text = Some(self.list.push_range(before, span)),
                }
                self.add_bytes(span.bytes().saturating_add(span.count().saturating_mul(prefix)));
            })
            .map_err(place);
        }
        let mut spans = Vec::new();
        bracket::read(numbers, extras, |span| spans.push(span)).map_err(place)?;
        self.product(before, spans, suffix)
    }

    fn plain(&mut self, name: &str) {
        self.add_bytes(u64::try_from(name.len()).unwrap_or(u64::MAX));
        self.list.push(name);
    }

    /// Reads a `[` without `]`, which 22.05 accepts.
    fn unclosed(&mut self, before: &str, after: &str) -> Result<(), Refusal> {
        match (self.parser.dialect, before, after) {
            (Dialect::Modern, ..) => Err((ErrorKind::UnclosedBracket, before.len())),
            (Dialect::V22_05, "", "") => Err((ErrorKind::EmptyName, 0)),
            (Dialect::V22_05, "", name) => {
                self.plain(name);
                Ok(())
            }
            (Dialect::V22_05, ..) => {
                self.plain(&format!("{before}]"));
                Ok(())
            }
        }
    }

    fn add_text(&mut self, text: &mut Vec<u8>) -> Text {
        let kept = self.list.add_text(core::str::from_utf8(text).unwrap_or_default());
        text.clear();
        kept
    }

    fn product(&mut self, before: &str, spans: Vec<Span>, suffix: &str) -> Result<(), Refusal> {
        let Some((brackets, literal)) = bracket::prefix(before, self.parser.extras)? else {
            return Ok(());
        };
        // A bracket of one value is as good as text.
        let mut outer = Vec::new();
        let mut text = Vec::new();
        for (literal, spans) in brackets {
            text.extend_from_slice(literal.as_bytes());
            match spans[..] {
                [Span { lo, hi, width }] if lo == hi => push_number(&mut text, lo, width),
                _ => outer.push(Part { literal: self.add_text(&mut text), spans }),
            }
        }
        text.extend_from_slice(literal.as_bytes());
        let last = Part { literal: self.add_text(&mut text), spans };
        let product = Product { outer, last, suffix: self.list.add_text(suffix) };
        self.add_bytes(product.bytes());
        self.list.push_product(product);
        Ok(())
    }
}
