//! AWS Signature Version 4: a pure function of a request, a key and a time.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use std::fmt::Write as _;
use std::time::SystemTime;

/// The signed parts of a request.
///
/// ```
/// use cloud_aws::sign::{Scope, Signed, sha256};
/// use std::time::{Duration, SystemTime};
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160);
/// let scope = Scope::new(now, "us-east-1", "service");
/// let headers = [("host", "example.amazonaws.com"), ("x-amz-date", scope.time())];
/// let request = Signed {
///     method: "GET",
///     path: "/",
///     query: "",
///     headers: &headers,
///     body_sha256: &sha256(b""),
/// };
/// assert_eq!(
///     request.signature(&scope, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
///     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The method.
    pub method: &'a str,
    /// The path as it is sent. It is encoded once more, as every service except S3 requires.
    pub path: &'a str,
    /// The query as it is sent.
    pub query: &'a str,
    /// The headers that are signed, in any order.
    pub headers: &'a [(&'a str, &'a str)],
    /// The hash of the body, in hexadecimal digits.
    pub body_sha256: &'a str,
}

/// Time, region and service for which a signature is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    time: String,
    region: String,
    service: String,
}

impl Scope {
    /// Creates a scope for this time.
    #[must_use]
    pub fn new(now: SystemTime, region: &str, service: &str) -> Self {
        // A clock outside of jiff's ten thousand years gives a request that the cloud refuses.
        let now = jiff::Timestamp::try_from(now).unwrap_or_default();
        let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        Self { time, region: region.to_owned(), service: service.to_owned() }
    }

    /// The value of the header `x-amz-date`.
    #[must_use]
    pub fn time(&self) -> &str {
        &self.time
    }

    fn date(&self) -> &str {
        self.time.split('T').next().unwrap_or_default()
    }

    fn credential(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.date(), self.region, self.service)
    }
}

impl Signed<'_> {
    /// The canonical form of the request.
    #[must_use]
    pub fn canonical(&self) -> String {
        let headers = self.canonical_headers();
        let line = |(name, value): &(String, String)| format!("{name}:{value}\n");
        let lines: Vec<String> = headers.iter().map(line).collect();
        let lines = lines.concat();
        let Self { method, body_sha256, .. } = self;
        let (path, query) = (encode(&normal(self.path), true), canonical_query(self.query));
        format!("{method}\n{path}\n{query}\n{lines}\n{}\n{body_sha256}", names(&headers))
    }

    /// The text that the key signs.
    #[must_use]
    pub fn string_to_sign(&self, scope: &Scope) -> String {
        let hash = sha256(self.canonical().as_bytes());
        format!("AWS4-HMAC-SHA256\n{}\n{}\n{hash}", scope.time, scope.credential())
    }

    /// The signature, in hexadecimal digits.
    #[must_use]
    pub fn signature(&self, scope: &Scope, secret_key: &str) -> String {
        let parts = [scope.date(), &scope.region, &scope.service, "aws4_request"];
        let key = parts.iter().fold(format!("AWS4{secret_key}").into_bytes(), |key, part| {
            hmac(&key, part.as_bytes())
        });
        hex(&hmac(&key, self.string_to_sign(scope).as_bytes()))
    }

    /// The value of the header `authorization`.
    #[must_use]
    pub fn authorization(&self, scope: &Scope, key_id: &str, signature: &str) -> String {
        let names = names(&self.canonical_headers());
        format!(
            "AWS4-HMAC-SHA256 Credential={key_id}/{}, SignedHeaders={names}, Signature={signature}",
            scope.credential()
        )
    }

    /// Names in lower case and in order, each once; values with single spaces.
    fn canonical_headers(&self) -> Vec<(String, String)> {
        let words = |value: &str| value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let pair = |(name, value): &(&str, &str)| (name.to_ascii_lowercase(), words(value));
        let mut headers: Vec<(String, String)> = self.headers.iter().map(pair).collect();
        headers.sort_by(|one, other| one.0.cmp(&other.0));
        headers.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = format!("{},{}", kept.1, next.1);
            }
            same
        });
        headers
    }
}

fn names(headers: &[(String, String)]) -> String {
    headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";")
}

/// The path without empty and relative parts.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let ends_in_slash = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    let end = if ends_in_slash && !parts.is_empty() { "/" } else { "" };
    format!("/{}{end}", parts.join("/"))
}

/// The pairs of a query in order, each with its `=`, encoded anew.
fn canonical_query(query: &str) -> String {
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let mut pairs: Vec<(String, String)> =
        pairs.map(|(key, value)| (encode(&key, false), encode(&value, false))).collect();
    pairs.sort();
    let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join("&")
}

/// Encodes reserved characters as `%XX`.
fn encode(text: &str, keep_slashes: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain || (keep_slashes && byte == b'/') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// A hash in hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
