//! OCI's signature of a request: draft-cavage-http-signatures-08 with RSA and SHA-256.

use crate::key::{KeyError, PrivateKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The signed parts of a request.
///
/// ```
/// use cloud_oci::sign::Signed;
///
/// let request = Signed {
///     method: "GET",
///     target: "/20160918/instances?limit=2",
///     host: Some("iaas.us-phoenix-1.oraclecloud.com"),
///     date: "Thu, 05 Jan 2014 21:31:40 GMT",
///     body: None,
/// };
/// assert_eq!(
///     request.text(),
///     "date: Thu, 05 Jan 2014 21:31:40 GMT\n\
///      (request-target): get /20160918/instances?limit=2\n\
///      host: iaas.us-phoenix-1.oraclecloud.com"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query, exactly as they are sent.
    pub target: &'a str,
    /// The `Host`, with a port unless it is the default of the scheme. Omitted when exchanging a certificate for a token.
    pub host: Option<&'a str>,
    /// The `Date`.
    pub date: &'a str,
    /// The body, for methods that have one.
    pub body: Option<SignedBody<'a>>,
}

/// The signed parts of a body.
#[derive(Clone, Copy, Debug)]
pub struct SignedBody<'a> {
    /// Its length.
    pub length: usize,
    /// The `Content-Type`.
    pub content_type: &'a str,
    /// The `x-content-sha256`.
    pub sha256: &'a str,
}

impl Signed<'_> {
    /// The text that is signed.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<String> =
            self.lines().into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        lines.join("\n")
    }

    /// The value of the header `Authorization`.
    pub fn authorization(&self, key: &PrivateKey, key_id: &str) -> Result<String, KeyError> {
        let signature = key.sign(self.text().as_bytes())?;
        Ok(self.signed_as(key_id, &signature))
    }

    /// The value of the header `Authorization` with this signature.
    pub(crate) fn signed_as(&self, key_id: &str, signature: &str) -> String {
        let names: Vec<&str> = self.lines().into_iter().map(|(name, _)| name).collect();
        let names = names.join(" ");
        format!(
            "Signature algorithm=\"rsa-sha256\",headers=\"{names}\",keyId=\"{key_id}\",\
             signature=\"{signature}\",version=\"1\""
        )
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let target = format!("{} {}", self.method.to_ascii_lowercase(), self.target);
        let mut lines = vec![("date", self.date.to_owned()), ("(request-target)", target)];
        lines.extend(self.host.map(|host| ("host", host.to_owned())));
        if let Some(body) = self.body {
            lines.push(("content-length", body.length.to_string()));
            lines.push(("content-type", body.content_type.to_owned()));
            lines.push(("x-content-sha256", body.sha256.to_owned()));
        }
        lines
    }
}

/// The hash of a body, for the header `x-content-sha256`.
#[must_use]
pub fn sha256(body: &[u8]) -> String {
    STANDARD.encode(digest(&SHA256, body))
}
