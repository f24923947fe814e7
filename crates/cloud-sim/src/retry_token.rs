//! Retry tokens: a request that comes again is answered again, and carried out once.

use crate::answer::{Answer, Outcome, Refusal};
use crate::launch::shown;
use crate::lifecycle::Event;
use crate::query::Call;
use crate::route::Route;
use crate::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::StatusCode;
use std::collections::BTreeMap;

/// What a retry token was used for.
#[derive(Clone, Debug)]
pub(crate) struct TokenUse {
    digest: String,
    gave: Gave,
}

/// What the request was answered with.
#[derive(Clone, Debug)]
enum Gave {
    /// An instance, which is shown as it is when it is asked for again.
    Instance { id: String, work: Option<String> },
    /// Something that is shown as it was.
    Other { status: u16, headers: BTreeMap<String, String>, body: String },
}

/// Carries a request out, unless its token says that this was done before.
pub(crate) fn once(world: &mut World, route: &Route, call: &Call<'_>) -> Outcome {
    let Some(key) = key(route, call)? else {
        return (route.handler)(world, call);
    };
    if let Some(used) = world.tokens.get(&key).cloned() {
        return repeat(world, used, call);
    }
    let answer = (route.handler)(world, call)?;
    world.tokens.insert(key.clone(), TokenUse { digest: digest(call), gave: gave(&answer) });
    world.schedule(world.settings.timing.keep_token, Event::ForgetToken(key));
    Ok(answer)
}

/// The token, made the caller's and the operation's own; what only reads, and what ends things,
/// takes none.
fn key(route: &Route, call: &Call<'_>) -> Result<Option<String>, Refusal> {
    let Some(token) = call.header("opc-retry-token").filter(|_| route.takes_token()) else {
        return Ok(None);
    };
    if token.is_empty() || token.chars().count() > 64 {
        return Err(Refusal::invalid("opc-retry-token has to be of 1 to 64 characters"));
    }
    Ok(Some(format!("{} {} {token}", call.caller, route.operation)))
}

/// What makes a request the same as another.
fn digest(call: &Call<'_>) -> String {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    context.update(call.target.as_bytes());
    context.update(b"\n");
    context.update(call.body);
    STANDARD.encode(context.finish())
}

fn gave(answer: &Answer) -> Gave {
    if let Some(id) = &answer.instance {
        let work = answer.headers.iter().find(|(name, _)| *name == "opc-work-request-id");
        return Gave::Instance { id: id.clone(), work: work.map(|(_, work)| work.clone()) };
    }
    let headers = answer.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Gave::Other {
        status: answer.status.as_u16(),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&answer.body).into_owned(),
    }
}

/// Answers a request whose token was used before: as then, or with a refusal if the request differs.
fn repeat(world: &mut World, used: TokenUse, call: &Call<'_>) -> Outcome {
    if used.digest != digest(call) {
        world.token_mismatches += 1;
        let answer = &world.settings.token_mismatch;
        let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::CONFLICT);
        let message = "The retry token was used before with another request.";
        return Err(Refusal::new(status, &answer.code, message));
    }
    match used.gave {
        Gave::Instance { id, work } => {
            let live = world.instances.get(&id).filter(|record| record.state().is_live());
            let mut again = live.ok_or_else(invalidated)?.clone();
            again.work = work;
            Ok(shown(&again))
        }
        Gave::Other { status, headers, body } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let body = Bytes::from(body);
            let content_type = "application/json";
            Ok(Answer { status, more: headers, content_type, ..Answer::text(body) })
        }
    }
}

fn invalidated() -> Refusal {
    Refusal::new(
        StatusCode::CONFLICT,
        "InvalidatedRetryToken",
        "The provided retry token was used in an earlier request that resulted in a system \
         update, but a subsequent operation invalidated the token.",
    )
}
