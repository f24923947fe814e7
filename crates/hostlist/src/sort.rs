//! Slurm's sorted list and Slurm's unique list.

use crate::key::Stems;
use crate::list::Hostlist;
use crate::radix;
use crate::span::Span;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A range or a name, ready to sort: by prefix, names first, then by printed length and value.
#[derive(Clone, Copy)]
struct Row {
    rank: u32,
    /// That of the span; 0 for a name, which has no number.
    width: u32,
    lo: u64,
    hi: u64,
}

impl Row {
    fn new(rank: u32, Span { lo, hi, width }: Span) -> Self {
        Self { rank, width, lo, hi }
    }

    fn span(&self) -> Span {
        Span { lo: self.lo, hi: self.hi, width: self.width }
    }

    fn group(&self) -> u64 {
        let printed = if self.is_name() { 0 } else { self.span().printed() };
        u64::from(self.rank) << 32 | u64::from(printed)
    }

    fn is_name(&self) -> bool {
        self.width == 0
    }

    /// True if `next`, the row after this one, can share numbers with it.
    fn meets(&self, next: &Self) -> bool {
        self.rank == next.rank
            && !self.is_name()
            && !next.is_name()
            && self.span().joins(next.span())
    }

    /// Takes in a range that follows at once.
    fn absorb(&mut self, rank: u32, next: Span) -> bool {
        let mut span = self.span();
        let absorbed = self.rank == rank && !self.is_name() && span.absorb(next);
        self.hi = span.hi;
        absorbed
    }
}

impl Hostlist {
    /// The list in Slurm's order, duplicates kept, as `scontrol show hostlistsorted` prints it.
    ///
    /// ```
    /// let list: hostlist::Hostlist = "n[1-3],m,n[2-4]".parse()?;
    /// assert_eq!(list.sorted().to_string(), "m,n[1-2,2-3,3-4]");
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    #[must_use]
    pub fn sorted(&self) -> Self {
        let mut list = Self::new();
        self.for_each_sorted(|prefix, rows| match rows {
            [name] if name.is_name() => list.push_name(prefix),
            _ => interleave(rows, |span| {
                list.push_range(prefix, span);
            }),
        });
        list
    }

    /// The list in Slurm's order without duplicates, as Slurm's `hostlist_uniq` makes it.
    ///
    /// As in Slurm, two copies of a host stay where they are written in two ways (`n11` and `n1[1]`), or
    /// where a number padded otherwise is sorted between them (`n[8-12],n05,n10`). [`union`](Self::union)
    /// drops them all.
    ///
    /// ```
    /// let list: hostlist::Hostlist = "n[1-3],m,n[2-4],m".parse()?;
    /// assert_eq!(list.uniq().to_string(), "m,n[1-4]");
    /// # Ok::<(), hostlist::ParseError>(())
    /// ```
    #[must_use]
    pub fn uniq(&self) -> Self {
        let mut list = Self::new();
        let mut last_name = None;
        self.for_each_sorted(|prefix, rows| match rows {
            [name] if name.is_name() => {
                if last_name != Some(name.rank) {
                    list.push_name(prefix);
                }
                last_name = Some(name.rank);
            }
            _ => merge(rows, |span| {
                list.push_range(prefix, span);
            }),
        });
        list
    }

    /// Calls `action` with each prefix and its rows, sorted: a single name, or ranges that may overlap.
    fn for_each_sorted(&self, mut action: impl FnMut(&str, &[Row])) {
        let mut stems = Stems::default();
        let mut rows = Vec::with_capacity(self.items().len());
        let mut runs = self.runs();
        while runs.advance() {
            let run = runs.run();
            match run.span {
                Some(span) if run.suffix.is_empty() => {
                    let rank = if run.repeats { stems.last() } else { stems.id(run.prefix) };
                    // Slurm joins neighbours as they come; products are not stored joined.
                    if !rows.last_mut().is_some_and(|last: &mut Row| last.absorb(rank, span)) {
                        rows.push(Row::new(rank, span));
                    }
                }
                Some(_) | None => run.for_each_name(|name| {
                    let span = Span { lo: 0, hi: 0, width: 0 };
                    rows.push(Row::new(stems.id(name), span));
                }),
            }
        }
        let names = stems.rank(rows.iter_mut().map(|row| &mut row.rank));
        radix::sort(&mut rows, Row::group, |row| row.lo);
        for group in rows.chunk_by(Row::meets) {
            action(group.first().map_or("", |row| names.name(row.rank)), group);
        }
    }
}

/// Joins what overlaps or touches.
fn merge(rows: &[Row], mut push: impl FnMut(Span)) {
    let mut open: Option<Span> = None;
    for span in rows.iter().map(Row::span) {
        match &mut open {
            Some(last) if span.lo <= last.hi.saturating_add(1) => last.hi = last.hi.max(span.hi),
            Some(_) | None => {
                if let Some(last) = open.replace(span) {
                    push(last);
                }
            }
        }
    }
    open.into_iter().for_each(push);
}

/// Counts upwards through all rows at once, each number as often as it occurs.
fn interleave(rows: &[Row], mut push: impl FnMut(Span)) {
    let mut last: Option<Span> = None;
    count_up(rows, |span| {
        if !last.as_mut().is_some_and(|last| last.absorb(span)) {
            last.replace(span).into_iter().for_each(&mut push);
        }
    });
    last.into_iter().for_each(push);
}

/// Gives out spans, or single numbers where rows overlap, from the lowest to the highest.
fn count_up(rows: &[Row], mut push: impl FnMut(Span)) {
    let Some(width) = rows.first().map(|row| row.width) else { return };
    // The high ends of the rows that hold the current number, lowest on top.
    let mut open: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut rows = rows.iter().map(Row::span).peekable();
    let mut at = 0;
    loop {
        let Some(&Reverse(end)) = open.peek() else {
            let Some(span) = rows.next() else { return };
            // A row that overlaps nothing goes out as it is.
            if rows.peek().is_none_or(|next| next.lo > span.hi) {
                push(span);
            } else {
                at = span.lo;
                open.push(Reverse(span.hi));
            }
            continue;
        };
        while let Some(span) = rows.next_if(|next| next.lo == at) {
            open.push(Reverse(span.hi));
        }
        let end = open.peek().map_or(end, |Reverse(first)| *first);
        let until = rows.peek().map_or(end, |next| end.min(next.lo - 1));
        if open.len() == 1 {
            push(Span { lo: at, hi: until, width });
        } else {
            for value in at..=until {
                (0..open.len()).for_each(|_| push(Span { lo: value, hi: value, width }));
            }
        }
        while open.peek().is_some_and(|Reverse(end)| *end == until) {
            open.pop();
        }
        let Some(next) = until.checked_add(1) else { return };
        at = next;
    }
}
