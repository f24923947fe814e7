//! HTTP: connections, and what a request goes through.

use crate::admin_http;
use crate::answer::{Answer, Outcome, Refusal};
use crate::fault::{Fault, Later};
use crate::federation;
use crate::metadata_service::{self, Found};
use crate::query::{self, Call, Query};
use crate::record::Recorded;
use crate::retry_token;
use crate::route::{self, EXCHANGE, Route};
use crate::shared::{Shared, UnderWay, lock};
use crate::verify::{Cover, Signed, authorization};
use crate::world::hex_id;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, DATE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The most bytes that a request's body can have.
const MOST_BODY: usize = 4 << 20;

/// The connection closes without an answer.
#[derive(Debug, thiserror::Error)]
#[error("dropped")]
pub(crate) struct Dropped;

/// Takes connections for ever; they end with this.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        // Out of descriptors, or a connection that was gone at once: others may do better.
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        connections.spawn(connection(stream, peer.ip(), Arc::clone(&shared)));
    }
}

async fn connection(stream: TcpStream, peer: IpAddr, shared: Arc<Shared>) {
    // Without it answers wait for acknowledgements.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { respond(&shared, peer, request).await }
    });
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    // A client that goes away, or a drop on purpose.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// Lets the clock's events happen when they are due.
pub(crate) async fn tick(shared: Arc<Shared>) {
    loop {
        let idle = shared.with(|world| world.idle_for());
        match idle {
            None => shared.wake.notified().await,
            Some(idle) => {
                // Never quite nothing, so that a clock gone wild cannot take all the time.
                let idle = idle.max(Duration::from_millis(1));
                let _ = tokio::time::timeout(idle, shared.wake.notified()).await;
            }
        }
    }
}

/// A request; its body is there when it has been read.
pub(crate) struct Whole {
    /// The address that it came from.
    pub(crate) peer: IpAddr,
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Whole {
    pub(crate) fn path(&self) -> &str {
        self.target.split_once('?').map_or(self.target.as_str(), |(path, _)| path)
    }

    pub(crate) fn query(&self) -> Query {
        self.target.split_once('?').map_or_else(Query::default, |(_, query)| Query::parse(query))
    }

    fn signed(&self) -> Signed<'_> {
        let Self { peer: _, method, target, headers, body } = self;
        Signed { method, target, headers, body }
    }
}

/// What a request is for.
enum Aim {
    Exchange,
    Metadata,
    /// An operation, and what stands in place of the placeholders of its path.
    Operation(&'static Route, Vec<String>),
    /// A path that leads nowhere.
    Nothing,
}

impl Aim {
    fn of(whole: &Whole) -> Self {
        if whole.path() == EXCHANGE && whole.method == Method::POST {
            return Self::Exchange;
        }
        if metadata_service::ask(whole.path()).is_some() && whole.method == Method::GET {
            return Self::Metadata;
        }
        let found = route::find(&whole.method, whole.path());
        found.map_or(Self::Nothing, |(route, path)| Self::Operation(route, path))
    }

    /// The operation's name, as rules and records have it.
    fn name(&self) -> &'static str {
        match self {
            Self::Exchange => "X509",
            Self::Metadata => "Metadata",
            Self::Operation(route, _) => route.operation,
            Self::Nothing => "",
        }
    }
}

