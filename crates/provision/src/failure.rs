//! Why a node did not get what was asked for, in words for Slurm.

use crate::cause::Cause;
use crate::site::Place;
use cloud_core::{Error, ErrorKind, Fault, is_uuid};
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

    /// True if another place may have a machine.
    pub(crate) fn is_for_lack_of_room(&self) -> bool {
        matches!(self.cause, Cause::Capacity | Cause::Quota)
    }

    /// What a cloud refused, in words that hold for every node that it refused alike.
    pub(crate) fn of(error: &Error, place: Option<&Place>, names: Names<'_>) -> Self {
        let cause = Cause::from(error.kind());
        let mut text = format!("{}: {}", error.operation(), words(error));
        if let Some(place) = place {
            text = format!("{text} ({})", place.pool());
        }
        // Behind "no credential" only the token service's own words say what to do.
        let behind =
            std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<Error>());
        for message in [Some(error), behind].into_iter().flatten().filter_map(Error::message) {
            text = format!("{text}: {}", names.left_out_of(message));
        }
        Self { cause, text, request_id: error.request_id().map(str::to_owned) }
    }

    /// What became of an instance after its launch was accepted.
    pub(crate) fn of_fault(fault: &Fault, place: Option<&Place>, names: Names<'_>) -> Self {
        let cause = Cause::from(fault.kind);
        let place = place.map(|place| format!(" ({})", place.pool())).unwrap_or_default();
        let said = names.left_out_of(&fault.message);
        Self::new(cause, format!("launch: {}{place}: {said}", cause.words()))
    }
}

/// What happened, in a few words. An error that the cloud has answered with is no lost answer, although the cloud may have
/// launched all the same.
fn words(error: &Error) -> &'static str {
    let answered = error.code().is_some() && error.answer_kind() == ErrorKind::Unavailable;
    let cause = if answered { Cause::Unavailable } else { Cause::from(error.kind()) };
    cause.words()
}

/// What differs in the messages about nodes that failed alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    /// The node, if it is one node's failure.
    pub(crate) node: Option<&'a NodeName>,
    /// True for an id of the cloud.
    pub(crate) is_id: fn(&str) -> bool,
}

impl Names<'_> {
    /// The words of a cloud without the ids in them and without the name of the node: a thousand nodes that failed
    /// alike are one reason, and one call to Slurm.
    fn left_out_of(self, message: &str) -> String {
        let is_node =
            |word: &str| self.node.is_some_and(|node| word.eq_ignore_ascii_case(node.as_str()));
        let is_name = |word: &str| (self.is_id)(word) || is_uuid(word) || is_node(word);
        let is_in_id = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let mut text = String::with_capacity(message.len());
        let mut rest = message;
        while let Some(begin) = rest.find(is_in_id) {
            let (before, word) = rest.split_at(begin);
            let (word, after) = word.split_at(word.find(|c| !is_in_id(c)).unwrap_or(word.len()));
            let end = word.trim_end_matches(['.', '-', '_']);
            text.push_str(before);
            text.push_str(if is_name(end) { "…" } else { end });
            text.push_str(word.strip_prefix(end).unwrap_or_default());
            rest = after;
        }
        text.push_str(rest);
        text
    }
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
    use cloud_core::ApiOperation;

    fn is_id(text: &str) -> bool {
        text.starts_with("i-0.")
    }

    #[test]
    fn nodes_that_failed_alike_have_one_reason() {
        let uuid = "ff7ef1f4-1d60-4241-a2d7-e0af2d92f7d4";
        let id = "i-0.abyhqljt";
        let rows = [
            (format!("Build of instance {uuid} aborted: no."), "Build of instance … aborted: no."),
            (format!("build failures for instance {uuid}."), "build failures for instance …."),
            (format!("[{id}] ({uuid})"), "[…] (…)"),
            (id.to_owned(), "…"),
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
            let names = Names { node: Some(&node), is_id };
            assert_eq!(names.left_out_of(&message), expected);
        }
        assert_eq!(Names { node: None, is_id }.left_out_of("n-7 is down"), "n-7 is down");
    }

    #[test]
    fn an_error_that_the_cloud_answers_with_is_no_lost_answer() {
        let failed = |error: Error| {
            let failure = Failure::of(&error, None, Names { node: None, is_id });
            (failure.cause, failure.text)
        };
        let error = |kind| Error::new(kind, ApiOperation::Launch).because("no");
        let lost = error(ErrorKind::Unavailable).with_kind(ErrorKind::Ambiguous);
        assert_eq!(failed(lost.clone()), (Cause::Ambiguous, "launch: answer lost: no".to_owned()));
        let answered = "launch: cloud unavailable: no".to_owned();
        assert_eq!(failed(lost.with_code("503")), (Cause::Ambiguous, answered));
        let full = error(ErrorKind::Capacity).with_code("500").with_kind(ErrorKind::Ambiguous);
        assert_eq!(failed(full).1, "launch: answer lost: no", "an earlier attempt's");
    }

    #[test]
    fn clocks_that_are_apart_are_named_behind_a_missing_credential() {
        let refused = Error::new(ErrorKind::Unauthenticated, ApiOperation::Authenticate)
            .because("600 s apart, set the clock of this machine");
        let error = Error::new(ErrorKind::Unauthenticated, ApiOperation::Launch)
            .because("no credential")
            .caused_by(refused);
        let text = Failure::of(&error, None, Names { node: None, is_id }).text;
        let words = ": no credential: 600 s apart, set the clock of this machine";
        assert!(text.starts_with("launch: ") && text.ends_with(words), "{text}");
    }
}
