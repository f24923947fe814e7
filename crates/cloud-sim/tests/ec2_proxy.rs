//! The proxy in front of a cloud that speaks EC2.

use cloud_sim::ec2::Proxy;
use cloud_sim::{Fault, Rule, Throttle};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const LAUNCH: &str = "Action=RunInstances&ClientToken=t-1&ImageId=ami-1&MinCount=1&MaxCount=1";

/// A cloud that answers each request with how many there were, and keeps them.
struct Upstream {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                answer(stream, &kept).await;
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(mut stream: TcpStream, kept: &Mutex<Vec<String>>) {
    let mut text = String::new();
    let mut buffer = [0_u8; 4096];
    while !is_whole(&text) {
        let length = stream.read(&mut buffer).await.unwrap();
        text.push_str(std::str::from_utf8(&buffer[..length]).unwrap());
    }
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.push(text);
        kept.len()
    };
    let body = format!("<R><instanceId>i-{number:02x}</instanceId></R>");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

async fn pair() -> (Upstream, Proxy) {
    let upstream = Upstream::start().await;
    let proxy = Proxy::start("127.0.0.1:0", &upstream.address).await.unwrap();
    (upstream, proxy)
}

/// The status and the body of an answer; none if it was lost.
async fn ask(proxy: &Proxy, form: &str) -> Option<(u16, String)> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(proxy.endpoint()).header("host", "ec2.eu-west-1.amazonaws.com");
    let request =
        request.header("content-type", "application/x-www-form-urlencoded; charset=utf-8").header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKID/20261118/eu-west-1/ec2/aws4_request",
        );
    let answer = request.body(form.to_owned()).send().await.ok()?;
    Some((answer.status().as_u16(), answer.text().await.unwrap()))
}

#[tokio::test]
async fn a_request_is_forwarded_with_all_that_is_signed() {
    let (upstream, proxy) = pair().await;
    assert_eq!(ask(&proxy, LAUNCH).await.unwrap().0, 200);
    let [asked] = &upstream.asked()[..] else { panic!("one request") };
    for line in [
        "POST / HTTP/1.1",
        "host: ec2.eu-west-1.amazonaws.com",
        "content-type: application/x-www-form-urlencoded; charset=utf-8",
        LAUNCH,
    ] {
        assert!(asked.lines().any(|one| one == line), "{line} in\n{asked}");
    }
    assert_eq!(proxy.counts()["RunInstances"], 1);
    assert_eq!(proxy.requests()[0].status, Some(200));
}

#[tokio::test]
async fn a_launch_with_a_used_token_is_answered_and_not_repeated() {
    let (upstream, proxy) = pair().await;
    let first = ask(&proxy, LAUNCH).await;
    assert_eq!(ask(&proxy, LAUNCH).await, first);
    assert_eq!(upstream.asked().len(), 1);
    let (status, other) = ask(&proxy, &LAUNCH.replace("ami-1", "ami-2")).await.unwrap();
    assert_eq!(status, 400);
    assert!(other.contains("<Code>IdempotentParameterMismatch</Code>"), "{other}");
    assert_eq!((upstream.asked().len(), proxy.token_mismatches()), (1, 1));
    let _ = ask(&proxy, &LAUNCH.replace("t-1", "t-2")).await;
    let _ = ask(&proxy, &format!("{LAUNCH}&DryRun=true")).await;
    assert_eq!(upstream.asked().len(), 3);
}