async fn respond(
    shared: &Arc<Shared>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Dropped> {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let (method, headers) = (head.method, head.headers);
    let mut whole = Whole { peer, method, target, headers, body: Bytes::new() };
    if whole.path().starts_with("/admin/") {
        let answer = match read(body).await? {
            Some(body) => {
                let ask = (whole.method.as_str(), whole.path(), &whole.query());
                admin_http::answer(shared, ask, &body)
            }
            None => too_large().answer(),
        };
        return Ok(response(shared, &whole, answer));
    }
    let aim = Aim::of(&whole);
    // Before the body is read, which may be too long, or never come.
    let mut under_way = UnderWay::begin(&shared.records, recorded(&whole, aim.name()));
    let Some(body) = read(body).await? else {
        let answer = too_large().answer();
        under_way.status = Some(answer.status.as_u16());
        return Ok(response(shared, &whole, answer));
    };
    under_way.has_body(&body);
    whole.body = body;
    let Done { answer, delay, faults } = carry_out(shared, &whole, aim).await;
    under_way.faults = faults;
    if !delay.is_zero() {
        // The work is done: a client that leaves in the meantime does not undo it.
        tokio::time::sleep(delay).await;
    }
    under_way.status = answer.as_ref().ok().map(|answer| answer.status.as_u16());
    drop(under_way);
    Ok(response(shared, &whole, answer?))
}

/// Reads a body to its end, so that its client comes to read the answer; `None` if it is too long.
pub(crate) async fn read(mut body: Incoming) -> Result<Option<Bytes>, Dropped> {
    let (mut bytes, mut length) = (Vec::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Dropped)?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        length = length.saturating_add(data.len());
        if length <= MOST_BODY {
            bytes.extend_from_slice(data);
        }
    }
    Ok((length <= MOST_BODY).then(|| bytes.into()))
}

pub(crate) fn recorded(whole: &Whole, operation: &str) -> Recorded {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Recorded {
        number: 0,
        at_millis: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
        operation: operation.to_owned(),
        method: whole.method.to_string(),
        target: whole.target.clone(),
        headers: whole.headers.iter().map(header).collect(),
        body: String::new(),
        status: None,
        faults: Vec::new(),
    }
}

/// What became of a request.
struct Done {
    answer: Result<Answer, Dropped>,
    /// How late the answer is to be.
    delay: Duration,
    /// The numbers of the rules that happened to it.
    faults: Vec<u64>,
}

/// Identity, throttling, faults, work: in this order.
async fn carry_out(shared: &Arc<Shared>, whole: &Whole, aim: Aim) -> Done {
    let mut done = Done { answer: Err(Dropped), delay: *lock(&shared.latency), faults: Vec::new() };
    let caller = match admit(shared, whole, &aim) {
        Ok(caller) => caller,
        Err(refusal) => return Done { answer: Ok(refusal.answer()), ..done },
    };
    let mut drop_after = false;
    let faults = lock(&shared.faults).of(aim.name(), &whole.target, &whole.body);
    for (number, fault) in faults {
        done.faults.push(number);
        match fault {
            Fault::Answer { status, code, message, headers } => {
                return Done { answer: Ok(faulty(status, &code, &message, headers)), ..done };
            }
            Fault::DropBefore => return done,
            Fault::DropAfter => drop_after = true,
            Fault::Delay { millis } => {
                done.delay = done.delay.saturating_add(Duration::from_millis(millis));
            }
            // Asked for by the work itself, when it begins.
            Fault::FailLater { .. } => {}
        }
    }
    let hit = AtomicU64::new(0);
    let outcome = match aim {
        Aim::Exchange => exchange(shared, whole),
        Aim::Metadata => metadata(shared, whole).await,
        Aim::Operation(route, path) => work(shared, whole, (route, path), (&caller, &hit)),
        Aim::Nothing => Err(Refusal::not_simulated(&format!("{} {}", whole.method, whole.path()))),
    };
    done.faults.extend(Some(hit.into_inner()).filter(|number| *number > 0));
    if !drop_after {
        done.answer = Ok(outcome.unwrap_or_else(|refusal| refusal.answer()));
    }
    done
}

/// Who calls, unless nobody knows them or they call too often.
fn admit(shared: &Shared, whole: &Whole, aim: &Aim) -> Result<String, Refusal> {
    let caller = match aim {
        Aim::Exchange | Aim::Metadata => String::new(),
        Aim::Operation(..) | Aim::Nothing => shared.authenticate(&whole.signed())?,
    };
    if lock(&shared.buckets).take(aim.name(), &caller, Instant::now()) {
        return Ok(caller);
    }
    Err(too_many())
}

