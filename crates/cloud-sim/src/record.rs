//! Every request that came in.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A request, and how it was answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Recorded {
    /// Counted from one.
    pub number: u64,
    /// When it came, in milliseconds since the epoch.
    pub at_millis: u64,
    /// The operation's name; empty for a path that leads nowhere.
    pub operation: String,
    /// The HTTP method.
    pub method: String,
    /// Path and query as on the wire.
    pub target: String,
    /// Its headers in the order in which they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, as far as it is UTF-8; empty before it has come, and if it was too long.
    pub body: String,
    /// The status of the answer; `None` before there is one, and where the connection was dropped.
    pub status: Option<u16>,
    /// The numbers of the fault rules that happened to it.
    #[serde(default)]
    pub faults: Vec<u64>,
}

impl Recorded {
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The newest requests, and how many there were of each operation.
#[derive(Debug, Default)]
pub(crate) struct Records {
    kept: VecDeque<Recorded>,
    most: usize,
    /// How many bytes the kept ones have.
    bytes: usize,
    last: u64,
    counts: BTreeMap<String, u64>,
    in_flight: u64,
    most_in_flight: u64,
}

/// The most bytes of requests that are kept, however few they are.
const MOST_BYTES: usize = 128 << 20;

/// About how many bytes a request takes.
fn size(request: &Recorded) -> usize {
    let headers = request.headers.iter().map(|(name, value)| name.len() + value.len() + 48);
    let rest = request.body.len() + request.faults.len() * 8 + 128;
    request.target.len() + rest + headers.sum::<usize>()
}

impl Records {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Notes a request and gives its number.
    pub(crate) fn begin(&mut self, mut request: Recorded) -> u64 {
        self.last += 1;
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        match self.counts.get_mut(&request.operation) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(request.operation.clone(), 1)),
        }
        request.number = self.last;
        self.bytes += size(&request);
        self.kept.push_back(request);
        self.shed();
        self.last
    }

    /// Notes the body of a request, when it has come.
    pub(crate) fn has_body(&mut self, number: u64, body: String) {
        let length = body.len();
        if let Some(request) = self.kept_one(number) {
            request.body = body;
            self.bytes += length;
            self.shed();
        }
    }

    /// Notes how a request was answered, and the rules that happened to it.
    pub(crate) fn end(&mut self, number: u64, status: Option<u16>, faults: Vec<u64>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(request) = self.kept_one(number) {
            request.status = status;
            let more = faults.len() * 8;
            request.faults = faults;
            self.bytes += more;
        }
    }

    fn kept_one(&mut self, number: u64) -> Option<&mut Recorded> {
        let first = self.kept.front()?.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.kept.get_mut(index)
    }

    /// Lets go of the oldest that are too many.
    fn shed(&mut self) {
        while self.kept.len() > self.most || self.bytes > MOST_BYTES {
            let Some(oldest) = self.kept.pop_front() else {
                break;
            };
            self.bytes -= size(&oldest);
        }
    }

    /// Those that are kept and came after the one of this number.
    pub(crate) fn after(&self, number: u64) -> Vec<Recorded> {
        let first = self.kept.front().map_or(0, |request| request.number);
        let known = number.saturating_add(1).saturating_sub(first);
        self.kept.iter().skip(usize::try_from(known).unwrap_or(usize::MAX)).cloned().collect()
    }

    pub(crate) fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    pub(crate) fn most_in_flight(&self) -> u64 {
        self.most_in_flight
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
        self.counts.clear();
        self.most_in_flight = self.in_flight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_long_bodies_take_bounded_memory() {
        let mut records = Records::new(1000);
        let body = "x".repeat(MOST_BYTES / 4);
        for _ in 0..10 {
            let request = Recorded {
                number: 0,
                at_millis: 0,
                operation: "LaunchInstance".to_owned(),
                method: "POST".to_owned(),
                target: "/".to_owned(),
                headers: Vec::new(),
                body: String::new(),
                status: None,
                faults: Vec::new(),
            };
            let number = records.begin(request);
            records.has_body(number, body.clone());
            records.end(number, Some(200), vec![7]);
        }
        let kept: Vec<u64> = records.after(0).iter().map(|request| request.number).collect();
        assert_eq!(kept, [8, 9, 10]);
        assert!(records.after(0).iter().all(|request| request.status == Some(200)));
        assert_eq!(records.counts()["LaunchInstance"], 10);
    }
}
