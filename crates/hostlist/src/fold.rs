//! Folding: the list as Slurm prints it.

use crate::digits::push_number;
use crate::list::Hostlist;
use crate::runs::Run;
use crate::span::Span;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Prints as Slurm's `show hostlist` does: order kept, nothing dropped, one dimension only.
impl fmt::Display for Hostlist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.folded())
    }
}

impl fmt::Debug for Hostlist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hostlist({:?})", self.folded())
    }
}

impl Hostlist {
    fn folded(&self) -> String {
        let out = Vec::with_capacity(8 * self.items().len());
        let mut fold = Fold { out, joins: true, ..Fold::default() };
        let mut runs = self.runs();
        while runs.advance() {
            let run = runs.run();
            match run.span {
                Some(span) if run.suffix.is_empty() => fold.range(run, span),
                Some(_) | None => run.for_each_name(|name| fold.name(name)),
            }
        }
        fold.finish()
    }

    /// An expression for the list whose ranges are all short enough to be read again.
    #[cfg(feature = "serde")]
    pub(crate) fn expression(&self) -> String {
        let mut fold = Fold::default();
        let mut runs = self.runs();
        while runs.advance() {
            let run = runs.run();
            match run.span {
                Some(span) if run.suffix.is_empty() => {
                    span.pieces(crate::MAX_RANGE).for_each(|piece| fold.range(run, piece));
                }
                Some(_) | None => run.for_each_name(|name| fold.name(name)),
            }
        }
        fold.finish()
    }
}

/// Ranges that follow each other with one prefix share a bracket, which is needed only where there is
/// more than one number; so the last range waits until it is known what comes after it.
#[derive(Default)]
struct Fold {
    out: Vec<u8>,
    prefix: Vec<u8>,
    waiting: Option<Span>,
    bracket: bool,
    /// Neighbours become one range.
    joins: bool,
}

impl Fold {
    fn name(&mut self, name: &str) {
        self.close();
        self.separate();
        self.out.extend_from_slice(name.as_bytes());
    }

    fn range(&mut self, run: Run<'_>, span: Span) {
        let prefix = run.prefix.as_bytes();
        match &mut self.waiting {
            Some(last) if run.repeats || self.prefix == prefix => {
                if self.joins && last.absorb(span) {
                    return;
                }
                let last = *last;
                self.open();
                self.write(last);
                self.out.push(b',');
            }
            Some(_) | None => {
                self.close();
                self.separate();
                self.prefix.clear();
                self.prefix.extend_from_slice(prefix);
                self.out.extend_from_slice(prefix);
            }
        }
        self.waiting = Some(span);
    }

    fn open(&mut self) {
        if !self.bracket {
            self.out.push(b'[');
            self.bracket = true;
        }
    }

    fn close(&mut self) {
        let Some(last) = self.waiting.take() else { return };
        if last.lo < last.hi {
            self.open();
        }
        self.write(last);
        if self.bracket {
            self.out.push(b']');
            self.bracket = false;
        }
    }

    fn separate(&mut self) {
        if !self.out.is_empty() {
            self.out.push(b',');
        }
    }

    fn write(&mut self, span: Span) {
        push_number(&mut self.out, span.lo, span.width);
        if span.lo < span.hi {
            self.out.push(b'-');
            push_number(&mut self.out, span.hi, span.width);
        }
    }

    fn finish(mut self) -> String {
        self.close();
        String::from_utf8(self.out).unwrap_or_default()
    }
}
