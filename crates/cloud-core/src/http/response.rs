//! What a cloud answers, and what that means.

use super::{Effect, HeaderMap, Request, StatusCode, gzip};
use crate::{Error, ErrorKind, Result};
use ::http::header::{DATE, HeaderName, RETRY_AFTER};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Longer pauses are cut to this: a moment too far away is none that a clock has.
const LONGEST_PAUSE: Duration = Duration::from_hours(24);

/// An answer with its whole body.
#[derive(Clone)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, no longer than the client's bound; compressed if its headers say so, which [`json`](Self::json) undoes as it
    /// reads.
    pub body: Bytes,
    /// The cloud's request id, or ours if it sent none.
    pub request_id: Option<String>,
}

impl Response {
    /// Reads the body as JSON.
    ///
    /// The error tells where in the body it went wrong and nothing of what is there: it may be
    /// a token. After a request that changes something it is
    /// [`Ambiguous`](ErrorKind::Ambiguous): done, but who knows what.
    pub fn json<T: DeserializeOwned>(&self, request: &Request) -> Result<T> {
        let parsed = if gzip::is_compressed(&self.headers) {
            serde_json::from_reader(gzip::reader(&self.body))
        } else {
            serde_json::from_slice(&self.body)
        };
        parsed.map_err(|cause| {
            let (line, column) = (cause.line(), cause.column());
            let what = match cause.classify() {
                serde_json::error::Category::Data => "unexpected JSON",
                serde_json::error::Category::Io
                | serde_json::error::Category::Syntax
                | serde_json::error::Category::Eof => "not JSON",
            };
            let message = format!("{what}, at line {line} column {column} of the body");
            let kind = match request.effect() {
                Effect::None => ErrorKind::Protocol,
                Effect::Idempotent | Effect::Once => ErrorKind::Ambiguous,
            };
            self.with_id(request.error(kind).because(message))
        })
    }

    /// A header's value, if it is there and is text.
    #[must_use]
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// How long the cloud asks us to wait, a day at most: seconds, or a date, which counts from the
    /// answer's own date and so does not depend on our clock.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let value = self.header(&RETRY_AFTER)?.trim();
        if let Ok(seconds) = value.parse() {
            return Some(Duration::from_secs(seconds).min(LONGEST_PAUSE));
        }
        let then = httpdate::parse_http_date(value).ok()?;
        let pause = then.duration_since(self.date()?).unwrap_or_default();
        Some(pause.min(LONGEST_PAUSE))
    }

    /// What the cloud's clock said when it answered.
    #[must_use]
    pub fn date(&self) -> Option<SystemTime> {
        httpdate::parse_http_date(self.header(&DATE)?).ok()
    }

    /// Adds the request id to an error.
    pub(super) fn with_id(&self, error: Error) -> Error {
        match &self.request_id {
            Some(id) => error.with_request_id(id),
            None => error,
        }
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}

/// What an answer that is not a success means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classification {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The cloud's code.
    pub code: Option<String>,
    /// The cloud's words.
    pub message: String,
    /// Refused for now: nothing was done, and the same request may be taken soon. So is a 429,
    /// and OCI's 409 `IncorrectState`.
    pub retryable: bool,
}

/// Classifies a response that is not a success. Each cloud has one classifier, which is one table.
///
/// [`ErrorKind::Unavailable`] stands for "not well, and may have carried it out or not": whether
/// the request is repeated, and whether the error becomes [`ErrorKind::Ambiguous`], is the
/// client's business. Every other kind says that nothing was done.
pub type Classify = fn(&Response) -> Classification;

