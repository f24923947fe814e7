//! Classifies OCI's responses, in one table.

use crate::Clock;
use cloud_core::http::{Classification, Response, by_status};
use cloud_core::{Error, ErrorKind};
use serde::Deserialize;
use std::time::Duration;

/// OCI refuses requests whose date is further than this from its own.
const SKEW: Duration = Duration::from_mins(5);

/// Maximum length of a message before a remark, so that the remark is not cut off.
const LONGEST: usize = 200;

/// The relevant part of the body of an error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    code: Option<String>,
    message: Option<String>,
}

/// Classifies a failed response.
pub(crate) fn classify(response: &Response) -> Classification {
    let body: Option<Body> = serde_json::from_slice(&response.body).ok();
    let (code, message) = body.map(|body| (body.code, body.message)).unwrap_or_default();
    // A load balancer's page, or an empty body.
    let raw = || String::from_utf8_lossy(&response.body).into_owned();
    let message = message.unwrap_or_else(raw);
    let status = response.status.as_u16();
    let (kind, retryable) = meaning(status, code.as_deref(), &message)
        .unwrap_or_else(|| (by_status(response).kind, false));
    let code = code.unwrap_or_else(|| status.to_string());
    Classification { kind, code: Some(code), message, retryable, encoded: None }
}

/// The table: from status, code and message to the kind, and whether waiting helps.
fn meaning(status: u16, code: Option<&str>, message: &str) -> Option<(ErrorKind, bool)> {
    let code = code.unwrap_or_default();
    if let Some(kind) = by_message(message)
        && matches!(status, 400 | 409 | 429 | 500..=599)
    {
        return Some((kind, false));
    }
    let meaning = match (status, code) {
        (400, "LimitExceeded" | "QuotaExceeded") => (ErrorKind::Quota, false),
        // A 404 for an invalid part of the path, such as a malformed id.
        (400, _) | (404, "InvalidParameter") => (ErrorKind::Invalid, false),
        (401, _) => (ErrorKind::Unauthenticated, false),
        (404, "NotAuthorizedOrNotFound") => (ErrorKind::NotFound, false),
        // An unknown path tells nothing about an instance.
        (404, _) => (ErrorKind::Protocol, false),
        // Waiting does not help with a resource that is being deleted.
        (409, "IncorrectState") => (ErrorKind::Conflict, !names_an_end(message)),
        (409, "LockConflict" | "ExternalServerIncorrectState") => (ErrorKind::Conflict, true),
        (409, "Conflict") => (ErrorKind::Conflict, names_a_moment(message)),
        (409, "InvalidatedRetryToken") => (ErrorKind::TokenUsedUp, false),
        (409 | 412, _) => (ErrorKind::Conflict, false),
        (429, _) => (ErrorKind::Throttled, true),
        (501, _) => (ErrorKind::Unsupported, false),
        (500 | 502..=504, _) => (ErrorKind::Unavailable, false),
        _ => return None,
    };
    Some(meaning)
}

/// Classifies by message, whatever the status. OCI answers 500 when it has no capacity; by status alone, the request would
/// be repeated for minutes.
fn by_message(message: &str) -> Option<ErrorKind> {
    let message = message.to_ascii_lowercase();
    if message.contains("out of host capacity") || message.contains("out of capacity") {
        return Some(ErrorKind::Capacity);
    }
    let quota = ["service limits were exceeded", "quotas were exceeded", "quota was exceeded"];
    quota.iter().any(|words| message.contains(words)).then_some(ErrorKind::Quota)
}

/// Classifies the error of a work request: of a launch that was accepted and failed later.
pub(crate) fn classify_late(code: Option<&str>, message: &str) -> ErrorKind {
    // The host name: https://github.com/oracle/oci-ansible-collection/issues/133
    if message.contains("is already used in subnet") {
        return ErrorKind::Conflict;
    }
    let by_code = match code.unwrap_or_default() {
        "LimitExceeded" | "QuotaExceeded" => Some(ErrorKind::Quota),
        "NotAuthorizedOrNotFound" | "NotAuthorized" => Some(ErrorKind::Forbidden),
        "InvalidParameter"
        | "CannotParseRequest"
        | "MissingParameter"
        | "RelatedResourceNotAuthorizedOrNotFound" => Some(ErrorKind::Invalid),
        _ => None,
    };
    by_message(message).or(by_code).unwrap_or(ErrorKind::Unavailable)
}

