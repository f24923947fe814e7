//! What goes wrong on demand: rules by operation, count and probability.

use crate::instance::Failure;
use crate::query::decode;
use crate::shared::lock;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One rule: to which requests what happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The operation's name, such as `LaunchInstance`, or `*` for every one.
    pub operation: String,
    /// Only requests that have this somewhere in their target, as sent or decoded, or their body.
    #[serde(default)]
    pub containing: Option<String>,
    /// How many matching requests go by untouched first.
    #[serde(default)]
    pub after: u64,
    /// How many requests it happens to; without it, to all.
    #[serde(default)]
    pub count: Option<u64>,
    /// How likely it happens to a matching request.
    #[serde(default = "certain")]
    pub probability: f64,
    /// What happens.
    pub fault: Fault,
}

fn certain() -> f64 {
    1.0
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// It is answered with an error, and nothing is done.
    Answer {
        /// The HTTP status.
        status: u16,
        /// OCI's code; with an empty one the body is the message alone.
        code: String,
        /// The sentence.
        message: String,
        /// Headers of the answer, such as `retry-after`.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// The connection closes before anything is done.
    DropBefore,
    /// It is carried out, and the connection closes in place of an answer.
    DropAfter,
    /// It is carried out at once, and its answer is late: a client that gives up earlier leaves
    /// the work done.
    Delay {
        /// By how much.
        millis: u64,
    },
    /// It is accepted, and its work request fails later; for what has one. It happens to a request
    /// that is accepted and begins work, and waits for the next if one is refused or a repeat.
    FailLater {
        /// OCI's code.
        code: String,
        /// The sentence.
        message: String,
    },
}

impl Rule {
    /// A fault that happens to every request of an operation.
    #[must_use]
    pub fn always(operation: &str, fault: Fault) -> Self {
        Self {
            operation: operation.to_owned(),
            containing: None,
            after: 0,
            count: None,
            probability: 1.0,
            fault,
        }
    }

    /// A fault that happens to the next request of an operation and no other.
    #[must_use]
    pub fn once(operation: &str, fault: Fault) -> Self {
        Self { count: Some(1), ..Self::always(operation, fault) }
    }
}

impl Fault {
    /// True if this can happen to a request to which the others already do: the first rule wins,
    /// so that none is used up without having happened.
    fn goes_with(&self, others: &[(u64, Self)]) -> bool {
        let mut others = others.iter().map(|(_, other)| other);
        match self {
            Self::Delay { .. } => true,
            Self::Answer { .. } | Self::DropBefore => {
                others.all(|other| matches!(other, Self::Delay { .. }))
            }
            Self::DropAfter => others.all(|other| *other != Self::DropAfter),
            // Only the work itself can tell whether it is begun: see [`Faults::later`].
            Self::FailLater { .. } => false,
        }
    }

    /// True if nothing is done, so that the rules behind have no part in it.
    fn prevents(&self) -> bool {
        match self {
            Self::Answer { .. } | Self::DropBefore => true,
            Self::DropAfter | Self::Delay { .. } | Self::FailLater { .. } => false,
        }
    }

    /// An answer with an error.
    #[must_use]
    pub fn answer(status: u16, code: &str, message: &str) -> Self {
        Self::Answer {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            headers: BTreeMap::new(),
        }
    }

    /// What OCI says when it has no machine left.
    #[must_use]
    pub fn out_of_capacity() -> Self {
        Self::answer(500, "InternalError", "Out of host capacity.")
    }
}

/// The rules in force.
#[derive(Debug)]
pub(crate) struct Faults {
    rules: Vec<(u64, Rule)>,
    last: u64,
    /// Decides about probabilities, the same way in every run of one seed.
    dice: fastrand::Rng,
}

impl Faults {
    pub(crate) fn new(rules: &[Rule], seed: u64) -> Self {
        let dice = fastrand::Rng::with_seed(seed);
        let mut faults = Self { rules: Vec::new(), last: 0, dice };
        for rule in rules {
            faults.add(rule.clone());
        }
        faults
    }

    pub(crate) fn add(&mut self, rule: Rule) -> u64 {
        self.last += 1;
        self.rules.push((self.last, rule));
        self.last
    }

    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let before = self.rules.len();
        self.rules.retain(|(rule, _)| *rule != id);
        before != self.rules.len()
    }

    pub(crate) fn clear(&mut self) {
        self.rules.clear();
    }

    pub(crate) fn list(&self) -> &[(u64, Rule)] {
        &self.rules
    }

    /// Every fault of this request, with the number of its rule. Rules that have done their part are
    /// gone afterwards; rules behind one that answers or drops the request are left as they are.
    pub(crate) fn of(&mut self, operation: &str, target: &str, body: &[u8]) -> Vec<(u64, Fault)> {
        let mut happening = Vec::new();
        for (number, rule) in &mut self.rules {
            if !concerns(rule, operation, target, body) || !rule.fault.goes_with(&happening) {
                continue;
            }
            if !fires(rule, &mut self.dice) {
                continue;
            }
            happening.push((*number, rule.fault.clone()));
            if rule.fault.prevents() {
                break;
            }
        }
        self.rules.retain(|(_, rule)| rule.count != Some(0));
        happening
    }

    /// Why the work of this request, which has begun, shall fail, and the number of the rule.
    fn later(&mut self, operation: &str, target: &str, body: &[u8]) -> Option<(u64, Failure)> {
        let mut failure = None;
        for (number, rule) in &mut self.rules {
            let Fault::FailLater { code, message } = &rule.fault else {
                continue;
            };
            let why = Failure { code: code.clone(), message: message.clone() };
            if concerns(rule, operation, target, body) && fires(rule, &mut self.dice) {
                failure = Some((*number, why));
                break;
            }
        }
        self.rules.retain(|(_, rule)| rule.count != Some(0));
        failure
    }
}

