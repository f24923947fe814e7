//! Listings that lag: for a while after their launch, instances are not found.

use super::answer::Answer;
use super::operation::Call;
use bytes::Bytes;
use hyper::StatusCode;
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How long new instances are hidden, and since when there are some.
#[derive(Debug, Default)]
pub(super) struct Lag {
    by: Duration,
    launched: HashMap<String, Instant>,
}

impl Lag {
    pub(super) fn set(&mut self, by: Duration) {
        self.by = by;
    }

    pub(super) fn by(&self) -> Duration {
        self.by
    }

    /// Refuses a request about an instance that is still hidden.
    pub(super) fn refuse(&self, call: &Call, now: Instant) -> Option<Answer> {
        let id = call.ids().find(|id| self.hides(id, now))?;
        let message = format!("The instance ID '{id}' does not exist");
        Some(Answer::error(StatusCode::BAD_REQUEST, "InvalidInstanceID.NotFound", &message))
    }

    /// Notes what a launch has made, and hides what is new from a listing.
    pub(super) fn pass(&mut self, call: &Call, mut answer: Answer, now: Instant) -> Answer {
        if self.by.is_zero() || !answer.status.is_success() {
            return answer;
        }
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        match call.operation.as_str() {
            "RunInstances" => {
                self.launched.extend(ids(&text).map(|id| (id.to_owned(), now)));
            }
            "DescribeInstances" => answer.body = Bytes::from(self.without_hidden(&text, now)),
            _ => {}
        }
        answer
    }

    fn hides(&self, id: &str, now: Instant) -> bool {
        let since = self.launched.get(id);
        since.is_some_and(|since| now.saturating_duration_since(*since) < self.by)
    }

    /// A listing without the instances that are hidden, and without reservations of which nothing else is left.
    fn without_hidden(&self, xml: &str, now: Instant) -> String {
        let hidden = |item: &str| ids(item).next().is_some_and(|id| self.hides(id, now));
        without(xml, "reservationSet", |reservation| {
            let left = without(reservation, "instancesSet", |item| {
                (!hidden(item)).then(|| item.to_owned())
            });
            let kept = items(&left, "instancesSet");
            (!kept.is_empty()).then_some(left)
        })
    }
}

/// What looks like the id of an instance, as the whole content of an element.
fn ids(xml: &str) -> impl Iterator<Item = &str> {
    let contents = xml.split('>').filter_map(|part| part.split('<').next());
    contents.filter(|text| {
        let digits = text.strip_prefix("i-");
        digits.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_hexdigit()))
    })
}

/// A document whose items in the first element of a name are changed, or left out.
fn without(xml: &str, element: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::with_capacity(xml.len());
    let mut end = 0;
    for item in items(xml, element) {
        text.push_str(xml.get(end..item.start).unwrap_or_default());
        let changed = xml.get(item.clone()).and_then(&change);
        text.push_str(&changed.unwrap_or_default());
        end = item.end;
    }
    text.push_str(xml.get(end..).unwrap_or_default());
    text
}

/// Where the items are that are directly in the first element of a name.
fn items(xml: &str, element: &str) -> Vec<Range<usize>> {
    let open = format!("<{element}>");
    let Some(begin) = xml.find(&open).map(|at| at + open.len()) else {
        return Vec::new();
    };
    let (mut found, mut depth, mut start, mut at) = (Vec::new(), 0_usize, begin, begin);
    while let Some(tag) = xml.get(at..).and_then(|rest| rest.find('<')).map(|found| at + found) {
        let Some(end) = xml.get(tag..).and_then(|rest| rest.find('>')).map(|found| tag + found + 1)
        else {
            break;
        };
        let text = xml.get(tag..end).unwrap_or_default();
        at = end;
        if text.starts_with("</") {
            if depth == 0 {
                break;
            }
            depth -= 1;
            if depth == 0 {
                found.push(start..end);
            }
        } else if !text.ends_with("/>") {
            if depth == 0 {
                start = tag;
            }
            depth += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "<D><reservationSet><item><r>r-1</r><groupSet/><instancesSet><item><instanceId>i-0a</instanceId>\
        <tagSet><item><key>k</key></item></tagSet></item><item><instanceId>i-0b</instanceId></item></instancesSet></item>\
        <item><r>r-2</r><instancesSet><item><instanceId>i-0c</instanceId></item></instancesSet></item></reservationSet>\
        <nextToken>x</nextToken></D>";

    fn listed(hidden: &[&str]) -> String {
        let now = Instant::now();
        let launched = hidden.iter().map(|id| ((*id).to_owned(), now)).collect();
        Lag { by: Duration::from_secs(1), launched }.without_hidden(LISTING, now)
    }

    #[test]
    fn a_listing_has_all_but_the_hidden_instances() {
        let table: [(&[&str], &[&str], &[&str]); 5] = [
            (&[], &["i-0a", "i-0b", "i-0c"], &["r-1", "r-2"]),
            (&["i-0a"], &["i-0b", "i-0c"], &["r-1", "r-2"]),
            (&["i-0c"], &["i-0a", "i-0b"], &["r-1"]),
            (&["i-0a", "i-0b"], &["i-0c"], &["r-2"]),
            (&["i-0a", "i-0b", "i-0c"], &[], &[]),
        ];
        for (hidden, left, reservations) in table {
            let text = listed(hidden);
            assert_eq!(ids(&text).collect::<Vec<_>>(), left, "{text}");
            let reservations = reservations.iter().map(|id| format!("<r>{id}</r>"));
            let known: Vec<_> =
                ["<r>r-1</r>", "<r>r-2</r>"].into_iter().filter(|r| text.contains(r)).collect();
            assert_eq!(known, reservations.collect::<Vec<_>>(), "{text}");
            assert!(text.ends_with("</reservationSet><nextToken>x</nextToken></D>"), "{text}");
        }
        assert_eq!(listed(&[]), LISTING);
    }

    #[test]
    fn what_is_launched_is_found_after_the_lag() {
        let now = Instant::now();
        let mut lag = Lag { by: Duration::from_secs(2), launched: HashMap::new() };
        lag.launched.insert("i-0a".to_owned(), now);
        assert!(lag.hides("i-0a", now + Duration::from_millis(1999)));
        assert!(!lag.hides("i-0a", now + Duration::from_secs(2)));
        assert!(!lag.hides("i-0b", now));
    }
}
