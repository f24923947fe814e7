//! Why a node did not get what was asked for, in words for Slurm.

use crate::cause::Cause;
use crate::site::Place;
use cloud_core::{Error, Fault};
use hostlist::NodeName;

/// Why a node did not get what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    /// The reason that Slurm gets: the same for all nodes that failed alike.
    pub(crate) text: String,
    pub(crate) request_id: Option<String>,
}

impl Failure {
    pub(crate) fn new(cause: Cause, text: impl Into<String>) -> Self {
        Self { cause, text: text.into(), request_id: None }
    }

    /// What a cloud refused, in words that hold for every node that it refused alike; the name of this one, if it
    /// is one node's, is left out of them.
    pub(crate) fn of(error: &Error, place: Option<&Place>, node: Option<&NodeName>) -> Self {
        let cause = Cause::from(error.kind());
        let mut text = format!("{}: {}", error.operation(), cause.words());
        if let Some(place) = place {
            text = format!("{text} ({})", place.pool());
        }
        // Behind "no credential" only the token service's own words say what to do.
        let behind =
            std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<Error>());
        for message in [Some(error), behind].into_iter().flatten().filter_map(Error::message) {
            text = format!("{text}: {}", alike(message, node));
        }
        Self { cause, text, request_id: error.request_id().map(str::to_owned) }
    }

    /// What became of an instance after its launch was accepted.
    pub(crate) fn of_fault(fault: &Fault, place: Option<&Place>, node: &NodeName) -> Self {
        let cause = Cause::from(fault.kind);
        let place = place.map(|place| format!(" ({})", place.pool())).unwrap_or_default();
        let said = alike(&fault.message, Some(node));
        Self::new(cause, format!("launch: {}{place}: {said}", cause.words()))
    }
}

/// The words of a cloud without the ids in them and without the name of the node: a thousand nodes that failed
/// alike are one reason, and one call to Slurm.
fn alike(message: &str, node: Option<&NodeName>) -> String {
    let is_node = |word: &str| node.is_some_and(|node| word.eq_ignore_ascii_case(node.as_str()));
    let is_in_id = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(begin) = rest.find(is_in_id) {
        let (before, word) = rest.split_at(begin);
        let (word, after) = word.split_at(word.find(|c| !is_in_id(c)).unwrap_or(word.len()));
        let end = word.trim_end_matches(['.', '-', '_']);
        text.push_str(before);
        text.push_str(if is_id(end) || is_node(end) { "…" } else { end });
        text.push_str(word.strip_prefix(end).unwrap_or_default());
        rest = after;
    }
    text.push_str(rest);
    text
}

/// True for a UUID and for an OCID.
fn is_id(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let hexadecimal = || parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()));
    word.starts_with("ocid1.") || (lengths == [8, 4, 4, 4, 12] && hexadecimal())
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{ErrorKind, Operation};

    #[test]
    fn every_node_that_failed_alike_was_a_reason_of_its_own() {
        let uuid = "ff7ef1f4-1d60-4241-a2d7-e0af2d92f7d4";
        let ocid = "ocid1.instance.oc1.phx.abyhqljt";
        let rows = [
            (format!("Build of instance {uuid} aborted: no."), "Build of instance … aborted: no."),
            (format!("build failures for instance {uuid}."), "build failures for instance …."),
            (format!("[{ocid}] ({uuid})"), "[…] (…)"),
            (ocid.to_owned(), "…"),
            ("Out of host capacity.".to_owned(), "Out of host capacity."),
            (
                "VM.Standard2.1 in AD-1, 10.0.0.1: é".to_owned(),
                "VM.Standard2.1 in AD-1, 10.0.0.1: é",
            ),
            (
                "ff7ef1f4-1d60-4241-a2d7-e0af2d92f7dx".to_owned(),
                "ff7ef1f4-1d60-4241-a2d7-e0af2d92f7dx",
            ),
            (
                "(Hostname N-7 is already used in subnet; not n-70, nor an-7.)".to_owned(),
                "(Hostname … is already used in subnet; not n-70, nor an-7.)",
            ),
            (String::new(), ""),
        ];
        let node = NodeName::new("n-7").unwrap();
        for (message, expected) in rows {
            assert_eq!(alike(&message, Some(&node)), expected);
        }
        assert_eq!(alike("n-7 is down", None), "n-7 is down");
    }

    #[test]
    fn clocks_that_are_apart_were_lost_behind_a_missing_credential() {
        let refused = Error::new(ErrorKind::Unauthenticated, Operation::Authenticate)
            .because("600 s apart, set the clock of this machine");
        let error = Error::new(ErrorKind::Unauthenticated, Operation::Launch)
            .because("no credential")
            .caused_by(refused);
        let text = Failure::of(&error, None, None).text;
        let words = ": no credential: 600 s apart, set the clock of this machine";
        assert!(text.starts_with("launch: ") && text.ends_with(words), "{text}");
    }
}
