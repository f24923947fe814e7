//! Request signatures: draft-cavage HTTP signatures with RSA-SHA256, as strictly as OCI has them.

use crate::key::PublicKey;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::{HeaderMap, Method};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// How far a request's date may be off.
pub(crate) const ALLOWED_SKEW: Duration = Duration::from_mins(5);

/// The parts of a request that a signature can cover.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    pub(crate) method: &'a Method,
    /// Path and query, as on the wire.
    pub(crate) target: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

/// The `Authorization` header, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Authorization<'a> {
    pub(crate) key_id: &'a str,
    headers: Vec<&'a str>,
    signature: Vec<u8>,
}

/// Which headers a signature has to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// Date, target, host, and for requests with a body its length, type and digest.
    Everything,
    /// All but the host: what SDKs do when they exchange a certificate for a token.
    AllButHost,
}

/// Checks everything about a signature but whose it is, which the caller looks up in between.
pub(crate) fn authorization<'a>(
    request: &Signed<'a>,
    cover: Cover,
    now: SystemTime,
) -> Result<Authorization<'a>, String> {
    let parsed = of_any_date(request, cover)?;
    check_date(request.headers, now)?;
    Ok(parsed)
}

fn of_any_date<'a>(request: &Signed<'a>, cover: Cover) -> Result<Authorization<'a>, String> {
    let header = text(request.headers, "authorization").ok_or("no Authorization header")?;
    let parsed = parse(header)?;
    for name in required(request.method, cover) {
        if !parsed.headers.iter().any(|signed| signed.eq_ignore_ascii_case(name)) {
            return Err(format!("the signature does not cover {name}"));
        }
    }
    check_body(request)?;
    Ok(parsed)
}

/// True if the signature is this key's.
pub(crate) fn matches(request: &Signed<'_>, parsed: &Authorization<'_>, key: &PublicKey) -> bool {
    let Some(message) = signing_string(request, &parsed.headers) else {
        return false;
    };
    key.verifies(message.as_bytes(), &parsed.signature)
}

fn required(method: &Method, cover: Cover) -> Vec<&'static str> {
    let mut names = vec!["date", "(request-target)"];
    if cover == Cover::Everything {
        names.push("host");
    }
    if has_body(method) {
        names.extend(["content-length", "content-type", "x-content-sha256"]);
    }
    names
}

fn has_body(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

fn check_date(headers: &HeaderMap, now: SystemTime) -> Result<(), String> {
    let date = text(headers, "date").ok_or("no date header")?;
    let sent = httpdate::parse_http_date(date).map_err(|_| format!("bad date {date}"))?;
    let off = sent.duration_since(now).unwrap_or_else(|behind| behind.duration());
    if off > ALLOWED_SKEW {
        let ours = httpdate::fmt_http_date(now);
        return Err(format!("date {date} is not within five minutes of ours, {ours}"));
    }
    Ok(())
}

fn check_body(request: &Signed<'_>) -> Result<(), String> {
    if !has_body(request.method) {
        return Ok(());
    }
    let sent = text(request.headers, "x-content-sha256").ok_or("no x-content-sha256 header")?;
    if sent == STANDARD.encode(digest(&SHA256, request.body)) {
        return Ok(());
    }
    Err("x-content-sha256 is not the digest of the body".to_owned())
}

/// The text that was signed; `None` if a header that it names is missing.
fn signing_string(request: &Signed<'_>, names: &[&str]) -> Option<String> {
    let mut message = String::with_capacity(256);
    for name in names {
        if !message.is_empty() {
            message.push('\n');
        }
        let name = name.to_ascii_lowercase();
        if name == "(request-target)" {
            let method = request.method.as_str().to_ascii_lowercase();
            write!(message, "{name}: {method} {}", request.target).ok()?;
        } else {
            write!(message, "{name}: {}", text(request.headers, &name)?).ok()?;
        }
    }
    Some(message)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Reads `Signature key="value",…`.
fn parse(header: &str) -> Result<Authorization<'_>, String> {
    let rest = header.strip_prefix("Signature ").ok_or("not a Signature")?;
    let mut known: [(&str, Option<&str>); 5] =
        ["keyId", "headers", "signature", "version", "algorithm"].map(|name| (name, None));
    for pair in rest.split(',') {
        let (name, value) = pair.trim().split_once('=').ok_or("a parameter without a value")?;
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let value = value.ok_or_else(|| format!("{name} is not quoted"))?;
        let place = known.iter_mut().find(|(known, _)| *known == name);
        let (_, place) = place.ok_or_else(|| format!("unknown parameter {name}"))?;
        if place.replace(value).is_some() {
            return Err(format!("{name} is given twice"));
        }
    }
    let [key_id, headers, signature, version, algorithm] = known.map(|(_, value)| value);
    if version != Some("1") {
        return Err("version is not \"1\"".to_owned());
    }
    if algorithm != Some("rsa-sha256") {
        return Err("algorithm is not rsa-sha256".to_owned());
    }
    let signature = signature.ok_or("no signature")?;
    Ok(Authorization {
        key_id: key_id.ok_or("no keyId")?,
        headers: headers.ok_or("no headers")?.split(' ').filter(|name| !name.is_empty()).collect(),
        signature: STANDARD.decode(signature).map_err(|_| "signature is not base64")?,
    })
}

#[cfg(test)]
mod tests;
