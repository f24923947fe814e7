//! A request of ours beside the one that Oracle's SDK sent for the same.

use crate::captures::recorder::Asked;
use cloud_oci::PrivateKey;
use cloud_oci::sign::sha256;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is meant to be different, and nothing else.
#[derive(Clone, Copy, Default)]
pub(crate) struct Differences {
    /// Parameters of the query, and top-level fields of the body, that only we send. They have to be
    /// there: nobody else would miss them.
    pub(crate) ours: &'static [&'static str],
    /// Headers that only they send.
    pub(crate) theirs: &'static [&'static str],
}

/// Headers that belong to the client and not to the operation.
const CLIENT: [&str; 4] = ["accept-encoding", "connection", "user-agent", "opc-client-retries"];

/// Compares everything that is to be the same.
pub(crate) fn compare(
    name: &str,
    asked: &Asked,
    captured: &Value,
    but: Differences,
    key: &PrivateKey,
) {
    let mut words = captured["request_line"].as_str().expect("a line").split(' ');
    let (method, target) = (words.next().expect("a method"), words.next().expect("a target"));
    assert_eq!(asked.method, method, "{name}");
    let (path, query) = split(target);
    let (our_path, our_query) = split(&asked.target);
    assert_eq!(our_path, path, "{name}");
    let kept = |query: &BTreeMap<String, String>, left: &[&str]| -> BTreeMap<String, String> {
        let kept = query.iter().filter(|(key, _)| !left.contains(&key.as_str()));
        kept.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    assert_eq!(kept(&our_query, but.ours), kept(&query, but.theirs), "{name}");
    let theirs: BTreeMap<String, String> = captured["headers"]
        .as_array()
        .expect("headers")
        .iter()
        .map(|pair| {
            (
                pair[0].as_str().expect("a name").to_lowercase(),
                pair[1].as_str().expect("a value").to_owned(),
            )
        })
        .collect();
    headers(name, &asked.headers, &theirs, but);
    signature(name, asked, &theirs, key);
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or(Value::Null);
    let body = numbers(body);
    for ours in but.ours {
        let sent = our_query.contains_key(*ours) || asked.headers.contains_key(*ours);
        assert!(sent || body.get(*ours).is_some(), "{name}: {ours} is not sent");
    }
    let body = without(body, but.ours);
    assert_eq!(body, without(numbers(captured["body"].clone()), but.theirs), "{name}");
}

fn headers(
    name: &str,
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
    but: Differences,
) {
    let names = |headers: &BTreeMap<String, String>, left: &[&str]| -> BTreeSet<String> {
        let left = |name: &str| CLIENT.contains(&name) || left.contains(&name);
        headers.keys().filter(|name| !left(name)).cloned().collect()
    };
    // A request that changes something has a token of ours where their client was not told to retry.
    let mut but_ours = but.ours.to_vec();
    if !theirs.contains_key("opc-retry-token") {
        but_ours.push("opc-retry-token");
    }
    assert_eq!(names(ours, &but_ours), names(theirs, but.theirs), "{name}");
    // Not the JSON stream, which we do not read.
    let accept = theirs["accept"].split(',').next().expect("a type");
    assert_eq!(ours["accept"], accept, "{name}");
    assert_eq!(ours["content-type"], theirs["content-type"], "{name}");
    let id = &ours["opc-request-id"];
    let is_id = |id: &str| {
        id.len() == 32 && id.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
    };
    assert!(is_id(id) && is_id(&theirs["opc-request-id"]), "{name}: {id}");
    if let Some(token) = ours.get("opc-retry-token") {
        assert!(token.len() <= 64, "{name}");
    }
}

/// The same headers are signed in the same order with the same key, and the signature is right.
fn signature(name: &str, asked: &Asked, theirs: &BTreeMap<String, String>, key: &PrivateKey) {
    let (before, after) =
        asked.headers["authorization"].split_once("signature=\"").expect("signed");
    let (their_before, _) = theirs["authorization"].split_once("signature=\"").expect("signed");
    assert_eq!(before, their_before, "{name}");
    let (signature, end) = after.split_once('"').expect("an end");
    assert_eq!(end, ",version=\"1\"", "{name}");
    let names = before.split("headers=\"").nth(1).and_then(|rest| rest.split('"').next());
    let line = |name: &str| match name {
        "(request-target)" => {
            format!("{name}: {} {}", asked.method.to_lowercase(), asked.target)
        }
        _ => format!("{name}: {}", asked.headers[name]),
    };
    let text: Vec<String> = names.expect("names").split(' ').map(line).collect();
    assert_eq!(key.sign(text.join("\n").as_bytes()).expect("it signs"), signature, "{name}");
    if let Some(hash) = asked.headers.get("x-content-sha256") {
        assert_eq!(*hash, sha256(&asked.body), "{name}");
    }
    if let Some(length) = asked.headers.get("content-length") {
        assert_eq!(*length, asked.body.len().to_string(), "{name}");
    }
}

fn split(target: &str) -> (String, BTreeMap<String, String>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    (path.to_owned(), pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// Their client sends 4.0 or 4, as it was told; JSON knows no difference.
fn numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(values) => values.into_iter().map(numbers).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, numbers(value))).collect()
        }
        other => other,
    }
}

fn without(mut value: Value, left: &[&str]) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|key, _| !left.contains(&key.as_str()));
    }
    value
}