fn too_large() -> Refusal {
    let message = format!("The body has more than {MOST_BODY} bytes.");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
}

fn too_many() -> Refusal {
    let message = "Too many requests for the user.";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
}

fn faulty(
    status: u16,
    code: &str,
    message: &str,
    headers: std::collections::BTreeMap<String, String>,
) -> Answer {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = if code.is_empty() {
        Answer { status, ..Answer::text(message.to_owned()) }
    } else {
        Refusal::new(status, code, message).answer()
    };
    answer.more = headers;
    answer
}

fn work(
    shared: &Shared,
    whole: &Whole,
    (route, path): (&Route, Vec<String>),
    (caller, hit): (&str, &AtomicU64),
) -> Outcome {
    let later = Later {
        faults: &shared.faults,
        operation: route.operation,
        target: &whole.target,
        body: &whole.body,
        hit,
    };
    let call = Call {
        path,
        query: whole.query().of(route.operation),
        target: &whole.target,
        headers: &whole.headers,
        body: &whole.body,
        object: query::object(&whole.body),
        caller,
        later: Some(later),
    };
    shared.with(|world| retry_token::once(world, route, &call))
}

/// The metadata service. Keys take long to make, so they are made on a thread for that, while
/// no lock is held.
async fn metadata(shared: &Arc<Shared>, whole: &Whole) -> Outcome {
    let missing = || Refusal::not_found("metadata", whole.path());
    let ask = metadata_service::ask(whole.path()).ok_or_else(missing)?;
    let found =
        shared.with(|world| metadata_service::answer(world, &ask, whole.peer, &whole.headers))?;
    let asked = match found {
        Found::Answer(answer) => return Ok(answer),
        Found::Identity(asked) => asked,
    };
    let shared = Arc::clone(shared);
    let made = tokio::task::spawn_blocking(move || federation::give(&shared.federation, &asked));
    made.await.unwrap_or_else(|_| Err(federation::broken("key")))
}

fn exchange(shared: &Shared, whole: &Whole) -> Result<Answer, Refusal> {
    let now = shared.date();
    let signed = whole.signed();
    let parsed =
        authorization(&signed, Cover::AllButHost, now).map_err(Refusal::unauthenticated)?;
    lock(&shared.federation).exchange(&signed, &parsed, now)
}

fn response(shared: &Shared, whole: &Whole, answer: Answer) -> Response<Full<Bytes>> {
    let date = httpdate::fmt_http_date(shared.date());
    let asked = whole.headers.get("opc-request-id").and_then(|id| id.to_str().ok());
    let asked = asked.map_or_else(hex_id, str::to_owned);
    let id = format!("{asked}/{}/{}", hex_id(), hex_id());
    let compressed = compressed(&whole.headers, &answer.body);
    let encoding = compressed.is_some().then_some(("content-encoding", "gzip"));
    let mut response = Response::new(Full::new(compressed.unwrap_or(answer.body)));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    let more = answer.more.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let own = answer.headers.iter().map(|(name, value)| (*name, value.as_str()));
    let always = [("opc-request-id", id.as_str()), (DATE.as_str(), date.as_str())];
    for (name, value) in always.into_iter().chain(own).chain(more).chain(encoding) {
        let name = HeaderName::try_from(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    if answer.status != StatusCode::NO_CONTENT {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    }
    response
}

/// Shorter bodies are not worth the work.
const COMPRESSED: usize = 16 << 10;

/// The body as a client wants it that takes gzip; none if it stays as it is.
fn compressed(headers: &HeaderMap, body: &Bytes) -> Option<Bytes> {
    let taken = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
    let accepts = taken.split(',').any(|word| word.trim().eq_ignore_ascii_case("gzip"));
    if !accepts || body.len() < COMPRESSED {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}
