//! Connections, and what a request goes through.

use super::answer::Answer;
use super::client_token::Turn;
use super::forward::forward;
use super::operation::Call;
use super::{Shared, admin};
use crate::fault::Fault;
use crate::server::{Dropped, Whole, read, recorded};
use crate::shared::{UnderWay, lock};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Takes connections for ever; they end with this.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        connections.spawn(connection(stream, peer.ip(), Arc::clone(&shared)));
    }
}

async fn connection(stream: TcpStream, peer: IpAddr, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { respond(shared, peer, request).await }
    });
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    // A client that goes away, or a drop on purpose.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(
    shared: Arc<Shared>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Dropped> {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let mut whole =
        Whole { peer, method: head.method, target, headers: head.headers, body: Bytes::new() };
    let Some(body) = read(body).await? else {
        let message = "the body is too long";
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return Ok(response(Answer::error(status, "RequestEntityTooLarge", message)));
    };
    whole.body = body;
    if whole.path().starts_with("/admin/") {
        return Ok(response(admin::answer(&shared, &whole)));
    }
    // On a task of its own: what the cloud has begun is noted even if the client leaves.
    let done = tokio::spawn(async move { carry_out(&shared, &whole).await });
    done.await.map_err(|_| Dropped)?.map(response)
}

/// Throttling, faults, work: in this order. The cloud itself compares the signature.
async fn carry_out(shared: &Arc<Shared>, whole: &Whole) -> Result<Answer, Dropped> {
    let call = Call::of(whole);
    let mut under_way = UnderWay::begin(&shared.records, recorded(whole, &call.operation));
    under_way.has_body(&whole.body);
    let mut delay = *lock(&shared.latency);
    let taken = lock(&shared.buckets).take(&call.operation, &call.caller, Instant::now());
    let answer = if taken {
        work(shared, whole, &call, (&mut delay, &mut under_way.faults)).await
    } else {
        let (code, message) = ("RequestLimitExceeded", "Request limit exceeded.");
        Ok(Answer::error(StatusCode::SERVICE_UNAVAILABLE, code, message))
    };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    under_way.status = answer.as_ref().ok().map(|answer| answer.status.as_u16());
    answer
}

/// Forwards a request, unless a rule says otherwise.
async fn work(
    shared: &Shared,
    whole: &Whole,
    call: &Call,
    (delay, hit): (&mut Duration, &mut Vec<u64>),
) -> Result<Answer, Dropped> {
    let mut drop_after = false;
    let faults = lock(&shared.faults).of(&call.operation, &whole.target, &whole.body);
    for (number, fault) in faults {
        hit.push(number);
        match fault {
            Fault::Answer { status, code, message, headers } => {
                return Ok(Answer::of_rule(status, &code, &message, &headers));
            }
            Fault::DropBefore => return Err(Dropped),
            Fault::DropAfter => drop_after = true,
            Fault::Delay { millis } => {
                *delay = delay.saturating_add(Duration::from_millis(millis));
            }
            // No rule here can be of this kind.
            Fault::FailLater { .. } => {}
        }
    }
    let refused = lock(&shared.lag).refuse(call, Instant::now());
    let answer = match refused {
        Some(refused) => refused,
        None => once(shared, whole, call).await,
    };
    if drop_after { Err(Dropped) } else { Ok(answer) }
}

/// Has the cloud carry a request out, if it was not before with the same client token.
async fn once(shared: &Shared, whole: &Whole, call: &Call) -> Answer {
    let place = match shared.tokens.turn(call).await {
        Turn::Answered(answer) => return answer,
        Turn::New(place) => place,
    };
    let answer = forward(&shared.upstream, whole).await;
    let answer = lock(&shared.lag).pass(call, answer, Instant::now());
    place.keep(call, &answer);
    answer
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}
