//! Answers, and errors in EC2's form.

use crate::world::hex_id;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use std::collections::BTreeMap;

/// An answer before it becomes HTTP.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    /// A body of a type.
    pub(super) fn new(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        Self { status, headers, body: body.into() }
    }

    /// An error as EC2 says it.
    pub(super) fn error(status: StatusCode, code: &str, message: &str) -> Self {
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{}</Code><Message>{}</Message>\
             </Error></Errors><RequestID>{}</RequestID></Response>",
            escape(code),
            escape(message),
            hex_id()
        );
        Self::new(status, "text/xml;charset=UTF-8", body)
    }

    /// What a rule answers with: an error, or with an empty code the message alone.
    pub(super) fn of_rule(
        status: u16,
        code: &str,
        message: &str,
        headers: &BTreeMap<String, String>,
    ) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = match code {
            "" => Self::new(status, "text/plain", message.to_owned()),
            code => Self::error(status, code, message),
        };
        for (name, value) in headers {
            let name = HeaderName::try_from(name);
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                answer.headers.insert(name, value);
            }
        }
        answer
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
