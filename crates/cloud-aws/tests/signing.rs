//! AWS's own test suite of Signature Version 4, byte for byte.

use cloud_aws::sign::{Scope, Signed, sha256};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Half past twelve on 30 August 2015, at which all vectors are signed.
const NOW: Duration = Duration::from_mins(24_015_636);

/// What a vector says, in the form in which its request is signed.
struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// Reads the text of a request; the suite writes it with raw paths, headers over several lines and no length.
fn request(text: &str) -> Request {
    let (head, body) = text.split_once("\n\n").unwrap_or((text.trim_end_matches('\n'), ""));
    let mut lines = head.lines();
    let first = lines.next().expect("a request line");
    let (method, target) = first.split_once(' ').expect("a method");
    let target = target.strip_suffix(" HTTP/1.1").expect("a version");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in lines {
        match line.split_once(':') {
            Some((name, value)) if !line.starts_with(' ') => {
                headers.push((name.to_owned(), value.to_owned()));
            }
            _ => {
                let last = headers.last_mut().expect("a header to continue");
                last.1 = format!("{} {line}", last.1);
            }
        }
    }
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    Request { method, path, query, headers, body: body.to_owned() }
}

fn suite() -> Vec<(String, Value)> {
    let text = include_str!("fixtures/sigv4.json");
    let suite: Value = serde_json::from_str(text).expect("JSON");
    let vectors = suite["vectors"].as_object().expect("vectors").clone();
    vectors.into_iter().collect()
}

#[test]
fn every_vector_of_awss_suite_is_signed_byte_for_byte() {
    let mut signed = 0;
    for (name, vector) in suite() {
        let context = &vector["context.json"];
        // Without a context it is about the path alone; what S3 signs as it is, no other service does.
        if context["normalize"] != true {
            continue;
        }
        let text = |file: &str| vector[file].as_str().expect("a text").to_owned();
        let mut request = request(&text("request.txt"));
        let scope = Scope::new(SystemTime::UNIX_EPOCH + NOW, "us-east-1", "service");
        request.headers.push(("X-Amz-Date".to_owned(), scope.time().to_owned()));
        let token = context["credentials"]["token"].as_str();
        if let Some(token) = token.filter(|_| context["omit_session_token"] != true) {
            request.headers.push(("X-Amz-Security-Token".to_owned(), token.to_owned()));
        }
        let body_sha256 = sha256(request.body.as_bytes());
        if context["sign_body"] == true {
            request.headers.push(("x-amz-content-sha256".to_owned(), body_sha256.clone()));
        }
        let headers: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // The suite writes paths that are encoded once; services get them encoded twice.
        let path = request.path.replace("%20", " ");
        let Request { method, query, .. } = &request;
        let request =
            Signed { method, path: &path, query, headers: &headers, body_sha256: &body_sha256 };
        assert_eq!(request.canonical(), text("header-canonical-request.txt"), "{name}");
        assert_eq!(request.string_to_sign(&scope), text("header-string-to-sign.txt"), "{name}");
        let credentials = &context["credentials"];
        let key = |name: &str| credentials[name].as_str().expect("a key");
        let signature = request.signature(&scope, key("secret_access_key"));
        assert_eq!(signature, text("header-signature.txt"), "{name}");
        let header = request.authorization(&scope, key("access_key_id"), &signature);
        let expected = text("header-signed-request.txt");
        assert!(expected.contains(&format!("Authorization:{header}\n")), "{name}: {header}");
        signed += 1;
    }
    assert_eq!(signed, 31);
}

#[test]
fn a_path_is_encoded_a_second_time() {
    for (name, vector) in suite() {
        if vector.get("context.json").is_none() {
            let text = |file: &str| vector[file].as_str().expect("a text").to_owned();
            let request = request(&text("request.txt"));
            let (headers, method) = ([("host", "tester")], request.method.as_str());
            let (path, query) = (request.path.as_str(), "");
            let signed = Signed { method, path, query, headers: &headers, body_sha256: "" };
            let expected = text("header-canonical-request.txt");
            assert_eq!(signed.canonical().lines().nth(1), expected.lines().nth(1), "{name}");
        }
    }
}
