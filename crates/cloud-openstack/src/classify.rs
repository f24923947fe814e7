//! Classifies failed responses, in one table for all services.

use crate::fault;
use cloud_core::ErrorKind;
use cloud_core::http::{Classification, Response, by_status};
use serde_json::Value;

/// Classifies a failed response.
///
/// The status is not always enough: Nova answers 403 both for a policy and for a quota, which only the text distinguishes.
pub(crate) fn classify(response: &Response) -> Classification {
    let base = by_status(response);
    let (code, message) = envelope(&response.body).unwrap_or((None, base.message));
    let kind = kind(response, base.kind, &message);
    Classification {
        kind,
        code: code.or(base.code),
        message,
        retryable: kind == ErrorKind::Throttled,
        encoded: None,
    }
}

fn kind(response: &Response, by_status: ErrorKind, message: &str) -> ErrorKind {
    let status = response.status.as_u16();
    match status {
        // Older Novas and proxies answer 413 instead of 429, and for quotas, too.
        413 if response.retry_after().is_none() && fault::is_quota(message) => ErrorKind::Quota,
        413 if response.retry_after().is_some() => ErrorKind::Throttled,
        // Neutron answers 409 if a quota is exceeded. An ambiguous name stays ambiguous.
        409 if fault::is_ambiguous(message) => ErrorKind::Invalid,
        403 | 409 if fault::is_quota(message) => ErrorKind::Quota,
        400 | 403 | 409 if fault::is_capacity(message) => ErrorKind::Capacity,
        // The service does not have the microversion.
        406 => ErrorKind::Unsupported,
        _ => by_status,
    }
}

