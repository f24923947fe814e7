//! Slurm's sorted list and Slurm's unique list.

use crate::key::Stems;
use crate::list::Hostlist;
use crate::radix;
use crate::span::Span;
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// A range or a name, ready to sort: by prefix, names first, then by printed length and value.
#[derive(Clone, Copy)]
struct Row {
    rank: u32,
    /// That of the span; 0 for a name, which has no number.
    width: u32,
    lo: u64,
    hi: u64,
}

/// Fewer rows than this are sorted by comparing.
const DENSE: usize = 512;

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
        if let Some(dense) = count_dense(&rows) {
            rows = dense;
        } else {
            radix::sort(&mut rows, Row::group, |row| row.lo);
        }
        for group in rows.chunk_by(Row::meets) {
            action(group.first().map_or("", |row| names.name(row.rank)), group);
        }
    }
}

/// Sorts numbers with one prefix and one width by counting them, where they lie so close that this is less work
/// than to move them; neighbours come out joined.
fn count_dense(rows: &[Row]) -> Option<Vec<Row>> {
    let first = rows.first()?;
    let alike = |row: &Row| row.rank == first.rank && row.width == first.width;
    if rows.len() < DENSE || first.is_name() || !rows.iter().all(alike) {
        return None;
    }
    let (mut lowest, mut highest, mut numbers) = (first.lo, first.hi, 0_u64);
    for row in rows {
        (lowest, highest) = (lowest.min(row.lo), highest.max(row.hi));
        numbers = numbers.saturating_add(row.span().count());
    }
    let few = |count: u64| usize::try_from(count).ok().filter(|count| *count / 4 < rows.len());
    few(numbers)?;
    let mut counts = vec![0_u32; few(highest - lowest)? + 1];
    for row in rows {
        let (lo, hi) =
            (usize::try_from(row.lo - lowest).ok()?, usize::try_from(row.hi - lowest).ok()?);
        counts.get_mut(lo..=hi)?.iter_mut().for_each(|count| *count += 1);
    }
    let mut sorted: Vec<Row> = Vec::new();
    for (value, count) in (lowest..=highest).zip(counts) {
        for _ in 0..count {
            match sorted.last_mut() {
                Some(row) if row.hi.wrapping_add(1) == value => row.hi = value,
                Some(_) | None => sorted.push(Row { lo: value, hi: value, ..*first }),
            }
        }
    }
    Some(sorted)
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

#[cfg(test)]
mod tests {
    use super::*;

    type Walk = fn(&[Row], &mut dyn FnMut(Span));

    fn text(rows: &[Row], walk: Walk) -> Vec<Span> {
        let mut spans = Vec::new();
        walk(rows, &mut |span| spans.push(span));
        spans
    }

    #[test]
    fn counting_gives_what_sorting_gives() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) % below
        };
        for (spread, length) in [(1, 1), (300, 1), (1500, 2), (2000, 3), (2300, 1)] {
            let rows: Vec<Row> = (0..600)
                .map(|_| {
                    let lo = 95 + random(spread);
                    Row { rank: 3, width: 2, lo, hi: lo + random(length) }
                })
                .collect();
            let counted = count_dense(&rows).expect("close together");
            let mut sorted = rows;
            radix::sort(&mut sorted, Row::group, |row| row.lo);
            let walks: [Walk; 2] =
                [|rows, push| merge(rows, push), |rows, push| interleave(rows, push)];
            for walk in walks {
                assert_eq!(text(&counted, walk), text(&sorted, walk), "{spread} {length}");
            }
        }
    }

    #[test]
    fn far_apart_or_unlike_rows_are_not_counted() {
        let row = |lo: u64, width| Row { rank: 0, width, lo, hi: lo };
        let far: Vec<Row> = (0..600).map(|number| row(number * 1000, 1)).collect();
        assert!(count_dense(&far).is_none());
        let wide: Vec<Row> =
            (0..600).map(|number| row(number, 1 + u32::from(number == 9))).collect();
        assert!(count_dense(&wide).is_none());
    }
}
