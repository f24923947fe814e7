//! The list as a sequence of runs: a prefix, numbers, a suffix. All that reads a list reads runs.

use crate::list::{Hostlist, Item, Text};
use crate::product::Walk;
use crate::span::{Span, push_number};

/// Names that differ in one number only, or a single name without one.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) span: Option<Span>,
    /// Where it is not empty, the names do not fold.
    pub(crate) suffix: &'a str,
}

impl Run<'_> {
    pub(crate) fn for_each_name(self, mut action: impl FnMut(&str)) {
        let Some(span) = self.span else { return action(self.prefix) };
        let mut name = String::from(self.prefix);
        for value in span.lo..=span.hi {
            name.truncate(self.prefix.len());
            push_number(&mut name, value, span.width);
            name.push_str(self.suffix);
            action(&name);
        }
    }
}

/// A cursor over the runs of a list, in order: `while runs.advance() { runs.run() }`.
///
/// Not an iterator, because the prefix of a product is written anew in one buffer for each run.
pub(crate) struct Runs<'a> {
    list: &'a Hostlist,
    items: std::slice::Iter<'a, Item>,
    walk: Option<Walk<'a>>,
    plain: Option<(Text, Option<Span>)>,
}

impl Hostlist {
    pub(crate) fn runs(&self) -> Runs<'_> {
        Runs { list: self, items: self.items().iter(), walk: None, plain: None }
    }
}

impl Runs<'_> {
    /// Moves to the next run; false at the end.
    pub(crate) fn advance(&mut self) -> bool {
        if self.walk.as_mut().is_some_and(Walk::advance) {
            return true;
        }
        self.walk = None;
        match self.items.next() {
            Some(Item::Name(text)) => self.plain = Some((*text, None)),
            Some(Item::Range(text, span)) => self.plain = Some((*text, Some(*span))),
            Some(Item::Product(product)) => self.walk = Some(Walk::new(self.list, product)),
            None => return false,
        }
        true
    }

    /// The run it stands on.
    pub(crate) fn run(&self) -> Run<'_> {
        if let Some(walk) = &self.walk {
            return Run { prefix: walk.prefix(), span: walk.span(), suffix: walk.suffix() };
        }
        let (prefix, span) =
            self.plain.map_or(("", None), |(text, span)| (self.list.text(text), span));
        Run { prefix, span, suffix: "" }
    }
}
