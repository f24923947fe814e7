//! What errors say, and what their kinds mean.

use cloud_core::{ApiOperation, Error, ErrorKind};
use std::error::Error as _;
use std::io;
use std::time::Duration;

#[test]
fn predicates_say_what_a_kind_means() {
    // Transient, about the place, about the caller, may have happened.
    let table = [
        (ErrorKind::Unauthenticated, [false, false, true, false]),
        (ErrorKind::Forbidden, [false, false, true, false]),
        (ErrorKind::NotFound, [false, false, false, false]),
        (ErrorKind::Conflict, [true, false, false, false]),
        (ErrorKind::TokenUsedUp, [false, false, false, false]),
        (ErrorKind::Invalid, [false, false, false, false]),
        (ErrorKind::Quota, [false, true, false, false]),
        (ErrorKind::Capacity, [false, true, false, false]),
        (ErrorKind::Throttled, [true, false, false, false]),
        (ErrorKind::Unavailable, [true, false, false, false]),
        (ErrorKind::Ambiguous, [true, false, false, true]),
        (ErrorKind::Protocol, [true, false, false, false]),
        (ErrorKind::Unsupported, [false, false, false, false]),
    ];
    assert_eq!(table.map(|(kind, _)| kind), ErrorKind::ALL);
    for (kind, expected) in table {
        let said = [
            kind.is_transient(),
            kind.is_about_the_place(),
            kind.is_about_the_caller(),
            kind.may_have_happened(),
        ];
        assert_eq!(said, expected, "{kind:?}");
    }
}

#[test]
fn an_error_says_what_was_tried_on_what_and_why() {
    let plain = Error::new(ErrorKind::Forbidden, ApiOperation::Images);
    let table = [
        (plain.clone(), "images: forbidden"),
        (plain.clone().on("golden"), "images golden: forbidden"),
        (plain.clone().because("no policy"), "images: forbidden: no policy"),
        (plain.clone().because(" \n "), "images: forbidden"),
        (plain.clone().with_code("403"), "images: forbidden (403)"),
        (
            plain.with_retry_after(Duration::from_secs(3)).with_request_id("r1").with_code("403"),
            "images: forbidden (403, request r1, retry after 3s)",
        ),
        (
            Error::unsupported(ApiOperation::Rebuild).on("i1"),
            "rebuild i1: not supported by this cloud",
        ),
    ];
    for (error, text) in table {
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn words_from_outside_stay_on_one_line_and_short() {
    let error = Error::new(ErrorKind::Invalid, ApiOperation::Get);
    let bent = error.clone().because("one\r\n\ttwo\u{1b}[31m\u{0}three");
    assert_eq!(bent.message(), Some("one two [31m three"));
    let long = error.because("é".repeat(10_000));
    assert_eq!(long.message().map(|text| text.chars().count()), Some(401));
}

#[test]
fn the_cause_is_in_the_chain_and_not_in_the_text() {
    let cause = io::Error::other("disk on fire");
    let error = Error::new(ErrorKind::Unavailable, ApiOperation::List).caused_by(cause);
    assert_eq!(error.to_string(), "list: unavailable");
    assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("disk on fire"));
    let ambiguous = error.with_kind(ErrorKind::Ambiguous);
    assert_eq!(ambiguous.kind(), ErrorKind::Ambiguous);
    assert!(ambiguous.source().is_some(), "the rest is kept");
}
