//! Expanding: every name, borrowed, owned or written out.

use crate::block::Blocks;
use crate::list::Hostlist;
use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;
use core::iter::FusedIterator;

/// Below this, blocks of names are not worth their set-up.
const FEW: usize = 32;

impl Hostlist {
    /// Calls `action` with each name in order, without an allocation for each.
    ///
    /// ```
    /// let list: hostlist::Hostlist = "r[1-2]n[01-02]".parse()?;
    /// let mut longest = 0;
    /// list.for_each(|name| longest = longest.max(name.len()));
    /// assert_eq!(longest, 5);
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    pub fn for_each(&self, mut action: impl FnMut(&str)) {
        if self.len() < FEW {
            let mut name = Vec::with_capacity(64);
            let mut runs = self.runs();
            while runs.advance() {
                runs.run().write_each_name(&mut name, &mut action);
            }
            return;
        }
        let mut blocks = self.blocks("");
        while blocks.refill() {
            let (bytes, entry) = blocks.entries();
            // Checking a block as a whole is far cheaper than checking each name.
            let Ok(mut names) = core::str::from_utf8(bytes) else { continue };
            while let Some((name, rest)) = names.split_at_checked(entry) {
                action(name);
                names = rest;
                if rest.is_empty() {
                    break;
                }
            }
        }
    }

    /// Writes all names with `separator` between them, many at a time but not all; a file or a socket
    /// wants a `BufWriter` around it.
    ///
    /// ```
    /// let list: hostlist::Hostlist = "n[8-10]".parse()?;
    /// let mut out = Vec::new();
    /// list.write_to(&mut out, " ").unwrap();
    /// assert_eq!(out, b"n8 n9 n10");
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(
        &self,
        out: &mut (impl std::io::Write + ?Sized),
        separator: &str,
    ) -> std::io::Result<()> {
        let mut blocks = self.blocks(separator);
        let mut skip = separator.len();
        while blocks.refill() {
            let (bytes, _) = blocks.entries();
            out.write_all(bytes.get(skip..).unwrap_or_default())?;
            skip = 0;
        }
        Ok(())
    }

    /// Every name, owned.
    #[must_use]
    pub fn to_vec(&self) -> Vec<String> {
        // A list may stand for more names than memory can hold; then we run out later, not at once.
        let mut names = Vec::with_capacity(self.len().min(1 << 24));
        self.for_each(|name| names.push(name.to_owned()));
        names
    }

    /// An iterator over owned names; [`for_each`](Self::for_each) lends them for far less.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { blocks: self.blocks(""), taken: 0, left: self.len() }
    }
}

/// The names of a [`Hostlist`], in order.
#[derive(Debug)]
pub struct Iter<'a> {
    blocks: Blocks<'a>,
    /// Bytes of the current block already given out.
    taken: usize,
    left: usize,
}

impl Iterator for Iter<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        if self.taken >= self.blocks.entries().0.len() {
            if !self.blocks.refill() {
                return None;
            }
            self.taken = 0;
        }
        let (bytes, entry) = self.blocks.entries();
        let name = bytes.get(self.taken..self.taken + entry)?;
        self.taken += entry;
        String::from_utf8(name.to_vec()).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

impl<'a> IntoIterator for &'a Hostlist {
    type Item = String;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
