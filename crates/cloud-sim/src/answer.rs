//! Answers, and errors in OCI's form.

use bytes::Bytes;
use hyper::StatusCode;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

/// An answer before it becomes HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Headers that a fault rule gives.
    pub(crate) more: BTreeMap<String, String>,
    pub(crate) body: Bytes,
    pub(crate) content_type: &'static str,
    /// The instance that a change of it is answered with.
    pub(crate) instance: Option<String>,
}

impl Answer {
    /// 200 with a JSON body.
    pub(crate) fn json(body: &impl Serialize) -> Self {
        Self::with_status(StatusCode::OK, body)
    }

    /// Any status with a JSON body.
    pub(crate) fn with_status(status: StatusCode, body: &impl Serialize) -> Self {
        // What we serialise has string keys only, so this does not fail.
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { status, content_type: "application/json", ..Self::text(body) }
    }

    /// 200 with something that is JSON already.
    pub(crate) fn of_json(body: Bytes) -> Self {
        Self { content_type: "application/json", ..Self::text(body) }
    }

    /// 200 with a list of things that are JSON already.
    pub(crate) fn rows(rows: &[Bytes]) -> Self {
        let length: usize = rows.iter().map(|row| row.len() + 1).sum();
        let mut body = Vec::with_capacity(length + 2);
        body.push(b'[');
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(row);
        }
        body.push(b']');
        Self::of_json(body.into())
    }

    /// 200 with plain text.
    pub(crate) fn text(body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            headers: Vec::new(),
            more: BTreeMap::new(),
            body: body.into(),
            content_type: "text/plain",
            instance: None,
        }
    }

    /// 204.
    pub(crate) fn empty() -> Self {
        Self { status: StatusCode::NO_CONTENT, ..Self::text(Bytes::new()) }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A refusal: status, OCI's code, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) message: String,
}

/// What an operation gives.
pub(crate) type Outcome = Result<Answer, Refusal>;

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, code: code.to_owned(), message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "InvalidParameter", message)
    }

    pub(crate) fn missing(what: &str) -> Self {
        let message = format!("{what} is required");
        Self::new(StatusCode::BAD_REQUEST, "MissingParameter", message)
    }

    pub(crate) fn unparsable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "CannotParseRequest", message)
    }

    /// Something that the request names is not there, or not for this caller.
    pub(crate) fn related(what: &str, id: &str) -> Self {
        let code = "RelatedResourceNotAuthorizedOrNotFound";
        let message = format!("{what} {id}: authorization failed or related resource not found");
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn not_found(what: &str, id: &str) -> Self {
        let message = format!("{what} {id} not found");
        Self::new(StatusCode::NOT_FOUND, "NotAuthorizedOrNotFound", message)
    }

    /// Not 404, which says of a thing that it is gone.
    pub(crate) fn not_simulated(what: &str) -> Self {
        let message = format!("{what} is not simulated");
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    pub(crate) fn incorrect_state(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "IncorrectState", message)
    }

    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "NotAuthenticated", message)
    }

    pub(crate) fn out_of_capacity() -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, "InternalError", "Out of host capacity.")
    }

    pub(crate) fn answer(&self) -> Answer {
        let body = json!({"code": self.code, "message": self.message});
        Answer::with_status(self.status, &body)
    }
}
