//! The HTTP client against a real socket: everything that goes wrong on the way to a cloud.

mod paced;
mod proxies;
mod random;
mod server;
mod signers;
mod witness;

use cloud_core::http::{
    Classification, Client, ClientConfig, HeaderName, HeaderValue, Method, Request, RequestIds,
    Response, Retry, Roots, Url, by_status,
};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{ApiOperation, ErrorKind, Result, Secret};
use server::{Server, Step};
use signers::{Counting, Tokens};
use std::error::Error as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// Short pauses and generous timeouts: nothing here depends on how fast the machine is.
fn config() -> ClientConfig {
    witness::install();
    let mut config = ClientConfig::default();
    config.timeout = Duration::from_secs(30);
    config.retry = Retry {
        attempts: 3,
        first: Duration::from_millis(1),
        longest: Duration::from_millis(2),
        budget: Duration::from_secs(30),
        ..Retry::default()
    };
    config.largest_body = 1000;
    // No certificates are needed, and the machine may have none.
    config.roots = Roots::Only(Vec::new());
    config.request_ids = RequestIds {
        send: Some(HeaderName::from_static("opc-request-id")),
        read: vec![HeaderName::from_static("opc-request-id")],
    };
    config.seed = Some(7);
    config
}

fn client(config: ClientConfig) -> Client<Tokens> {
    Client::new(config, Tokens::new(), by_status, pacer()).expect("a client")
}

/// So fast that it does not matter, refused or not.
fn pacer() -> Pacer {
    Pacer::new(Pace { start: 1000.0, least: 1000.0, most: 1000.0, ..Pace::default() })
}

/// A request with a secret in every place that can hold one.
fn request(server: &Server, method: Method) -> Request {
    let url = format!("http://{}/instances?key={}", server.address, witness::QUERY);
    let name = HeaderName::from_static("x-test");
    Request::new(ApiOperation::Launch, method, Url::parse(&url).expect("a URL"))
        .on("vm-0001")
        .with_header(name, HeaderValue::from_static("1"))
        .with_json(&[witness::BODY])
        .expect("JSON")
        .with_secret(Secret::new(witness::BODY.to_owned()))
}

async fn send(server: &Server, method: Method) -> Result<String> {
    send_by(&client(config()), &request(server, method)).await
}

async fn send_by(client: &Client<Tokens>, request: &Request) -> Result<String> {
    let response = client.send(request).await.inspect_err(witness::check)?;
    witness::check_logs();
    Ok(String::from_utf8_lossy(&response.body).into_owned())
}

fn kind(result: Result<String>) -> ErrorKind {
    result.expect_err("an error").kind()
}

#[tokio::test]
async fn a_plain_exchange() {
    let server = Server::start([Step::ok("one"), Step::ok("two")]).await;
    let client = client(config());
    let request = request(&server, Method::GET);
    assert_eq!(send_by(&client, &request).await.expect("one"), "one");
    assert_eq!(send_by(&client, &request).await.expect("two"), "two");
    assert_eq!(server.connections(), 1, "the connection is used again");
    assert!(witness::logs().contains("connect"), "the witness has to hear something");
    let seen = server.seen();
    let authorization = format!("Bearer {}-1", witness::TOKEN);
    assert_eq!(seen[0].header("authorization"), Some(authorization.as_str()));
    assert_ne!(seen[0].header("opc-request-id"), seen[1].header("opc-request-id"));
    assert_eq!(seen[0].header("x-test"), Some("1"));
    assert_eq!(seen[0].body, format!("[\"{}\"]", witness::BODY));
}

