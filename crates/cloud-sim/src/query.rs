//! What a request asks for: the target taken apart, and the call that an operation sees.

use crate::answer::Refusal;
use crate::fault::Later;
use crate::instance::Failure;
use hyper::{HeaderMap, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// The parameters of a query string, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    /// The operation, by which the pages of one list are told from those of another.
    operation: &'static str,
}

impl Query {
    /// Reads `a=b&c=d`; `+` is a space, as the SDKs send it.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self { pairs: pairs.collect(), operation: "" }
    }

    /// Names the operation whose query this is.
    pub(crate) fn of(self, operation: &'static str) -> Self {
        Self { operation, ..self }
    }

    /// What the pages of one list have in common: whose they are, and their order.
    pub(crate) fn list(&self) -> String {
        let part = |name| self.get(name).unwrap_or("-");
        format!("{} {} {}", self.operation, part("sortBy"), part("sortOrder"))
    }

    /// All parameters, in their order.
    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// A parameter that is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn require(&self, name: &str) -> Result<&str, Refusal> {
        self.get(name).ok_or_else(|| Refusal::missing(name))
    }

    /// True if there is no such parameter, or it equals the value.
    pub(crate) fn allows(&self, name: &str, value: &str) -> bool {
        self.get(name).is_none_or(|wanted| wanted == value)
    }
}

/// A text with `+` and `%xx` decoded.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// A request, as an operation sees it.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// What stood in place of the placeholders of the path.
    pub(crate) path: Vec<String>,
    pub(crate) query: Query,
    /// Path and query as on the wire.
    pub(crate) target: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    /// The body as JSON, read before anybody has to wait for it.
    pub(crate) object: Result<Map<String, Value>, Refusal>,
    /// Who calls: the id of a user or of an instance.
    pub(crate) caller: &'a str,
    /// Whether the work shall fail after it was accepted; `None` where it cannot.
    pub(crate) later: Option<Later<'a>>,
}

impl Call<'_> {
    /// The n-th placeholder of the path.
    pub(crate) fn segment(&self, index: usize) -> &str {
        self.path.get(index).map_or("", String::as_str)
    }

    /// Refuses a change of what is no longer as the caller's `if-match` says.
    pub(crate) fn check_match(&self, etag: &str) -> Result<(), Refusal> {
        match self.header("if-match") {
            Some(wanted) if wanted != etag && wanted != "*" => Err(Refusal::new(
                StatusCode::PRECONDITION_FAILED,
                "NoEtagMatch",
                "The if-match header etag does not match the current etag",
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Why the work that now begins shall fail, if a rule says so.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.later.and_then(|later| later.take())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as a JSON object.
    pub(crate) fn object(&self) -> Result<&Map<String, Value>, Refusal> {
        self.object.as_ref().map_err(Clone::clone)
    }
}

/// A body as a JSON object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::unparsable(format!("the body is not as it should be: {error}")))
}

/// Reading fields of JSON objects that callers sent.
pub(crate) trait Fields {
    /// A text; absent and null are the same.
    fn text(&self, name: &str) -> Result<Option<String>, Refusal>;
    /// A text that has to be there.
    fn required(&self, name: &str) -> Result<String, Refusal> {
        self.text(name)?.ok_or_else(|| Refusal::missing(name))
    }
    /// An object; absent and null are the same.
    fn object(&self, name: &str) -> Result<Option<&Map<String, Value>>, Refusal>;
    /// A number.
    fn number(&self, name: &str) -> Result<Option<f64>, Refusal>;
    /// Yes or no.
    fn flag(&self, name: &str) -> Result<Option<bool>, Refusal>;
    /// `freeformTags`, whose values are texts.
    fn freeform_tags(&self) -> Result<Option<&Map<String, Value>>, Refusal> {
        let tags = self.object("freeformTags")?;
        match tags {
            Some(tags) if !tags.values().all(Value::is_string) => {
                Err(Refusal::unparsable("freeformTags has a value that is not a string"))
            }
            tags => Ok(tags),
        }
    }
    /// `definedTags`, whose values are the tags of a namespace.
    fn defined_tags(&self) -> Result<Option<&Map<String, Value>>, Refusal> {
        let tags = self.object("definedTags")?;
        match tags {
            Some(tags) if !tags.values().all(Value::is_object) => {
                Err(Refusal::unparsable("definedTags has a namespace that is not an object"))
            }
            tags => Ok(tags),
        }
    }
}

impl Fields for Map<String, Value> {
    fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Refusal::unparsable(format!("{name} is not a string"))),
        }
    }

    fn object(&self, name: &str) -> Result<Option<&Map<String, Value>>, Refusal> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => Err(Refusal::unparsable(format!("{name} is not an object"))),
        }
    }

    fn number(&self, name: &str) -> Result<Option<f64>, Refusal> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(number.as_f64()),
            Some(_) => Err(Refusal::unparsable(format!("{name} is not a number"))),
        }
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(Refusal::unparsable(format!("{name} is not true or false"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn queries_decode_as_the_sdk_encodes() {
        let query =
            Query::parse("availabilityDomain=Uocm%3APHX-AD-1&os=Oracle+Linux&page=Mg%3D%3D&x=");
        assert_eq!(query.get("availabilityDomain"), Some("Uocm:PHX-AD-1"));
        assert_eq!(query.get("os"), Some("Oracle Linux"));
        assert_eq!(query.get("page"), Some("Mg=="));
        assert_eq!(query.get("x"), None);
    }

    proptest! {
        #[test]
        fn any_query_is_read(text in ".{0,80}") {
            let _ = Query::parse(&text);
        }
    }
}
