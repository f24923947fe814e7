//! The way to the cloud behind the proxy.

use super::answer::Answer;
use crate::server::Whole;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::io;
use tokio::net::TcpStream;

/// What is between two neighbours, and not between a client and its cloud.
const HOP_BY_HOP: [hyper::header::HeaderName; 3] = [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];

fn without_hops(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers
}

/// Asks the cloud what the client asks. The header `Host` stays: it is signed.
pub(super) async fn forward(upstream: &str, whole: &Whole) -> Answer {
    match ask(upstream, whole).await {
        Ok(answer) => answer,
        Err(error) => {
            let message = format!("the cloud behind the proxy, {upstream}: {error}");
            Answer::error(StatusCode::BAD_GATEWAY, "BadGateway", &message)
        }
    }
}

async fn ask(upstream: &str, whole: &Whole) -> io::Result<Answer> {
    let stream = TcpStream::connect(upstream).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let mut request = Request::new(Full::new(whole.body.clone()));
    *request.method_mut() = whole.method.clone();
    *request.uri_mut() = whole.target.parse().map_err(io::Error::other)?;
    *request.headers_mut() = without_hops(&whole.headers);
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    connection.abort();
    Ok(Answer { status: head.status, headers: without_hops(&head.headers), body })
}