#[tokio::test]
async fn a_429_is_repeated_even_if_it_may_be_done_only_once() {
    let throttled = Step::Response(429, &["retry-after: 0"], String::new());
    let server = Server::start([throttled, Step::ok("done")]).await;
    assert_eq!(send(&server, Method::POST).await.expect("success"), "done");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn the_pause_that_the_cloud_asks_for_is_kept() {
    let throttled = Step::Response(429, &["retry-after: 1"], String::new());
    let server = Server::start([throttled, Step::ok("done")]).await;
    let begin = std::time::Instant::now();
    assert_eq!(send(&server, Method::GET).await.expect("success"), "done");
    assert!(begin.elapsed() >= Duration::from_secs(1), "a lower bound holds on any machine");
}

#[tokio::test]
async fn a_pause_longer_than_the_budget_goes_to_the_caller() {
    let throttled = Step::Response(429, &["retry-after: 3600"], "slow down".to_owned());
    let server = Server::start([throttled]).await;
    let error = send(&server, Method::GET).await.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert_eq!(error.retry_after(), Some(Duration::from_hours(1)));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_503_is_repeated_only_if_that_is_safe() {
    let server = Server::start([Step::status(503), Step::status(502), Step::ok("done")]).await;
    assert_eq!(send(&server, Method::DELETE).await.expect("success"), "done");

    let server = Server::start([Step::status(503), Step::ok("twice!")]).await;
    assert_eq!(kind(send(&server, Method::POST).await), ErrorKind::Ambiguous);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn attempts_are_bounded() {
    let server = Server::start(vec![Step::status(503); 9]).await;
    assert_eq!(kind(send(&server, Method::GET).await), ErrorKind::Unavailable);
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_reset_is_ambiguous_even_before_the_request_is_read() {
    let server = Server::start([Step::ResetUnread, Step::ok("done")]).await;
    assert_eq!(send(&server, Method::GET).await.expect("success"), "done");
    assert_eq!(server.steps_left(), 0);

    let server = Server::start([Step::ResetUnread, Step::ok("twice?")]).await;
    assert_eq!(kind(send(&server, Method::POST).await), ErrorKind::Ambiguous);
    assert_eq!(server.connections(), 1, "we cannot know that it was not read");
}

#[tokio::test]
async fn a_reset_after_the_request_is_read_is_ambiguous() {
    let server = Server::start([Step::ResetRead, Step::ok("done")]).await;
    assert_eq!(send(&server, Method::PUT).await.expect("success"), "done");

    let server = Server::start([Step::ResetRead, Step::ok("twice!")]).await;
    let error = send(&server, Method::POST).await.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert!(error.source().is_some(), "the cause is kept");
    assert_eq!(error.request_id(), server.seen()[0].header("opc-request-id"), "our id at least");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn no_connection_at_all_is_repeated_whatever_the_request_does() {
    // Bound, so that nobody else gets the port, and not listening.
    let closed = tokio::net::TcpSocket::new_v4().expect("a socket");
    closed.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let address = closed.local_addr().expect("an address");
    let url = Url::parse(&format!("http://{address}/")).expect("a URL");
    let request = Request::new(ApiOperation::Launch, Method::POST, url);
    let signer = Counting(AtomicU32::new(0));
    let client = Client::new(config(), &signer, by_status, pacer());
    let error = client.expect("a client").send(&request).await.expect_err("an error");
    witness::check(&error);
    assert_eq!(error.kind(), ErrorKind::Unavailable, "certainly not done: {error}");
    assert_eq!(signer.0.load(Ordering::SeqCst), 3);
}

/// An address where connections hang: nobody accepts, and the queue is full of those in hand.
#[cfg(target_os = "linux")]
async fn hanging() -> (std::net::SocketAddr, tokio::net::TcpListener, Vec<tokio::net::TcpStream>) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let (mut queued, mut hung) = (Vec::new(), 0);
    // More than once, lest a busy machine be taken for a full queue.
    while hung < 3 {
        let connect = tokio::net::TcpStream::connect(address);
        match tokio::time::timeout(Duration::from_millis(200), connect).await {
            Ok(stream) => queued.push(stream.expect("a connection")),
            Err(_elapsed) => hung += 1,
        }
    }
    (address, listener, queued)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_does_not_come_is_not_waited_for_as_long_as_an_answer() {
    let (address, _listener, _queued) = hanging().await;
    let mut config = config();
    config.connect_timeout = Duration::from_millis(100);
    config.retry = Retry::never();
    let url = Url::parse(&format!("http://{address}/")).expect("a URL");
    let request = Request::new(ApiOperation::Launch, Method::POST, url);
    // At the end of the whole time nobody could tell whether it was sent.
    assert_eq!(kind(send_by(&client(config), &request).await), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_slow_body_ends_at_the_timeout() {
    let mut config = config();
    config.timeout = Duration::from_millis(100);
    config.retry = Retry::never();
    let client = client(config);
    for (method, expected) in
        [(Method::GET, ErrorKind::Unavailable), (Method::POST, ErrorKind::Ambiguous)]
    {
        let server = Server::start([Step::Stall]).await;
        assert_eq!(kind(send_by(&client, &request(&server, method)).await), expected);
    }
}

#[tokio::test]
async fn a_body_cut_short_is_no_answer() {
    let server = Server::start([Step::CutShort, Step::ok("done")]).await;
    assert_eq!(send(&server, Method::GET).await.expect("success"), "done");

    let server = Server::start([Step::CutShort, Step::ok("twice!")]).await;
    assert_eq!(kind(send(&server, Method::POST).await), ErrorKind::Ambiguous);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_401_renews_the_token_and_repeats_once() {
    let server = Server::start([Step::status(401), Step::ok("done")]).await;
    assert_eq!(send(&server, Method::POST).await.expect("success"), "done");
    let tokens: Vec<_> = server
        .seen()
        .iter()
        .filter_map(|seen| seen.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(tokens.len(), 2);
    assert_ne!(tokens[0], tokens[1]);

    let server = Server::start(vec![Step::status(401); 9]).await;
    assert_eq!(kind(send(&server, Method::GET).await), ErrorKind::Unauthenticated);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_body_over_the_bound_is_not_read() {
    let server = Server::start(vec![Step::ok(&"x".repeat(1001)); 9]).await;
    assert_eq!(kind(send(&server, Method::GET).await), ErrorKind::Protocol);
    assert_eq!(server.seen().len(), 1);
    assert_eq!(kind(send(&server, Method::POST).await), ErrorKind::Ambiguous, "it was done");
    let server = Server::start([Step::ok(&"x".repeat(1000))]).await;
    assert_eq!(send(&server, Method::GET).await.expect("success").len(), 1000);
    let server = Server::start([Step::Response(404, &[], "x".repeat(5000))]).await;
    assert_eq!(kind(send(&server, Method::POST).await), ErrorKind::NotFound, "no less clear");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let away = Step::Response(307, &["location: http://127.0.0.1:1/"], String::new());
    let server = Server::start([away]).await;
    assert_eq!(kind(send(&server, Method::GET).await), ErrorKind::Protocol);
}

#[tokio::test]
async fn an_error_names_the_request_and_hides_secrets_that_the_cloud_repeats() {
    let echo = format!("bad token {}-1 with {}\n", witness::TOKEN, witness::BODY);
    let server = Server::start([Step::Response(400, &["opc-request-id: theirs/1"], echo)]).await;
    let error = send(&server, Method::POST).await.expect_err("an error");
    assert_eq!(
        error.to_string(),
        "launch vm-0001: invalid request: bad token [redacted] with [redacted] (400, request theirs/1)"
    );
}

#[tokio::test]
async fn a_url_that_cannot_be_asked_is_an_error_without_its_query() {
    let url = format!("ftp://cloud.invalid/?key={}", witness::QUERY);
    let request = Request::new(ApiOperation::List, Method::GET, Url::parse(&url).expect("a URL"));
    assert_eq!(kind(send_by(&client(config()), &request).await), ErrorKind::Invalid);
}

/// A cloud whose code is the first word of what it says.
fn by_first_word(response: &Response) -> Classification {
    let mut classification = by_status(response);
    classification.code = classification.message.split_whitespace().next().map(str::to_owned);
    classification
}

#[tokio::test]
async fn a_code_that_repeats_a_token_is_cut_as_well() {
    let echo = format!("{}-1 is not a token", witness::TOKEN);
    let server = Server::start([Step::Response(400, &[], echo)]).await;
    let client = Client::new(config(), Tokens::new(), by_first_word, pacer()).expect("a client");
    let error = send_by(&client, &request(&server, Method::POST)).await.expect_err("an error");
    assert_eq!(error.code(), Some("[redacted]"));
}

#[tokio::test]
async fn a_secret_that_begins_with_another_is_cut_out_whole() {
    let echo = "bad abc12345SECRET".to_owned();
    let server = Server::start([Step::Response(400, &[], echo)]).await;
    let request = request(&server, Method::POST)
        .with_secret(Secret::new("abc12345".to_owned()))
        .with_secret(Secret::new("abc12345SECRET".to_owned()));
    let error = send_by(&client(config()), &request).await.expect_err("an error");
    assert_eq!(error.message(), Some("bad [redacted]"));
}

#[tokio::test]
async fn a_post_without_a_body_has_a_length() {
    let client = client(config());
    for (method, expected) in
        [(Method::POST, Some("0")), (Method::PUT, Some("0")), (Method::DELETE, None)]
    {
        let server = Server::start([Step::ok("done")]).await;
        let url = Url::parse(&format!("http://{}/", server.address)).expect("a URL");
        let request = Request::new(ApiOperation::Reboot, method.clone(), url);
        assert_eq!(send_by(&client, &request).await.expect("success"), "done");
        assert_eq!(server.seen()[0].header("content-length"), expected, "{method}");
    }
}

#[tokio::test]
async fn an_error_keeps_the_clock_of_the_cloud_beside_its_text() {
    let dated = Step::Response(400, &["date: Thu, 01 Jan 1970 00:01:00 GMT"], "no".to_owned());
    let server = Server::start([dated]).await;
    let error = send(&server, Method::GET).await.expect_err("an error");
    assert_eq!(error.answered(), Some(SystemTime::UNIX_EPOCH + Duration::from_mins(1)));
    assert!(!error.to_string().contains("1970"), "{error}");
}
