//! The Query protocol: an action and its parameters, as a form.

use cloud_core::http::{Effect, HeaderValue, Method, Request, Url};
use cloud_core::{ApiOperation, Secret};
use std::fmt;
use url::form_urlencoded::Serializer;

/// The names of services in host names and signatures.
pub(crate) const EC2: &str = "ec2";
pub(crate) const STS: &str = "sts";

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// A request that is being built.
#[derive(Clone)]
pub(crate) struct Query {
    action: &'static str,
    pairs: Vec<(String, String)>,
    secrets: Vec<Secret<String>>,
    effect: Effect,
}

impl Query {
    fn new(action: &'static str, version: &str) -> Self {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let pairs = vec![pair("Action", action), pair("Version", version)];
        Self { action, pairs, secrets: Vec::new(), effect: Effect::Idempotent }
    }

    /// An action of EC2 that changes nothing.
    pub(crate) fn look(action: &'static str) -> Self {
        Self { effect: Effect::None, ..Self::change(action) }
    }

    /// An action of EC2 that changes something and is idempotent.
    pub(crate) fn change(action: &'static str) -> Self {
        Self::new(action, "2016-11-15")
    }

    /// An action of EC2 that changes something and is not idempotent.
    pub(crate) fn change_once(action: &'static str) -> Self {
        Self { effect: Effect::Once, ..Self::change(action) }
    }

    /// An action of STS.
    pub(crate) fn sts(action: &'static str) -> Self {
        Self { effect: Effect::None, ..Self::new(action, "2011-06-15") }
    }

    pub(crate) fn action(&self) -> &'static str {
        self.action
    }

    pub(crate) fn with(mut self, key: impl Into<String>, value: impl fmt::Display) -> Self {
        self.pairs.push((key.into(), value.to_string()));
        self
    }

    /// Adds a parameter whose value is removed from the cloud's messages.
    pub(crate) fn with_secret(mut self, key: &str, value: Secret<String>) -> Self {
        self.pairs.push((key.to_owned(), value.expose().clone()));
        self.secrets.push(value);
        self
    }

    pub(crate) fn some(self, key: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Adds a list, as `key.1`, `key.2` and so on.
    pub(crate) fn list<T: fmt::Display>(
        self,
        key: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let numbered = (1u32..).zip(values);
        numbered.fold(self, |query, (number, value)| query.with(format!("{key}.{number}"), value))
    }

    /// Adds the filter with this number.
    pub(crate) fn filter<T: fmt::Display>(
        self,
        number: usize,
        name: &str,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let query = self.with(format!("Filter.{number}.Name"), name);
        query.list(&format!("Filter.{number}.Value"), values)
    }

    /// Adds tags for a kind of resource that the action creates.
    pub(crate) fn tagged<'t>(
        self,
        number: usize,
        kind: &str,
        tags: impl IntoIterator<Item = &'t (String, String)>,
    ) -> Self {
        let prefix = format!("TagSpecification.{number}");
        let query = self.with(format!("{prefix}.ResourceType"), kind);
        (1u32..).zip(tags).fold(query, |query, (number, (key, value))| {
            let tag = format!("{prefix}.Tag.{number}");
            query.with(format!("{tag}.Key"), key).with(format!("{tag}.Value"), value)
        })
    }

    /// Builds the request.
    pub(crate) fn request(self, operation: ApiOperation, url: Url) -> Request {
        let form = Serializer::new(String::new()).extend_pairs(self.pairs).finish();
        let request = Request::new(operation, Method::POST, url).with_effect(self.effect);
        let request = request.with_body(HeaderValue::from_static(FORM), form);
        self.secrets.into_iter().fold(request, Request::with_secret)
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Among the values may be user data.
        let keys: Vec<&str> = self.pairs.iter().map(|(key, _)| key.as_str()).collect();
        f.debug_tuple("Query").field(&keys).finish()
    }
}