/// What HTTP itself says about a status; the base of every cloud's own table.
#[must_use]
pub fn by_status(response: &Response) -> Classification {
    let kind = match response.status.as_u16() {
        400 | 405 | 406 | 411 | 413 | 414 | 415 | 422 | 431 => ErrorKind::Invalid,
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::Forbidden,
        404 | 410 => ErrorKind::NotFound,
        409 | 412 | 423 | 428 => ErrorKind::Conflict,
        429 => ErrorKind::Throttled,
        501 | 505 => ErrorKind::Unsupported,
        408 | 500..=599 => ErrorKind::Unavailable,
        _ => ErrorKind::Protocol,
    };
    Classification {
        kind,
        code: Some(response.status.as_u16().to_string()),
        message: String::from_utf8_lossy(&response.body).into_owned(),
        retryable: kind == ErrorKind::Throttled,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Method, Url};
    use super::*;
    use crate::ApiOperation;
    use ::http::header::HeaderValue;

    fn response(
        status: u16,
        headers: &[(HeaderName, &'static str)],
        body: &'static str,
    ) -> Response {
        let pairs = headers.iter().cloned();
        Response {
            status: StatusCode::from_u16(status).unwrap(),
            headers: pairs.map(|(name, value)| (name, HeaderValue::from_static(value))).collect(),
            body: Bytes::from_static(body.as_bytes()),
            request_id: Some("r1".to_owned()),
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let noon = (DATE, "Mon, 02 Nov 2026 12:00:00 GMT");
        let table = [
            (vec![], None),
            (vec![(RETRY_AFTER, "17")], Some(17)),
            (vec![(RETRY_AFTER, " 0 ")], Some(0)),
            (vec![(RETRY_AFTER, "-1")], None),
            (vec![(RETRY_AFTER, "soon")], None),
            // A moment so far away is none that a clock has.
            (vec![(RETRY_AFTER, "18446744073709551615")], Some(86_400)),
            (vec![(RETRY_AFTER, "Fri, 31 Dec 9999 23:59:59 GMT"), noon.clone()], Some(86_400)),
            (vec![(RETRY_AFTER, "Mon, 02 Nov 2026 12:01:00 GMT")], None),
            (vec![(RETRY_AFTER, "Mon, 02 Nov 2026 12:01:00 GMT"), noon.clone()], Some(60)),
            (vec![(RETRY_AFTER, "Mon, 02 Nov 2026 11:59:00 GMT"), noon], Some(0)),
        ];
        for (headers, expected) in table {
            let pause = response(429, &headers, "").retry_after();
            assert_eq!(pause, expected.map(Duration::from_secs), "{headers:?}");
        }
    }

    #[test]
    fn json_errors_say_where_and_not_what() {
        let url = Url::parse("http://cloud/").unwrap();
        let request = Request::new(ApiOperation::Get, Method::GET, url).on("i1");
        let result: Result<u32> = response(200, &[], "\"hunter2\"").json(&request);
        let error = result.unwrap_err();
        assert_eq!(
            error.to_string(),
            "get i1: unexpected response: unexpected JSON, \
             at line 1 column 9 of the body (request r1)"
        );
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn nonsense_after_a_change_is_ambiguous() {
        let url = Url::parse("http://cloud/").unwrap();
        for (method, kind) in
            [(Method::GET, ErrorKind::Protocol), (Method::POST, ErrorKind::Ambiguous)]
        {
            let request = Request::new(ApiOperation::Launch, method, url.clone());
            let result: Result<u32> = response(200, &[], "<html>").json(&request);
            assert_eq!(result.unwrap_err().kind(), kind);
        }
    }

    #[test]
    fn statuses_have_kinds() {
        let table = [
            (302, ErrorKind::Protocol),
            (400, ErrorKind::Invalid),
            (401, ErrorKind::Unauthenticated),
            (403, ErrorKind::Forbidden),
            (404, ErrorKind::NotFound),
            (409, ErrorKind::Conflict),
            (412, ErrorKind::Conflict),
            (418, ErrorKind::Protocol),
            (429, ErrorKind::Throttled),
            (500, ErrorKind::Unavailable),
            (501, ErrorKind::Unsupported),
            (504, ErrorKind::Unavailable),
        ];
        for (status, kind) in table {
            assert_eq!(by_status(&response(status, &[], "")).kind, kind, "{status}");
        }
    }
}
