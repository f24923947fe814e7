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
    /// Its body, as far as it is UTF-8.
    pub body: String,
    /// The status of the answer; `None` before there is one, and where the connection was dropped.
    pub status: Option<u16>,
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
    request.target.len() + request.body.len() + headers.sum::<usize>() + 128
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
        while self.kept.len() > self.most || self.bytes > MOST_BYTES {
            let Some(oldest) = self.kept.pop_front() else {
                break;
            };
            self.bytes -= size(&oldest);
        }
        self.last
    }

    /// Notes how a request was answered.
    pub(crate) fn end(&mut self, number: u64, status: Option<u16>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Some(first) = self.kept.front().map(|request| request.number) else {
            return;
        };
        let index = number.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        if let Some(request) = index.and_then(|index| self.kept.get_mut(index)) {
            request.status = status;
        }
    }

    pub(crate) fn all(&self) -> Vec<Recorded> {
        self.kept.iter().cloned().collect()
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
    fn requests_with_long_bodies_took_all_the_memory() {
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
                body: body.clone(),
                status: None,
            };
            let number = records.begin(request);
            records.end(number, Some(200));
        }
        let kept: Vec<u64> = records.all().iter().map(|request| request.number).collect();
        assert_eq!(kept, [8, 9, 10]);
        assert!(records.all().iter().all(|request| request.status == Some(200)));
        assert_eq!(records.counts()["LaunchInstance"], 10);
    }
}