/// True if the message says that waiting helps, as for two images of an instance at the same time.
fn names_a_moment(message: &str) -> bool {
    message.contains("being modified") || message.contains("try again later")
}

/// States are in capitals: an instance that "cannot be terminated while it is STOPPING" can be a moment later.
fn names_an_end(message: &str) -> bool {
    message.contains("TERMINATING") || message.contains("TERMINATED")
}

/// Adds both clocks to an error that may be caused by their difference. An ambiguous earlier attempt does not matter here.
pub(crate) fn with_our_clock(error: Error, clock: &Clock) -> Error {
    let unknown = error.kind() == ErrorKind::Unauthenticated
        || (error.kind() == ErrorKind::Ambiguous && error.code() == Some("NotAuthenticated"));
    let Some(theirs) = error.answered().filter(|_| unknown) else {
        return error;
    };
    let ours = clock.now();
    let apart = theirs.duration_since(ours).or_else(|_| ours.duration_since(theirs));
    let hint = match apart.unwrap_or_default() {
        apart if apart >= SKEW => {
            format!(": {} s apart, set the clock of this machine", apart.as_secs())
        }
        _small => String::new(),
    };
    let (theirs, ours) = (httpdate::fmt_http_date(theirs), clock.http_date());
    with_remark(error, &format!("; the cloud's clock says {theirs}, ours {ours}{hint}"))
}

