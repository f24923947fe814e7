//! Reading what stands between brackets.

use crate::digits::leading;
use crate::error::ErrorKind;
use crate::parse::Refusal;
use crate::span::Span;
use crate::{MAX_ITEMS, MAX_PREFIX_VALUES, MAX_RANGE};
use alloc::vec::Vec;
use core::num::NonZeroUsize;

/// What is read beyond Slurm's grammar.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    /// What Slurm accepts by mistake.
    pub(crate) lenient: bool,
    /// ClusterShell's `0-10/2`.
    pub(crate) steps: bool,
}

/// Reads `1-3,7` and gives each span to `push`; positions are bytes of `numbers`.
pub(crate) fn read(
    numbers: &str,
    extras: Extras,
    mut push: impl FnMut(Span),
) -> Result<(), Refusal> {
    let mut rest = numbers;
    let mut pushed = 0;
    while pushed < MAX_ITEMS {
        let at = numbers.len() - rest.len();
        let (read, after) = if let Some((span, after)) = plain_span(rest) {
            (span.map(|span| (span, NonZeroUsize::MIN)), after)
        } else {
            let (text, after) =
                rest.split_once(',').map_or((rest, None), |(item, after)| (item, Some(after)));
            (item(text, extras), after)
        };
        let (span, step) = read.map_err(|kind| (kind, at))?;
        if step == NonZeroUsize::MIN {
            push(span);
            pushed += 1;
        } else {
            for value in (span.lo..=span.hi).step_by(step.get()) {
                push(Span { lo: value, hi: value, ..span });
                pushed += 1;
            }
        }
        match after {
            Some(after) => rest = after,
            None => return Ok(()),
        }
    }
    Err((ErrorKind::TooManyItems, numbers.len() - rest.len()))
}

/// Reads `7` or `1-3` at the start of `text`, with what follows the comma after it; `None` for anything
/// less plain, which [`span`] then looks at with more patience.
fn plain_span(text: &str) -> Option<(Result<Span, ErrorKind>, Option<&str>)> {
    let (width, low) = leading(text);
    let mut high = low;
    let mut after = text.get(width..)?;
    if let Some(second) = after.strip_prefix('-') {
        let digits;
        (digits, high) = leading(second);
        after = second.get(digits..).filter(|_| digits > 0)?;
    }
    let after = if after.is_empty() { None } else { Some(after.strip_prefix(',')?) };
    (width > 0).then(|| (bounded(low, high, width), after))
}

/// The blanks that C's `strtoul` skips.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// Reads one item and its step, which is 1 where there is none.
fn item(item: &str, extras: Extras) -> Result<(Span, NonZeroUsize), ErrorKind> {
    match item.rsplit_once('/') {
        Some((range, step)) if extras.steps && range.contains('-') => {
            let step = step.parse().map_err(|_| ErrorKind::NotANumber)?;
            Ok((span(range, extras.lenient)?, step))
        }
        Some(_) | None => Ok((span(item, extras.lenient)?, NonZeroUsize::MIN)),
    }
}

/// Reads one range: `7`, `1-3`, or `5-`, which is `5`.
fn span(item: &str, lenient: bool) -> Result<Span, ErrorKind> {
    if item.is_empty() {
        return Err(ErrorKind::EmptyItem);
    }
    let (low, high) = item.split_once('-').unwrap_or((item, ""));
    let (lo, after) = number(low).ok_or(ErrorKind::NotANumber)?;
    let hi = if high.is_empty() {
        if after.is_empty() { lo } else { return Err(ErrorKind::NotANumber) }
    } else {
        // Slurm looks at what follows the high number only; blanks before the dash are its custom.
        let forgiven = after.trim_matches(BLANKS).is_empty() || (lenient && !after.contains('x'));
        match number(high) {
            Some((hi, "")) if forgiven => hi,
            Some(_) | None => return Err(ErrorKind::NotANumber),
        }
    };
    bounded(lo, hi, low.len())
}

/// A span within Slurm's limits.
fn bounded(lo: u64, hi: u64, width: usize) -> Result<Span, ErrorKind> {
    if lo > hi {
        return Err(ErrorKind::Reversed);
    }
    if hi - lo >= MAX_RANGE {
        return Err(ErrorKind::RangeTooLarge);
    }
    Ok(Span { lo, hi, width: u32::try_from(width).unwrap_or(u32::MAX) })
}

/// Reads a number as C's `strtoul` does, after white space and a plus sign; with what follows it.
fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.trim_start_matches(BLANKS);
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let (length, value) = leading(digits);
    (length > 0).then_some((value, digits.get(length..)?))
}

/// The brackets of a prefix with the text before each, left to right; then the text after the last.
type Prefix<'a> = (Vec<(&'a str, Vec<Span>)>, &'a str);

/// Reads the brackets before the last one, from right to left as Slurm does.
///
/// A `[` without `]` after it ends the search: it and all before it are plain text. `None` is a token
/// that Slurm drops in silence, and only when `lenient`.
pub(crate) fn prefix(text: &str, extras: Extras) -> Result<Option<Prefix<'_>>, Refusal> {
    // Both from right to left; one more literal than brackets.
    let (mut brackets, mut literals) = (Vec::new(), Vec::new());
    let mut left = text;
    while let Some((before, after)) = left.rsplit_once('[') {
        let Some((numbers, literal)) = after.rsplit_once(']') else { break };
        let swallowed = extras.lenient && !brackets.is_empty();
        match outer(numbers, extras, swallowed) {
            Ok(spans) => brackets.push(spans),
            Err((kind, _)) if swallowed && kind != ErrorKind::TooManyItems => return Ok(None),
            Err((kind, at)) => return Err((kind, before.len() + 1 + at)),
        }
        literals.push(literal);
        left = before;
    }
    literals.push(left);
    let mut literals = literals.into_iter();
    let last = literals.next().unwrap_or_default();
    Ok(Some((literals.zip(brackets).rev().collect(), last)))
}

/// Reads one bracket before the last, with Slurm's bound on its values; where Slurm would swallow the
/// error it also keeps the ranges that fit.
fn outer(numbers: &str, extras: Extras, truncate: bool) -> Result<Vec<Span>, Refusal> {
    let mut spans = Vec::new();
    read(numbers, extras, |span| spans.push(span))?;
    let mut values = 0;
    let fits = |span: &&Span| {
        values += span.count();
        values <= MAX_PREFIX_VALUES
    };
    let fit = spans.iter().take_while(fits).count();
    if fit < spans.len() && !truncate {
        return Err((ErrorKind::PrefixTooLarge, 0));
    }
    spans.truncate(fit);
    // Brackets can be very many, and most hold one value.
    spans.shrink_to_fit();
    Ok(spans)
}
