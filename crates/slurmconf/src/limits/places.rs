//! `places` and `preemptible` of a group.

use crate::error::Result;
use crate::model::PlaceChoice;
use crate::yaml::{Source, Value, YamlNode, duration};
use std::time::Duration;

/// The keys of a place.
const KEYS: [&str; 4] = ["shape", "zone", "ad", "preemptible"];

/// The keys of `preemptible`.
const PREEMPTIBLE_KEYS: [&str; 1] = ["give_up_after"];

/// The list of places, first choice first.
pub(super) fn places(source: &Source<'_>, what: &str, node: &YamlNode) -> Result<Vec<PlaceChoice>> {
    let Value::List(items) = &node.value else {
        let expected = "a list of places such as {zone: 2, preemptible: true}";
        return Err(source.expected(what, expected, node));
    };
    items.iter().map(|item| place(source, what, item)).collect()
}

fn place(source: &Source<'_>, what: &str, node: &YamlNode) -> Result<PlaceChoice> {
    let entries = source.map(what, node)?;
    if let Some(error) = source.unknown_keys(what, entries, &KEYS).into_iter().next() {
        return Err(error);
    }
    let word = |key: &str| {
        let Some(node) = YamlNode::get(entries, key) else { return Ok(None) };
        let what = format!("{what}: {key}");
        let text = source.text(&what, node)?;
        let expected = "a word of letters, digits, '.', '-' and '_'";
        if super::is_word(&text) {
            Ok(Some(text))
        } else {
            Err(source.expected(&what, expected, node))
        }
    };
    let preemptible =
        YamlNode::get(entries, "preemptible").map(|node| yes_or_no(source, what, node));
    Ok(PlaceChoice {
        shape: word("shape")?,
        zone: word("zone")?.or(word("ad")?),
        preemptible: preemptible.transpose()?,
    })
}

/// Whether machines are preemptible, and for how long only such are tried.
pub(super) fn preemptible(
    source: &Source<'_>,
    what: &str,
    node: &YamlNode,
) -> Result<(bool, Option<Duration>)> {
    if !matches!(node.value, Value::Map(_)) {
        return Ok((yes_or_no(source, what, node)?, None));
    }
    let entries = source.map(what, node)?;
    if let Some(error) = source.unknown_keys(what, entries, &PREEMPTIBLE_KEYS).into_iter().next() {
        return Err(error);
    }
    let after = source.required(what, node, entries, "give_up_after")?;
    let text = source.text(what, after)?;
    let expected = "a time such as 90s, 10m or 2h";
    let time = duration(&text).ok_or_else(|| source.expected(what, expected, after))?;
    Ok((true, Some(time)))
}

fn yes_or_no(source: &Source<'_>, what: &str, node: &YamlNode) -> Result<bool> {
    match node.value {
        Value::Bool(value) => Ok(value),
        _ => Err(source.expected(what, "true or false", node)),
    }
}
