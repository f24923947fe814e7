//! The proxy's other side as HTTP: `/admin/faults`, `requests`, `counts`, `throttle`, `latency` and `lag`, as the loopback
//! cloud has them.

use super::Shared;
use super::answer::Answer;
use crate::error::Error;
use crate::server::Whole;
use crate::shared::lock;
use hyper::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::time::Duration;

/// Answers a request for `/admin/…`, which is neither recorded nor throttled.
pub(super) fn answer(shared: &Shared, whole: &Whole) -> Answer {
    let path = whole.path().trim_start_matches("/admin/").trim_end_matches('/');
    let asked = (whole.method.as_str(), path);
    let answer = show(shared, whole, asked).map_or_else(|| change(shared, asked, &whole.body), Ok);
    answer.unwrap_or_else(|why| Answer::new(StatusCode::BAD_REQUEST, "text/plain", why))
}

fn json(body: &impl Serialize) -> Answer {
    // What we serialise has string keys only, so this does not fail.
    let body = serde_json::to_vec(body).unwrap_or_default();
    Answer::new(StatusCode::OK, "application/json", body)
}

/// What can be read.
fn show(shared: &Shared, whole: &Whole, asked: (&str, &str)) -> Option<Answer> {
    let answer = match asked {
        ("GET", "faults") => {
            let rules = lock(&shared.faults).list().to_vec();
            let rows = rules.into_iter().map(|(id, rule)| json!({"id": id, "rule": rule}));
            json(&rows.collect::<Vec<_>>())
        }
        ("GET", "requests") => {
            let after = whole.query().get("after").and_then(|number| number.parse().ok());
            json(&lock(&shared.records).after(after.unwrap_or(0)))
        }
        ("GET", "counts") => {
            let records = lock(&shared.records);
            json(&json!({
                "operations": records.counts(),
                "most_in_flight": records.most_in_flight(),
                "token_mismatches": shared.tokens.mismatches(),
            }))
        }
        ("GET", "throttle") => json(&lock(&shared.buckets).bounds()),
        ("GET", "latency") => json(&lock(&shared.latency).as_millis()),
        ("GET", "lag") => json(&lock(&shared.lag).by().as_millis()),
        _ => return None,
    };
    Some(answer)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// What can be changed; the error is a sentence.
fn change(shared: &Shared, asked: (&str, &str), body: &[u8]) -> Result<Answer, String> {
    let refused = |error: Error| error.to_string();
    match asked {
        ("POST", "faults") => {
            let id = shared.add_fault(read(body)?).map_err(refused)?;
            return Ok(json(&json!({"id": id})));
        }
        ("DELETE", "faults") => lock(&shared.faults).clear(),
        ("DELETE", "requests") => lock(&shared.records).clear(),
        ("PUT", "throttle") => shared.set_throttle(read(body)?).map_err(refused)?,
        ("PUT", "latency") => *lock(&shared.latency) = Duration::from_millis(read(body)?),
        ("PUT", "lag") => lock(&shared.lag).set(Duration::from_millis(read(body)?)),
        (method, what) => return Err(format!("no such thing: {method} {what}")),
    }
    Ok(Answer::new(StatusCode::OK, "text/plain", ""))
}
