//! A list cut into lists of so many hosts.

use crate::list::Hostlist;
use crate::runs::{Run, Runs};
use crate::span::Span;
use core::num::NonZeroUsize;

impl Hostlist {
    /// The list in pieces of `size` hosts, the last one possibly smaller; order kept.
    ///
    /// ```
    /// use std::num::NonZeroUsize;
    ///
    /// let list: hostlist::Hostlist = "n[1-5],m".parse()?;
    /// let pieces: Vec<String> =
    ///     list.chunks(NonZeroUsize::new(4).unwrap()).map(|piece| piece.to_string()).collect();
    /// assert_eq!(pieces, ["n[1-4]", "n5,m"]);
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    #[must_use]
    pub fn chunks(&self, size: NonZeroUsize) -> Chunks<'_> {
        Chunks { runs: self.runs(), rest: None, size }
    }
}

/// The pieces of a [`Hostlist`]; made by [`Hostlist::chunks`].
#[derive(Debug)]
pub struct Chunks<'a> {
    runs: Runs<'a>,
    /// Numbers of the current run that have not been given out.
    rest: Option<Span>,
    size: NonZeroUsize,
}

impl Iterator for Chunks<'_> {
    type Item = Hostlist;

    fn next(&mut self) -> Option<Hostlist> {
        let mut piece = Hostlist::new();
        while piece.len() < self.size.get() {
            if self.rest.is_none() {
                if !self.runs.advance() {
                    break;
                }
                self.rest = self.runs.run().span;
            }
            let room = u64::try_from(self.size.get() - piece.len()).unwrap_or(u64::MAX);
            let (now, rest) = self.rest.map(|span| span.split_at(room)).unzip();
            self.rest = rest.flatten();
            piece.push_run(Run { span: now, ..self.runs.run() });
        }
        (!piece.is_empty()).then_some(piece)
    }
}
