//! Through a proxy, and around it.

use crate::loopback::server::{Server, Step};
use crate::loopback::{client, config, request, send_by, witness};
use cloud_core::http::{Method, Proxies, Request, Url};
use cloud_core::{ApiOperation, ErrorKind, Secret};
use std::process::Command;

#[tokio::test]
async fn a_proxy_gets_the_request_and_its_password() {
    let proxy = Server::start([Step::ok("by proxy")]).await;
    let mut config = config();
    let url = format!("http://user:{}@{}", witness::PASSWORD, proxy.address);
    config.proxies = Proxies::from_variables(|name| (name == "http_proxy").then(|| url.clone()));
    assert!(!format!("{config:?}").contains(witness::PASSWORD));
    let url = Url::parse("http://cloud.invalid/instances").expect("a URL");
    let request = Request::new(ApiOperation::List, Method::GET, url);
    assert_eq!(send_by(&client(config), &request).await.expect("success"), "by proxy");
    let seen = proxy.seen();
    assert!(seen[0].head.starts_with("GET http://cloud.invalid/instances HTTP/1.1"));
    let basic = format!("Basic {}", witness::BASIC);
    assert_eq!(seen[0].header("proxy-authorization"), Some(basic.as_str()));
}

#[tokio::test]
async fn a_proxy_that_does_not_answer_is_an_error_without_its_password() {
    let proxy = Server::start(vec![Step::ResetRead; 9]).await;
    let mut config = config();
    let url = format!("http://user:{}@{}", witness::PASSWORD, proxy.address);
    config.proxies.https = Some(Secret::new(url));
    let url = Url::parse("https://cloud.invalid/instances").expect("a URL");
    let request = Request::new(ApiOperation::Launch, Method::POST, url);
    let error = send_by(&client(config), &request).await.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "no tunnel, so not sent: {error}");
    assert!(proxy.seen()[0].head.starts_with("CONNECT cloud.invalid:443"));
}

#[tokio::test]
async fn hosts_in_no_proxy_are_reached_directly() {
    let server = Server::start([Step::ok("direct")]).await;
    let mut config = config();
    config.proxies = Proxies {
        http: Some(Secret::new("http://127.0.0.1:1".to_owned())),
        https: None,
        no_proxy: Some("127.0.0.1".to_owned()),
    };
    let response = send_by(&client(config), &request(&server, Method::GET)).await;
    assert_eq!(response.expect("success"), "direct");
}

#[test]
fn the_environment_is_not_read() {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "loopback::a_plain_exchange"]);
    for name in ["http_proxy", "https_proxy", "all_proxy"] {
        child.env(name, "http://127.0.0.1:1").env(name.to_uppercase(), "http://127.0.0.1:1");
    }
    let output = child.env_remove("no_proxy").env_remove("NO_PROXY").output().expect("a child");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
