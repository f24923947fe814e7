//! The list itself: names and ranges in order, over one piece of text.

use crate::digits::trailing;
use crate::find::Index;
use crate::product::Product;
use crate::runs::Run;
use crate::span::Span;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Filled once, by whoever needs it first. Without `std` there is nothing to wait with, so a list is not `Sync`.
#[cfg(feature = "std")]
type Once<T> = std::sync::OnceLock<T>;
#[cfg(not(feature = "std"))]
type Once<T> = core::cell::OnceCell<T>;

/// An ordered list of host names, duplicates kept, stored as ranges.
///
/// Reading an expression costs time and memory for its brackets, not for its hosts.
///
/// ```
/// use hostlist::Hostlist;
///
/// let mut list: Hostlist = "n[1-3],login1".parse()?;
/// assert_eq!(list.len(), 4);
/// list.push("n4");
/// assert_eq!(list.to_string(), "n[1-3],login1,n4");
/// assert_eq!(list.sorted().to_string(), "login1,n[1-4]");
/// assert!(list.contains("n2") && !list.contains("n02"));
/// assert_eq!(list.iter().last().as_deref(), Some("n4"));
/// # Ok::<(), hostlist::ParseError>(())
/// ```
#[derive(Clone, Default)]
pub struct Hostlist {
    text: String,
    items: Vec<Item>,
    len: usize,
    /// Made at the first look-up, forgotten at the first change.
    index: Once<Arc<Index>>,
}

/// A piece of the list's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    start: usize,
    len: u32,
}

/// One entry of the list.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A name without trailing digits, or one that must not fold.
    Name(Text),
    /// A prefix and the numbers after it.
    Range(Range),
    /// Several brackets, or text after the last one; expanded only when asked.
    Product(Box<Product>),
}

/// A [`Text`] and a [`Span`] side by side, in four fifths of the memory that the two would take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    start: usize,
    lo: u64,
    hi: u64,
    len: u32,
    width: u32,
}

impl Range {
    fn new(Text { start, len }: Text, Span { lo, hi, width }: Span) -> Self {
        Self { start, lo, hi, len, width }
    }

    pub(crate) fn prefix(self) -> Text {
        Text { start: self.start, len: self.len }
    }

    pub(crate) fn span(self) -> Span {
        Span { lo: self.lo, hi: self.hi, width: self.width }
    }

    fn absorb(&mut self, next: Span) -> bool {
        let mut span = self.span();
        let absorbed = span.absorb(next);
        self.hi = span.hi;
        absorbed
    }
}

impl Text {
    /// Length in bytes.
    pub(crate) fn len(self) -> u64 {
        u64::from(self.len)
    }
}

impl Hostlist {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list with room for a short expression, which then does not grow its way there.
    pub(crate) fn with_room() -> Self {
        Self { text: String::with_capacity(32), items: Vec::with_capacity(4), ..Self::default() }
    }

    /// Number of hosts, duplicates counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there is no host.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one host by name, as it is: brackets and commas have no meaning here.
    ///
    /// A name that no expression can spell (an empty one, one with a comma, a blank or brackets) is kept,
    /// but the folded list does not read back as it; [`NodeName`](crate::NodeName) has none of these.
    pub fn push(&mut self, name: &str) {
        let (digits, value) = trailing(name);
        match name.split_at_checked(name.len() - digits) {
            Some((prefix, number)) if !number.is_empty() => {
                let width = u32::try_from(digits).unwrap_or(u32::MAX);
                self.push_range(prefix, Span { lo: value, hi: value, width });
            }
            Some(_) | None => self.push_name(name),
        }
    }

    /// Adds all hosts of another list.
    pub fn append(&mut self, other: &Self) {
        let mut runs = other.runs();
        while runs.advance() {
            self.push_run(runs.run());
        }
    }

    pub(crate) fn push_run(&mut self, run: Run<'_>) {
        match run.span {
            Some(span) if run.suffix.is_empty() => {
                self.push_range(run.prefix, span);
            }
            Some(_) | None => run.for_each_name(|name| self.push_name(name)),
        }
    }

    /// Adds a name that folds with nothing.
    pub(crate) fn push_name(&mut self, name: &str) {
        let name = self.add_text(name);
        self.add(Item::Name(name), 1);
    }

    /// Adds a range, joined to the one before where Slurm would; the prefix serves for more of them.
    #[inline]
    pub(crate) fn push_range(&mut self, prefix: &str, span: Span) -> Text {
        let prefix = match self.items.last() {
            Some(Item::Range(last)) if is_same(self.text(last.prefix()), prefix) => last.prefix(),
            Some(_) | None => self.add_text(prefix),
        };
        self.push_span(prefix, span);
        prefix
    }

    /// Adds a range whose prefix is in the list's text already.
    #[inline]
    pub(crate) fn push_span(&mut self, prefix: Text, span: Span) {
        let count = usize::try_from(span.count()).unwrap_or(usize::MAX);
        if let Some(Item::Range(last)) = self.items.last_mut()
            && last.prefix() == prefix
            && last.absorb(span)
        {
            self.len = self.len.saturating_add(count);
            self.forget_index();
            return;
        }
        self.add(Item::Range(Range::new(prefix, span)), count);
    }

    /// Adds a product; without outer brackets and suffix it is just ranges.
    pub(crate) fn push_product(&mut self, product: Product) {
        if product.outer.is_empty() && product.suffix.len() == 0 {
            for span in product.last.spans {
                self.push_span(product.last.literal, span);
            }
            return;
        }
        let count = usize::try_from(product.count()).unwrap_or(usize::MAX);
        self.add(Item::Product(Box::new(product)), count);
    }

    #[inline]
    fn add(&mut self, item: Item, count: usize) {
        self.items.push(item);
        self.len = self.len.saturating_add(count);
        self.forget_index();
    }

    fn forget_index(&mut self) {
        if self.index.get_mut().is_some() {
            self.index = Once::new();
        }
    }

    /// Keeps `text` for an item to come; the parser refuses what is too long for a `u32`.
    pub(crate) fn add_text(&mut self, text: &str) -> Text {
        let start = self.text.len();
        self.text.push_str(text);
        Text { start, len: u32::try_from(text.len()).unwrap_or(u32::MAX) }
    }

    pub(crate) fn text(&self, piece: Text) -> &str {
        let length = usize::try_from(piece.len).unwrap_or(usize::MAX);
        self.text.get(piece.start..piece.start.saturating_add(length)).unwrap_or_default()
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    /// The look-up table, made now if it is not there.
    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| Arc::new(Index::new(self)))
    }
}

/// Text equality without a call: prefixes are mostly short.
#[inline]
fn is_same(a: &str, b: &str) -> bool {
    if a.len() > 16 {
        return a == b;
    }
    a.len() == b.len() && a.bytes().zip(b.bytes()).all(|(a, b)| a == b)
}

/// Two lists are equal when they name the same hosts in the same order, however they are written.
impl PartialEq for Hostlist {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for Hostlist {}

impl<S: AsRef<str>> Extend<S> for Hostlist {
    fn extend<I: IntoIterator<Item = S>>(&mut self, names: I) {
        for name in names {
            self.push(name.as_ref());
        }
    }
}

impl<S: AsRef<str>> FromIterator<S> for Hostlist {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let mut list = Self::new();
        list.extend(names);
        list
    }
}