#[tokio::test]
async fn two_launches_with_one_token_at_a_time_are_one() {
    let (upstream, proxy) = pair().await;
    let (first, second) = tokio::join!(ask(&proxy, LAUNCH), ask(&proxy, LAUNCH));
    assert_eq!(first, second);
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn a_lost_answer_is_found_with_the_same_token() {
    let (upstream, proxy) = pair().await;
    proxy.add_fault(Rule::once("RunInstances", Fault::DropAfter)).unwrap();
    assert_eq!(ask(&proxy, LAUNCH).await, None);
    let (status, body) = ask(&proxy, LAUNCH).await.unwrap();
    assert_eq!((status, body.as_str()), (200, "<R><instanceId>i-01</instanceId></R>"));
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn a_request_that_is_dropped_before_is_not_carried_out() {
    let (upstream, proxy) = pair().await;
    proxy.add_fault(Rule::once("*", Fault::DropBefore)).unwrap();
    assert_eq!(ask(&proxy, LAUNCH).await, None);
    assert_eq!(upstream.asked().len(), 0);
}

#[tokio::test]
async fn an_error_of_a_rule_has_the_form_of_ec2() {
    let (upstream, proxy) = pair().await;
    let full = Fault::answer(500, "InsufficientInstanceCapacity", "no <t3.small> here");
    let rule = Rule { containing: Some("ami-1".to_owned()), ..Rule::always("RunInstances", full) };
    proxy.add_fault(rule).unwrap();
    let (status, body) = ask(&proxy, LAUNCH).await.unwrap();
    assert_eq!(status, 500);
    let error = "<Response><Errors><Error><Code>InsufficientInstanceCapacity</Code>\
        <Message>no &lt;t3.small&gt; here</Message></Error></Errors><RequestID>";
    assert!(body.contains(error), "{body}");
    assert_eq!(upstream.asked().len(), 0);
    assert_eq!(ask(&proxy, &LAUNCH.replace("ami-1", "ami-2")).await.unwrap().0, 200);
}

#[tokio::test]
async fn too_many_requests_are_refused() {
    let (upstream, proxy) = pair().await;
    let bound = Throttle { operation: "*".to_owned(), per_second: 0.0, burst: 1.0 };
    proxy.set_throttle(vec![bound]).unwrap();
    assert_eq!(ask(&proxy, "Action=DescribeInstances").await.unwrap().0, 200);
    let (status, body) = ask(&proxy, "Action=DescribeInstances").await.unwrap();
    assert_eq!(status, 503);
    assert!(body.contains("<Code>RequestLimitExceeded</Code>"), "{body}");
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn a_new_instance_is_not_found_while_listings_lag() {
    let (upstream, proxy) = pair().await;
    proxy.set_lag(Duration::from_mins(1));
    assert_eq!(ask(&proxy, LAUNCH).await.unwrap().0, 200);
    let (status, body) = ask(&proxy, "Action=RebootInstances&InstanceId.1=i-01").await.unwrap();
    assert_eq!(status, 400);
    assert!(body.contains("<Code>InvalidInstanceID.NotFound</Code>"), "{body}");
    assert_eq!(upstream.asked().len(), 1);
    proxy.set_lag(Duration::ZERO);
    assert_eq!(ask(&proxy, "Action=RebootInstances&InstanceId.1=i-01").await.unwrap().0, 200);
}

#[tokio::test]
async fn a_rule_that_can_never_happen_is_refused() {
    let (_upstream, proxy) = pair().await;
    for rule in [
        Rule::always("LaunchInstance", Fault::DropAfter),
        Rule::always("*", Fault::FailLater { code: "x".to_owned(), message: "y".to_owned() }),
    ] {
        assert!(proxy.add_fault(rule.clone()).is_err(), "{rule:?}");
    }
}

#[tokio::test]
async fn the_other_side_speaks_http() {
    let (_upstream, proxy) = pair().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = |what: &str| format!("{}/admin/{what}", proxy.endpoint());
    let rule = serde_json::to_string(&Rule::once("*", Fault::DropBefore)).unwrap();
    let posted = client.post(url("faults")).body(rule).send().await.unwrap();
    assert_eq!(posted.text().await.unwrap(), r#"{"id":1}"#);
    assert!(client.delete(url("faults")).send().await.unwrap().status().is_success());
    assert_eq!(client.put(url("lag")).body("5").send().await.unwrap().status(), 200);
    assert_eq!(client.get(url("lag")).send().await.unwrap().text().await.unwrap(), "5");
    assert_eq!(client.put(url("lag")).body("soon").send().await.unwrap().status(), 400);
    let _ = ask(&proxy, LAUNCH).await;
    let counts = client.get(url("counts")).send().await.unwrap().text().await.unwrap();
    let counts: serde_json::Value = serde_json::from_str(&counts).unwrap();
    assert_eq!(counts["operations"]["RunInstances"], 1);
    assert_eq!(counts["token_mismatches"], 0);
}