/// The code and message of any service's error.
///
/// Nova: `{"badRequest": {"code": 400, "message": …}}` under many a name. Keystone, and the
/// middleware before all others: `{"error": {"code", "title", "message"}}`. Neutron:
/// `{"NeutronError": {"type", "message"}}`. Glance: `{"message", "code": "404 Not Found"}`, or HTML.
/// Placement: `{"errors": [{"title", "detail"}]}`.
fn envelope(body: &[u8]) -> Option<(Option<String>, String)> {
    let Ok(Value::Object(object)) = serde_json::from_slice(body) else {
        return html(body).map(|message| (None, message));
    };
    if let Some(Value::String(message)) = object.get("message") {
        return Some((text(object.get("title")), message.clone()));
    }
    let (name, inner) = object.into_iter().next()?;
    match inner {
        Value::Object(inner) => {
            let own = text(inner.get("type")).or_else(|| text(inner.get("title")));
            let message = text(inner.get("message")).or_else(|| text(inner.get("detail")))?;
            let named = !matches!(name.as_str(), "error" | "NeutronError");
            Some((if named { Some(name) } else { own }, message))
        }
        Value::Array(errors) => {
            let first = errors.first()?;
            Some((text(first.get("title")), text(first.get("detail"))?))
        }
        Value::String(message) => Some((Some(name), message)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The text of an HTML page.
fn html(body: &[u8]) -> Option<String> {
    let page = std::str::from_utf8(body).ok().filter(|page| page.trim_start().starts_with('<'))?;
    let mut words = String::new();
    let mut inside = false;
    for c in page.chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                words.push(' ');
            }
            c if !inside => words.push(c),
            _ => {}
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
    use proptest::prelude::*;

    fn response(status: u16, retry_after: Option<&'static str>, body: &str) -> Response {
        let pause = retry_after
            .map(|pause| (HeaderName::from_static("retry-after"), HeaderValue::from_static(pause)));
        Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: pause.into_iter().collect::<HeaderMap>(),
            body: body.to_owned().into(),
            request_id: None,
        }
    }

    #[test]
    fn answers_have_kinds() {
        let nova = |name: &str, words: &str| format!(r#"{{"{name}": {{"message": "{words}"}}}}"#);
        let table = [
            (403, None, nova("forbidden", "Quota exceeded for cores"), ErrorKind::Quota),
            (403, None, nova("forbidden", "Maximum number of ports exceeded"), ErrorKind::Quota),
            (403, None, nova("forbidden", "Project p is over a limit for [x]"), ErrorKind::Quota),
            (
                403,
                None,
                nova("forbidden", "Policy doesn't allow os_compute_api:x"),
                ErrorKind::Forbidden,
            ),
            (
                409,
                None,
                nova("NeutronError", "Quota exceeded for resources: ['port']."),
                ErrorKind::Quota,
            ),
            (
                409,
                None,
                nova("conflictingRequest", "Cannot 'rebuild' instance"),
                ErrorKind::Conflict,
            ),
            (
                400,
                None,
                nova("badRequest", "No fixed IP addresses available for network: n"),
                ErrorKind::Capacity,
            ),
            (400, None, nova("badRequest", "No valid host was found. "), ErrorKind::Capacity),
            (400, None, nova("badRequest", "Can not find requested image"), ErrorKind::Invalid),
            (
                404,
                None,
                nova("itemNotFound", "Instance x could not be found."),
                ErrorKind::NotFound,
            ),
            (
                406,
                None,
                nova("computeFault", "Version 2.999 is not supported"),
                ErrorKind::Unsupported,
            ),
            (413, Some("7"), nova("overLimit", "slow down"), ErrorKind::Throttled),
            (413, None, nova("overLimit", "Quota exceeded for instances"), ErrorKind::Quota),
            (413, None, nova("badRequest", "Request is too large."), ErrorKind::Invalid),
            (429, Some("7"), nova("overLimit", "slow down"), ErrorKind::Throttled),
            (429, None, "<html>slow down</html>".to_owned(), ErrorKind::Throttled),
            (500, None, nova("computeFault", "Unexpected API Error."), ErrorKind::Unavailable),
            (503, None, "upstream".to_owned(), ErrorKind::Unavailable),
        ];
        for (status, pause, body, kind) in table {
            let classification = classify(&response(status, pause, &body));
            assert_eq!(classification.kind, kind, "{status} {body}");
            assert_eq!(classification.retryable, kind == ErrorKind::Throttled, "{status} {body}");
        }
    }

    #[test]
    fn an_ambiguous_name_is_invalid() {
        for words in [
            "Multiple possible networks found, use a Network ID to be more specific.",
            "Multiple security_group matches found for name 'x', use an ID to be more specific.",
        ] {
            let body =
                format!(r#"{{"conflictingRequest": {{"code": 409, "message": "{words}"}}}}"#);
            assert_eq!(classify(&response(409, None, &body)).kind, ErrorKind::Invalid, "{words}");
        }
    }

    #[test]
    fn envelopes_of_all_services_are_opened() {
        let table = [
            (r#"{"itemNotFound": {"code": 404, "message": "gone"}}"#, Some("itemNotFound"), "gone"),
            (
                r#"{"error": {"code": 401, "title": "Unauthorized", "message": "who"}}"#,
                Some("Unauthorized"),
                "who",
            ),
            (
                r#"{"NeutronError": {"type": "OverQuota", "message": "full", "detail": ""}}"#,
                Some("OverQuota"),
                "full",
            ),
            (
                r#"{"message": "no", "code": "404 Not Found", "title": "Not Found"}"#,
                Some("Not Found"),
                "no",
            ),
            (
                r#"{"errors": [{"status": 409, "title": "Conflict", "detail": "busy"}]}"#,
                Some("Conflict"),
                "busy",
            ),
            ("<html><h1>404</h1>nothing</html>", Some("400"), "  404 nothing "),
            ("plain", Some("400"), "plain"),
        ];
        for (body, code, message) in table {
            let classification = classify(&response(400, None, body));
            assert_eq!(
                (classification.code.as_deref(), classification.message.as_str()),
                (code, message),
                "{body}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(status in 300_u16..600, body in ".*") {
            classify(&response(status, None, &body));
        }
    }
}
