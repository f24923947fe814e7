//! Pages with opaque tokens.

use crate::answer::{Answer, Refusal};
use crate::query::Query;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

/// The most items that a page can have.
const MOST: usize = 1000;

/// Something that a list shows, and what the list is sorted by; no two have the same.
#[derive(Debug)]
pub(crate) struct Row<T> {
    pub(crate) key: String,
    pub(crate) view: T,
}

/// One page of things with numbers, in the order of these (or the reverse of it); only what it
/// shows is made.
pub(crate) fn numbered<T>(
    things: impl Iterator<Item = (u64, T)>,
    query: &Query,
    (usual, descending): (usize, bool),
    view: impl Fn(T) -> Value,
) -> Result<Answer, Refusal> {
    let Window { size, after } = Window::read(query, usual)?;
    let after = after.map(|after| after.parse::<u64>().map_err(|_| not_ours())).transpose()?;
    let is_left = |number: u64| {
        after.is_none_or(|after| if descending { number < after } else { number > after })
    };
    let mut rest: Vec<(u64, T)> = things.filter(|(number, _)| is_left(*number)).collect();
    rest.sort_unstable_by_key(|(number, _)| *number);
    if descending {
        rest.reverse();
    }
    let more = rest.len() > size;
    rest.truncate(size);
    let last = rest.last().map(|(number, _)| *number).filter(|_| more);
    let rows: Vec<Value> = rest.into_iter().map(|(_, thing)| view(thing)).collect();
    let answer = Answer::json(&rows);
    Ok(turn(answer, last.map(|last| token(query, &last.to_string()))))
}

/// One page of the rows, which are in the order of their keys (or the reverse of it).
///
/// The token names the last row shown and not a count, so that things that come and go between
/// two pages neither repeat nor hide others.
pub(crate) fn page<T: Serialize>(
    rows: Vec<Row<T>>,
    query: &Query,
    usual: usize,
    descending: bool,
) -> Result<Answer, Refusal> {
    let (shown, next) = cut(rows, query, usual, descending)?;
    Ok(turn(Answer::json(&shown), next))
}

/// An answer that says where the next page is, if there is one.
pub(crate) fn turn(answer: Answer, next: Option<String>) -> Answer {
    match next {
        Some(next) => answer.header("opc-next-page", next),
        None => answer,
    }
}

/// What one page shows, and the token of the next.
pub(crate) fn cut<T>(
    mut rows: Vec<Row<T>>,
    query: &Query,
    usual: usize,
    descending: bool,
) -> Result<(Vec<T>, Option<String>), Refusal> {
    rows.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    if descending {
        rows.reverse();
    }
    let Window { size, after } = Window::read(query, usual)?;
    let rest = rows.into_iter().filter(|Row { key, .. }| {
        after.as_ref().is_none_or(|after| if descending { key < after } else { key > after })
    });
    let mut shown: Vec<Row<T>> = rest.take(size + 1).collect();
    let more = shown.len() > size;
    shown.truncate(size);
    let next = shown.last().filter(|_| more).map(|last| token(query, &last.key));
    Ok((shown.into_iter().map(|row| row.view).collect(), next))
}

/// True if a list is by name, and not by time.
pub(crate) fn by_name(query: &Query) -> Result<bool, Refusal> {
    match query.get("sortBy") {
        None | Some("TIMECREATED") => Ok(false),
        Some("DISPLAYNAME") => Ok(true),
        Some(other) => Err(Refusal::invalid(format!("sortBy {other} is not known"))),
    }
}

/// The direction of a list, by its usual one.
pub(crate) fn descending(query: &Query, usual: bool) -> Result<bool, Refusal> {
    match query.get("sortOrder") {
        None => Ok(usual),
        Some("ASC") => Ok(false),
        Some("DESC") => Ok(true),
        Some(other) => Err(Refusal::invalid(format!("sortOrder {other} is not known"))),
    }
}

/// What of a list a page shows.
#[derive(Debug)]
pub(crate) struct Window {
    /// How many items at most.
    pub(crate) size: usize,
    /// The key of the last item of the page before.
    pub(crate) after: Option<String>,
}

impl Window {
    pub(crate) fn read(query: &Query, usual: usize) -> Result<Self, Refusal> {
        let after = query.get("page").map(|page| read_token(query, page)).transpose()?;
        Ok(Self { size: size(query, usual)?, after })
    }
}

fn size(query: &Query, usual: usize) -> Result<usize, Refusal> {
    let Some(limit) = query.get("limit") else {
        return Ok(usual.clamp(1, MOST));
    };
    let limit = limit.parse().ok().filter(|limit| (1..=MOST).contains(limit));
    limit.ok_or_else(|| Refusal::invalid(format!("limit has to be from 1 to {MOST}")))
}

/// The token of the page behind the item with this key.
pub(crate) fn token(query: &Query, key: &str) -> String {
    STANDARD.encode(format!("{} after {key}", query.list()))
}

fn read_token(query: &Query, token: &str) -> Result<String, Refusal> {
    let text = STANDARD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let list = format!("{} after ", query.list());
    let key = text.as_deref().and_then(|text| text.strip_prefix(&list));
    key.map(str::to_owned).ok_or_else(not_ours)
}

pub(crate) fn not_ours() -> Refusal {
    Refusal::invalid("page is not a token of this list in this order")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(number: u32) -> Row<u32> {
        Row { key: format!("{number:010}"), view: number }
    }

    /// All that a list shows, page by page.
    fn all(limit: usize, list: impl Fn(&Query) -> Result<Answer, Refusal>) -> Vec<u32> {
        let mut seen = Vec::new();
        let mut query = format!("limit={limit}");
        loop {
            let answer = list(&Query::parse(&query)).unwrap();
            seen.extend(serde_json::from_slice::<Vec<u32>>(&answer.body).unwrap());
            let Some((_, next)) = answer.headers.first() else {
                return seen;
            };
            query = format!("limit={limit}&page={}", next.replace('+', "%2B"));
        }
    }

    #[test]
    fn the_usual_size_holds_when_none_is_asked_for() {
        let answer = page((0..9).map(row).collect(), &Query::default(), 7, false).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<u32>>(&answer.body).unwrap().len(), 7);
        assert_eq!(answer.headers.len(), 1);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for query in ["limit=0", "limit=1001", "limit=x", "page=nope", "page=%FF"] {
            assert!(page(vec![row(1)], &Query::parse(query), 7, false).is_err(), "{query}");
        }
    }

    #[test]
    fn an_item_that_goes_hides_no_other() {
        let first = page((0..6).map(row).collect(), &Query::parse("limit=3"), 7, false).unwrap();
        let (_, next) = first.headers.first().unwrap();
        let query = Query::parse(&format!("limit=3&page={next}"));
        let second = page([0, 3, 4, 5].map(row).into(), &query, 7, false).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<u32>>(&second.body).unwrap(), [3, 4, 5]);
    }

    proptest! {
        #[test]
        fn pages_together_are_the_list(count in 0u32..40, limit in 1usize..12, down: bool) {
            let mut expected: Vec<u32> = (0..count).collect();
            if down {
                expected.reverse();
            }
            let by_key = |query: &Query| page((0..count).map(row).collect(), query, 7, down);
            prop_assert_eq!(all(limit, by_key), &expected[..]);
            let things = || (0..count).rev().map(|number| (u64::from(number), number));
            let by_number = |query: &Query| numbered(things(), query, (7, down), Value::from);
            prop_assert_eq!(all(limit, by_number), expected);
        }
    }
}
