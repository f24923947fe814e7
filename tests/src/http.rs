//! Requests of the harness itself, with nothing in common with the clients that are tested.

use serde_json::Value;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than an answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Asks one thing of a server, with these lines more in the head; gives the head and the body of the answer.
pub(crate) fn ask(
    server: &str,
    (method, path): (&str, &str),
    lines: &str,
    body: &Value,
) -> io::Result<(String, String)> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{lines}\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(request.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let (head, text) = answer.split_once("\r\n\r\n").ok_or_else(|| {
        io::Error::other(format!("{method} {path}: an answer without a body: {answer}"))
    })?;
    Ok((head.to_owned(), text.to_owned()))
}

/// The body of an answer, if it is a good one.
pub(crate) fn good((head, text): (String, String), what: &str) -> io::Result<Value> {
    let status = head.split(' ').nth(1).unwrap_or_default();
    if !status.starts_with('2') {
        return Err(io::Error::other(format!("{what}: {head}\n{text}")));
    }
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let value = serde_json::from_str(&text);
    value.map_err(|error| io::Error::other(format!("{what}: {error}: {text}")))
}
