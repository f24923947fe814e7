//! The list as a sequence of runs: a prefix, numbers, a suffix. All that reads a list reads runs.

use crate::digits::push_number;
use crate::list::{Hostlist, Item};
use crate::product::Walk;
use crate::span::Span;
use alloc::vec::Vec;

/// Names that differ in one number only, or a single name without one.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) span: Option<Span>,
    /// Names with a suffix do not fold.
    pub(crate) suffix: &'a str,
    /// True if the prefix is known to be that of the run before.
    pub(crate) repeats: bool,
}

impl Run<'_> {
    pub(crate) fn for_each_name(self, action: impl FnMut(&str)) {
        self.write_each_name(&mut Vec::new(), action);
    }

    /// Writes each name into the given buffer and calls `action` with it.
    pub(crate) fn write_each_name(self, name: &mut Vec<u8>, mut action: impl FnMut(&str)) {
        let Some(span) = self.span else { return action(self.prefix) };
        name.clear();
        name.extend_from_slice(self.prefix.as_bytes());
        for value in span.lo..=span.hi {
            name.truncate(self.prefix.len());
            push_number(name, value, span.width);
            name.extend_from_slice(self.suffix.as_bytes());
            action(core::str::from_utf8(name).unwrap_or_default());
        }
    }
}

/// A cursor over the runs of a list, in order: `while runs.advance() { runs.run() }`.
///
/// Not an iterator, because the prefix of a product is written anew in one buffer for each run.
#[derive(Debug)]
pub(crate) struct Runs<'a> {
    list: &'a Hostlist,
    items: core::slice::Iter<'a, Item>,
    current: Option<&'a Item>,
    repeats: bool,
    /// The position within a product.
    walk: Option<Walk<'a>>,
}

impl Hostlist {
    pub(crate) fn runs(&self) -> Runs<'_> {
        Runs { list: self, items: self.items().iter(), current: None, repeats: false, walk: None }
    }
}

impl Runs<'_> {
    /// Moves to the next run; false at the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        if let Some(walk) = &mut self.walk {
            if walk.advance() {
                return true;
            }
            self.walk = None;
        }
        let before = core::mem::replace(&mut self.current, self.items.next());
        self.repeats = match (before, self.current) {
            (Some(Item::Range(before)), Some(Item::Range(now))) => before.prefix() == now.prefix(),
            _ => false,
        };
        if let Some(Item::Product(product)) = self.current {
            self.walk = Some(Walk::new(self.list, product));
        }
        self.current.is_some()
    }

    /// The current run.
    #[inline]
    pub(crate) fn run(&self) -> Run<'_> {
        let (prefix, span, suffix) = match (self.current, &self.walk) {
            (Some(Item::Name(name)), _) => (self.list.text(*name), None, ""),
            (Some(Item::Range(range)), _) => {
                (self.list.text(range.prefix()), Some(range.span()), "")
            }
            (Some(Item::Product(_)), Some(walk)) => (walk.prefix(), walk.span(), walk.suffix()),
            (Some(Item::Product(_)) | None, _) => ("", None, ""),
        };
        Run { prefix, span, suffix, repeats: self.repeats }
    }
}