/// True if a rule happens to a request that it concerns, which is then counted.
fn fires(rule: &mut Rule, dice: &mut fastrand::Rng) -> bool {
    if rule.after > 0 {
        rule.after -= 1;
        return false;
    }
    if rule.probability < 1.0 && dice.f64() >= rule.probability {
        return false;
    }
    rule.count = rule.count.map(|left| left.saturating_sub(1));
    true
}

/// What a request asks about the failure of its work, when it has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Later<'a> {
    pub(crate) faults: &'a Mutex<Faults>,
    pub(crate) operation: &'static str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a [u8],
    /// The number of the rule that has happened, for the record of the request.
    pub(crate) hit: &'a AtomicU64,
}

impl Later<'_> {
    /// Why the work shall fail, if a rule says so; the rule has then happened once more.
    pub(crate) fn take(&self) -> Option<Failure> {
        let taken = lock(self.faults).later(self.operation, self.target, self.body);
        let (number, failure) = taken?;
        self.hit.store(number, Ordering::Relaxed);
        Some(failure)
    }
}

fn concerns(rule: &Rule, operation: &str, target: &str, body: &[u8]) -> bool {
    if rule.operation != "*" && rule.operation != operation {
        return false;
    }
    if rule.count == Some(0) {
        return false;
    }
    let Some(text) = &rule.containing else {
        return true;
    };
    target.contains(text)
        || decode(target).contains(text)
        || String::from_utf8_lossy(body).contains(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(rule: Rule, requests: usize) -> Vec<bool> {
        let mut faults = Faults::new(&[rule], 0);
        (0..requests).map(|_| !faults.of("LaunchInstance", "/x", b"node-7").is_empty()).collect()
    }

    /// The faults of one more request.
    fn of(faults: &mut Faults) -> Vec<Fault> {
        faults.of("X", "/x", b"").into_iter().map(|(_, fault)| fault).collect()
    }

    #[test]
    fn a_name_with_a_colon_is_decoded_before_it_is_compared() {
        let target = "/20160918/instances?availabilityDomain=Uocm%3APHX-AD-1&displayName=a+b";
        for (containing, expected) in
            [("Uocm:PHX-AD-1", 1), ("Uocm%3APHX-AD-1", 1), ("a b", 1), ("Uocm:PHX-AD-2", 0)]
        {
            let drop = Rule::always("ListInstances", Fault::DropAfter);
            let rule = Rule { containing: Some(containing.to_owned()), ..drop };
            let happened = Faults::new(&[rule], 0).of("ListInstances", target, b"");
            assert_eq!(happened.len(), expected, "{containing}");
        }
    }

    #[test]
    fn rules_count() {
        let drop = || Rule::always("LaunchInstance", Fault::DropAfter);
        let table: [(&str, Rule, [bool; 4]); 7] = [
            ("always", drop(), [true; 4]),
            ("once", Rule::once("LaunchInstance", Fault::DropAfter), [true, false, false, false]),
            ("later", Rule { after: 1, count: Some(2), ..drop() }, [false, true, true, false]),
            ("other operation", Rule::always("GetInstance", Fault::DropAfter), [false; 4]),
            ("every operation", Rule::always("*", Fault::DropAfter), [true; 4]),
            ("never", Rule { probability: 0.0, ..drop() }, [false; 4]),
            ("other body", Rule { containing: Some("node-8".into()), ..drop() }, [false; 4]),
        ];
        for (name, rule, expected) in table {
            assert_eq!(hits(rule, 4), expected, "{name}");
        }
    }

    #[test]
    fn a_rule_is_not_used_up_by_a_request_that_another_answers() {
        let answer = Fault::answer(429, "TooManyRequests", "x");
        let late = Fault::Delay { millis: 1 };
        let table = [
            (
                "answer first",
                vec![answer.clone(), Fault::DropAfter],
                vec![vec![answer.clone()], vec![Fault::DropAfter]],
            ),
            (
                "answer last",
                vec![Fault::DropAfter, answer.clone()],
                vec![vec![Fault::DropAfter], vec![answer.clone()]],
            ),
            (
                "two of a kind",
                vec![Fault::DropAfter, Fault::DropAfter],
                vec![vec![Fault::DropAfter], vec![Fault::DropAfter]],
            ),
            (
                "late and dropped",
                vec![late.clone(), Fault::DropAfter],
                vec![vec![late, Fault::DropAfter], vec![]],
            ),
        ];
        for (name, rules, expected) in table {
            let rules: Vec<Rule> = rules.into_iter().map(|fault| Rule::once("*", fault)).collect();
            let mut faults = Faults::new(&rules, 0);
            let seen: Vec<_> = expected.iter().map(|_| of(&mut faults)).collect();
            assert_eq!(seen, expected, "{name}");
            assert_eq!(faults.list(), [], "{name}");
        }
    }

    #[test]
    fn the_requests_let_by_are_counted_only_when_they_come_to_the_rule() {
        let later = Rule { after: 1, ..Rule::once("*", Fault::DropAfter) };
        let mut faults = Faults::new(&[Rule::once("*", Fault::DropBefore), later], 0);
        let seen: Vec<_> = (0..3).map(|_| of(&mut faults)).collect();
        assert_eq!(seen, [vec![Fault::DropBefore], vec![], vec![Fault::DropAfter]]);
    }

    #[test]
    fn one_seed_gives_the_same_faults_each_time() {
        let half = || Rule { probability: 0.5, ..Rule::always("*", Fault::DropBefore) };
        assert_eq!(hits(half(), 100), hits(half(), 100));
    }

    #[test]
    fn probability_is_a_share() {
        let half = Rule { probability: 0.5, ..Rule::always("*", Fault::DropBefore) };
        let hit = hits(half, 2000).into_iter().filter(|&hit| hit).count();
        assert!((800..1200).contains(&hit), "{hit} of 2000");
    }

    #[test]
    fn a_rule_reads_as_written() {
        let text = r#"{"operation": "LaunchInstance", "count": 2,
            "fault": {"kind": "answer", "status": 429, "code": "TooManyRequests", "message": "x"}}"#;
        let rule: Rule = serde_json::from_str(text).unwrap();
        assert_eq!(rule.fault, Fault::answer(429, "TooManyRequests", "x"));
        assert!((rule.probability - 1.0).abs() < f64::EPSILON);
        assert!(serde_json::from_str::<Rule>(&text.replace("count", "counts")).is_err());
    }
}