/// Appends a remark to the cloud's message.
pub(crate) fn with_remark(error: Error, remark: &str) -> Error {
    let said: String = error.message().unwrap_or_default().chars().take(LONGEST).collect();
    error.because(format!("{said}{remark}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::http::{HeaderMap, StatusCode};
    use proptest::prelude::*;
    use std::time::SystemTime;

    fn response(status: u16, body: impl Into<Vec<u8>>) -> Response {
        let body: Vec<u8> = body.into();
        Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: body.into(),
            request_id: None,
        }
    }

    fn said(status: u16, code: &str, message: &str) -> Classification {
        classify(&response(status, format!(r#"{{"code": "{code}", "message": "{message}"}}"#)))
    }

    /// Every row of the reference's table: response, kind, and whether waiting helps.
    #[test]
    fn every_row_of_the_reference() {
        use ErrorKind::{
            Capacity, Conflict, Invalid, NotFound, Quota, Throttled, Unauthenticated, Unavailable,
        };
        let table = [
            (429, "TooManyRequests", "Too many requests for the user.", Throttled, true),
            (500, "InternalError", "Out of host capacity.", Capacity, false),
            (500, "InternalError", "OUT OF HOST CAPACITY", Capacity, false),
            (500, "InternalError", "Internal error occurred", Unavailable, false),
            (500, "InternalServerError", "x", Unavailable, false),
            (502, "BadGateway", "x", Unavailable, false),
            (503, "ServiceUnavailable", "x", Unavailable, false),
            (504, "GatewayTimeout", "x", Unavailable, false),
            (400, "LimitExceeded", "The following service limits were exceeded: x", Quota, false),
            (400, "QuotaExceeded", "The following compartment quotas were exceeded", Quota, false),
            (400, "CannotParseRequest", "x", Invalid, false),
            (400, "InvalidParameter", "x", Invalid, false),
            (400, "MissingParameter", "x", Invalid, false),
            (400, "RelatedResourceNotAuthorizedOrNotFound", "x", Invalid, false),
            (401, "NotAuthenticated", "x", Unauthenticated, false),
            (404, "NotAuthorizedOrNotFound", "x", NotFound, false),
            (409, "IncorrectState", "instance is in state STOPPING", Conflict, true),
            (409, "LockConflict", "x", Conflict, true),
            (409, "ExternalServerIncorrectState", "x", Conflict, true),
            (409, "Conflict", "The resource is currently being modified", Conflict, true),
            (
                409,
                "Conflict",
                "Conflict with another image operation, try again later",
                Conflict,
                true,
            ),
            (409, "Conflict", "The name is in use", Conflict, false),
            (409, "InvalidatedRetryToken", "x", ErrorKind::TokenUsedUp, false),
            (412, "NoEtagMatch", "x", Conflict, false),
            // Beyond the reference: what the SDK does not repeat either, and what cannot pass.
            (501, "NotImplemented", "x", ErrorKind::Unsupported, false),
            (404, "NotFound", "no such operation", ErrorKind::Protocol, false),
            (404, "InvalidParameter", "Invalid instanceId", Invalid, false),
            (409, "NotAuthorizedOrResourceAlreadyExists", "x", Conflict, false),
            (409, "IncorrectState", "instance is in state TERMINATING", Conflict, false),
            (409, "IncorrectState", "cannot be terminated while it is STOPPING", Conflict, true),
            (409, "SomethingNew", "x", Conflict, false),
            (403, "NotAuthorized", "x", ErrorKind::Forbidden, false),
        ];
        for (status, code, message, kind, retryable) in table {
            let classification = said(status, code, message);
            assert_eq!(
                (classification.kind, classification.retryable),
                (kind, retryable),
                "{status} {code} {message}"
            );
            assert_eq!(classification.code.as_deref(), Some(code));
        }
    }

    /// The client repeats what Oracle's SDK repeats when it is configured to, and nothing else except for capacity.
    #[test]
    fn what_the_sdk_repeats_is_repeated() {
        let text = include_str!("../tests/data/errors-and-retries.json");
        let seen: serde_json::Value = serde_json::from_str(text).unwrap();
        let rows = seen["matrix"].as_array().unwrap();
        assert_eq!(rows.len(), 17);
        for row in rows {
            let status = u16::try_from(row["status"].as_u64().unwrap()).unwrap();
            let classification = classify(&response(status, row.to_string()));
            let theirs = row["DEFAULT_RETRY_STRATEGY"]["attempts"].as_u64().unwrap() > 1;
            let ours = classification.retryable || classification.kind == ErrorKind::Unavailable;
            assert_eq!(ours, theirs && classification.kind != ErrorKind::Capacity, "{row}");
        }
    }

    /// The errors that Oracle's SDK parses from bodies.
    #[test]
    fn bodies_of_errors_say_what_the_sdk_reads_in_them() {
        let text = include_str!("../tests/data/response-leniency.json");
        let seen: serde_json::Value = serde_json::from_str(text).unwrap();
        let table = [
            ("err body {code,message}", r#"{"code": "TooManyRequests", "message": "slow"}"#),
            ("err body html", "<html>502</html>"),
            ("err body empty", ""),
            ("err body extra", r#"{"code": "X", "message": "m", "more": [1]}"#),
        ];
        for (name, body) in table {
            let classification = classify(&response(502, body));
            assert_eq!(
                classification.code.as_deref(),
                seen[name][0].as_str().or(Some("502")),
                "{name}"
            );
            assert_eq!(Some(classification.message.as_str()), seen[name][1].as_str(), "{name}");
        }
    }

    #[test]
    fn a_token_whose_instance_is_gone_means_a_look_and_a_new_generation() {
        let classification = said(409, "InvalidatedRetryToken", "x");
        assert_eq!(classification.kind, ErrorKind::TokenUsedUp);
    }

    #[test]
    fn a_malformed_id_is_a_permanent_error() {
        assert!(!said(404, "InvalidParameter", "Invalid instanceId").kind.is_transient());
    }

    #[test]
    fn pages_of_load_balancers_are_no_error_of_ours() {
        let classification = classify(&response(502, "<html>502</html>"));
        assert_eq!(
            (classification.kind, classification.message.as_str()),
            (ErrorKind::Unavailable, "<html>502</html>")
        );
        assert_eq!(classification.code.as_deref(), Some("502"));
        assert_eq!(classify(&response(404, "")).kind, ErrorKind::Protocol, "no instance said that");
    }

    #[test]
    fn errors_of_work_requests() {
        let table = [
            (Some("InternalError"), "Out of host capacity.", ErrorKind::Capacity),
            (None, "out of host capacity", ErrorKind::Capacity),
            (Some("LimitExceeded"), "x", ErrorKind::Quota),
            (None, "The following service limits were exceeded: y", ErrorKind::Quota),
            (Some("InvalidParameter"), "x", ErrorKind::Invalid),
            (Some("NotAuthorizedOrNotFound"), "x", ErrorKind::Forbidden),
            (Some("InternalError"), "x", ErrorKind::Unavailable),
            (
                Some("vcn-error"),
                "A problem occurred while preparing the instance's VNIC. (Hostname vm-1 is already used in subnet s)",
                ErrorKind::Conflict,
            ),
            (Some("vcn-error"), "x", ErrorKind::Unavailable),
            (None, "", ErrorKind::Unavailable),
        ];
        for (code, message, kind) in table {
            assert_eq!(classify_late(code, message), kind, "{code:?} {message}");
        }
    }

    /// The message of a 401, with clocks that differ by this many seconds.
    fn unauthenticated(kind: ErrorKind, said: &str, apart: u64) -> String {
        let theirs = httpdate::parse_http_date("Mon, 16 Nov 2026 12:00:00 GMT").unwrap();
        let error = Error::new(kind, cloud_core::ApiOperation::List);
        let error = error.because(said).with_code("NotAuthenticated").with_answered(theirs);
        let clock = Clock::new(move || theirs - Duration::from_secs(apart));
        with_our_clock(error, &clock).to_string()
    }

    #[test]
    fn the_clock_of_the_cloud_stood_alone_in_an_outcome_that_is_unknown() {
        assert_eq!(
            unauthenticated(ErrorKind::Ambiguous, "Not you", 1),
            "list: outcome unknown: Not you; the cloud's clock says Mon, 16 Nov 2026 12:00:00 GMT, \
             ours Mon, 16 Nov 2026 11:59:59 GMT (NotAuthenticated)"
        );
    }

    #[test]
    fn a_long_message_does_not_cut_off_the_clocks() {
        let said = unauthenticated(ErrorKind::Unauthenticated, &"x".repeat(1000), 600);
        assert!(said.contains("600 s apart, set the clock of this machine"), "{said}");
    }

    #[test]
    fn clocks_that_are_apart_are_named_side_by_side() {
        assert_eq!(
            unauthenticated(ErrorKind::Unauthenticated, "Not you", 600),
            "list: not authenticated: Not you; the cloud's clock says Mon, 16 Nov 2026 12:00:00 GMT, \
             ours Mon, 16 Nov 2026 11:50:00 GMT: 600 s apart, set the clock of this machine \
             (NotAuthenticated)"
        );
        assert_eq!(
            unauthenticated(ErrorKind::Unauthenticated, "Not you", 1),
            "list: not authenticated: Not you; the cloud's clock says Mon, 16 Nov 2026 12:00:00 GMT, \
             ours Mon, 16 Nov 2026 11:59:59 GMT (NotAuthenticated)"
        );
    }

    #[test]
    fn other_errors_have_no_clocks() {
        let error = Error::new(ErrorKind::NotFound, cloud_core::ApiOperation::Get).because("x");
        let clock = Clock::new(|| SystemTime::UNIX_EPOCH);
        assert_eq!(with_our_clock(error, &clock).message(), Some("x"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_answer_has_a_meaning(status in 300u16..600, body in prop::collection::vec(any::<u8>(), 0..80)) {
            let classification = classify(&response(status, body));
            prop_assert!(!classification.retryable || status == 429 || status == 409);
        }
    }
}
