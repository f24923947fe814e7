//! Responses and their classification.

use super::{Effect, HeaderMap, Request, StatusCode, gzip};
use crate::{Error, ErrorKind, Result};
use ::http::header::{DATE, HeaderName, RETRY_AFTER};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Maximum pause. A longer one could overflow the clock.
const LONGEST_PAUSE: Duration = Duration::from_hours(24);

/// A response with its whole body.
#[derive(Clone)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, no longer than the client's bound; compressed if its headers say so, which [`json`](Self::json) undoes as it
    /// reads.
    pub body: Bytes,
    /// The cloud's request id, or the client's if it sent none.
    pub request_id: Option<String>,
}

impl Response {
    /// Reads the body as JSON.
    ///
    /// The error has the position in the body but nothing of its content, which may be a token. After a request that
    /// changes something it is [`Ambiguous`](ErrorKind::Ambiguous).
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

    /// The value of a header, if it is text.
    #[must_use]
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The time to wait, at most a day: `Retry-After` in seconds, or as a date relative to the date of the response, so
    /// that it does not depend on the local clock.
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

    /// The time of the cloud's clock.
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

/// The classification of a failed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classification {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The cloud's code.
    pub code: Option<String>,
    /// The cloud's message.
    pub message: String,
    /// True if the request had no effect and may be accepted soon, as for 429 and OCI's 409 `IncorrectState`.
    pub retryable: bool,
    /// The part of the message that the cloud has encoded, and decodes on request.
    pub encoded: Option<String>,
}

/// Classifies a failed response. Each cloud has one classifier, which is one table.
///
/// [`ErrorKind::Unavailable`] means that the request may have been carried out: the client decides whether to repeat it,
/// and whether the error becomes [`ErrorKind::Ambiguous`]. Every other kind means that nothing was done.
pub type Classify = fn(&Response) -> Classification;

/// Classifies by status alone. It is the base of every cloud's own table.
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
        encoded: None,
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
            // Larger than a clock can represent.
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
