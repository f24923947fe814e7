//! Proxies.

use crate::{ApiOperation, Error, ErrorKind, Result, Secret};
use reqwest::{NoProxy, Proxy};

/// Proxies, as an operator sets them in the environment.
///
/// The environment is read by the programs, never here.
///
/// ```
/// use cloud_core::http::Proxies;
///
/// let environment = |name: &str| match name {
///     "https_proxy" => Some("http://user:pass@proxy:3128".to_owned()),
///     "NO_PROXY" => Some("169.254.169.254,.internal".to_owned()),
///     _ => None,
/// };
/// let proxies = Proxies::from_variables(environment);
/// assert!(!format!("{proxies:?}").contains("pass"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http` URLs. Secret, because it may hold a password.
    pub http: Option<Secret<String>>,
    /// For `https` URLs.
    pub https: Option<Secret<String>>,
    /// Hosts, domains and networks without a proxy, separated by commas; `*` is all.
    pub no_proxy: Option<String>,
}

impl Proxies {
    /// No proxies.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in lower case or else in upper case. An empty value
    /// counts as unset.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| {
            let value = variable(name).or_else(|| variable(&name.to_ascii_uppercase()));
            value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let all = read("all_proxy");
        Self {
            http: read("http_proxy").or_else(|| all.clone()).map(Secret::new),
            https: read("https_proxy").or(all).map(Secret::new),
            no_proxy: read("no_proxy"),
        }
    }

    /// Converts the proxies to reqwest's type.
    pub(super) fn build(&self) -> Result<Vec<Proxy>> {
        let http = self.http.as_ref().map(|url| Proxy::http(url.expose()));
        let https = self.https.as_ref().map(|url| Proxy::https(url.expose()));
        let except = self.no_proxy.as_deref().and_then(NoProxy::from_string);
        let proxies = http.into_iter().chain(https);
        let proxies = proxies.map(|proxy| proxy.map(|proxy| proxy.no_proxy(except.clone())));
        // The cause would show the URL, which may have a password.
        proxies.collect::<Result<_, _>>().map_err(|_cause| {
            Error::new(ErrorKind::Invalid, ApiOperation::Configure).because("bad proxy URL")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> (Option<String>, Option<String>, Option<String>) {
        let proxies = Proxies::from_variables(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        });
        let plain = |secret: Option<Secret<String>>| secret.map(|url| url.expose().clone());
        (plain(proxies.http), plain(proxies.https), proxies.no_proxy)
    }

    #[test]
    fn variables_are_read_as_operators_expect() {
        let some = |text: &str| Some(text.to_owned());
        let table: [(&[(&str, &str)], _); 6] = [
            (&[], (None, None, None)),
            (&[("http_proxy", "http://a")], (some("http://a"), None, None)),
            (&[("HTTPS_PROXY", "http://b")], (None, some("http://b"), None)),
            (
                &[("https_proxy", "http://a"), ("HTTPS_PROXY", "http://b")],
                (None, some("http://a"), None),
            ),
            (
                &[("ALL_PROXY", "http://c"), ("http_proxy", " ")],
                (some("http://c"), some("http://c"), None),
            ),
            (&[("no_proxy", "*"), ("NO_PROXY", "x")], (None, None, some("*"))),
        ];
        for (variables, expected) in table {
            assert_eq!(from(variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn a_bad_proxy_url_is_an_error_without_its_password() {
        let url = Secret::new("http://user:hunter2@[bad".to_owned());
        let error = Proxies { https: Some(url), ..Proxies::none() }.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!format!("{error:?} {error}").contains("hunter2"));
    }
}
