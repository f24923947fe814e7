//! Folding: the list as Slurm prints it.

use crate::list::Hostlist;
use crate::span::{Span, push_number};
use std::fmt;

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
        let mut fold = Fold::default();
        let mut runs = self.runs();
        while runs.advance() {
            let run = runs.run();
            match run.span {
                Some(span) if run.suffix.is_empty() => fold.range(run.prefix, span),
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
    out: String,
    prefix: String,
    waiting: Option<Span>,
    bracket: bool,
}

impl Fold {
    fn name(&mut self, name: &str) {
        self.close();
        self.separate();
        self.out.push_str(name);
    }

    fn range(&mut self, prefix: &str, span: Span) {
        match &mut self.waiting {
            Some(last) if self.prefix == prefix => {
                if last.absorb(span) {
                    return;
                }
                let last = *last;
                self.open();
                self.write(last);
                self.out.push(',');
            }
            Some(_) | None => {
                self.close();
                self.separate();
                self.prefix.clear();
                self.prefix.push_str(prefix);
                self.out.push_str(prefix);
            }
        }
        self.waiting = Some(span);
    }

    fn open(&mut self) {
        if !self.bracket {
            self.out.push('[');
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
            self.out.push(']');
            self.bracket = false;
        }
    }

    fn separate(&mut self) {
        if !self.out.is_empty() {
            self.out.push(',');
        }
    }

    fn write(&mut self, span: Span) {
        push_number(&mut self.out, span.lo, span.width);
        if span.lo < span.hi {
            self.out.push('-');
            push_number(&mut self.out, span.hi, span.width);
        }
    }

    fn finish(mut self) -> String {
        self.close();
        self.out
    }
}
