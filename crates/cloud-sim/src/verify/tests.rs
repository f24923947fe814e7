use super::*;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::Value;
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).join(name)
}

fn read(path: &PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn headers<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let pair = |(name, value): (&str, &str)| {
        (HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap())
    };
    pairs.map(pair).collect()
}

/// A recorded request.
struct Sample {
    name: String,
    method: Method,
    target: String,
    headers: HeaderMap,
    body: String,
    cover: Cover,
}

impl Sample {
    fn signed(&self) -> Signed<'_> {
        let Self { method, target, headers, body, .. } = self;
        Signed { method, target, headers, body: body.as_bytes() }
    }

    /// Whether the signature is right, whatever the date: a vector has a day of the week that is
    /// not that of its date.
    fn verifies(&self, key: &PublicKey) -> bool {
        let request = self.signed();
        of_any_date(&request, self.cover).is_ok_and(|parsed| matches(&request, &parsed, key))
    }
}

fn vectors() -> (PublicKey, Vec<Sample>) {
    let file = read(&data("signing-vectors.json"));
    let key = PublicKey::from_pem(file["public_key_pem"].as_str().unwrap()).unwrap();
    let sample = |vector: &Value| {
        let text = |name: &str| vector[name].as_str().unwrap().to_owned();
        let url = text("url");
        let (_, after) = url.split_once("://").unwrap();
        let fields = vector["headers_after_signing"].as_object().unwrap();
        let host_unsigned = text("auth_mode").contains("host NOT signed");
        Sample {
            name: text("name"),
            method: text("method").parse().unwrap(),
            target: after[after.find('/').unwrap()..].to_owned(),
            headers: headers(
                fields.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())),
            ),
            body: text("body_utf8"),
            cover: if host_unsigned { Cover::AllButHost } else { Cover::Everything },
        }
    };
    (key, file["vectors"].as_array().unwrap().iter().map(sample).collect())
}

fn captures() -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut paths: Vec<_> =
        std::fs::read_dir(data("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let numbered = |path: &&PathBuf| {
        path.file_name().unwrap().to_str().unwrap().starts_with(|c: char| c.is_ascii_digit())
    };
    for path in paths.iter().filter(numbered) {
        for exchange in read(path)["exchanges"].as_array().unwrap() {
            let line = exchange["request_line"].as_str().unwrap();
            let mut words = line.split(' ');
            let pairs = exchange["headers"].as_array().unwrap();
            let pair = |pair: &'_ Value| {
                (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().to_owned())
            };
            let pairs: Vec<(String, String)> = pairs.iter().map(pair).collect();
            samples.push(Sample {
                name: path.display().to_string(),
                method: words.next().unwrap().parse().unwrap(),
                target: words.next().unwrap().to_owned(),
                headers: headers(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
                body: exchange["raw_body"].as_str().unwrap().to_owned(),
                cover: Cover::Everything,
            });
        }
    }
    samples
}

#[test]
fn every_vector_verifies() {
    let (key, samples) = vectors();
    assert_eq!(samples.len(), 13);
    for sample in &samples {
        assert!(sample.verifies(&key), "{}", sample.name);
    }
}

#[test]
fn a_changed_byte_does_not_verify() {
    let (key, samples) = vectors();
    for mut sample in samples {
        let target = sample.target.clone();
        sample.target.push('x');
        assert!(!sample.verifies(&key), "{}: target", sample.name);
        sample.target = target;
        let mut other = HeaderValue::from_static("Thu, 05 Jan 2014 21:31:41 GMT");
        std::mem::swap(sample.headers.get_mut("date").unwrap(), &mut other);
        assert!(!sample.verifies(&key), "{}: date", sample.name);
        std::mem::swap(sample.headers.get_mut("date").unwrap(), &mut other);
        if has_body(&sample.method) {
            sample.body.push(' ');
            assert!(!sample.verifies(&key), "{}: body", sample.name);
        }
    }
}

#[test]
fn what_the_sdk_sent_is_accepted_at_its_time_and_not_later() {
    let (key, _) = vectors();
    let samples = captures();
    assert!(samples.len() >= 42, "{}", samples.len());
    for sample in &samples {
        let request = sample.signed();
        let date = httpdate::parse_http_date(text(&sample.headers, "date").unwrap()).unwrap();
        let parsed = authorization(&request, sample.cover, date + ALLOWED_SKEW).unwrap();
        assert!(matches(&request, &parsed, &key), "{}", sample.name);
        for off in [date + ALLOWED_SKEW + Duration::from_secs(1), date - Duration::from_secs(301)] {
            let refused = authorization(&request, sample.cover, off).unwrap_err();
            assert!(refused.contains("within five minutes"), "{refused}");
        }
    }
}

#[test]
fn what_has_to_be_signed_is() {
    let date = "Mon, 16 Nov 2026 00:12:08 GMT";
    let now = httpdate::parse_http_date(date).unwrap();
    let whole = "date (request-target) host content-length content-type x-content-sha256";
    for missing in whole.split(' ') {
        let names: Vec<&str> = whole.split(' ').filter(|name| *name != missing).collect();
        let value = format!(
            "Signature algorithm=\"rsa-sha256\",headers=\"{}\",keyId=\"k\",signature=\"AA==\",version=\"1\"",
            names.join(" ")
        );
        let headers = headers([("authorization", value.as_str()), ("date", date)].into_iter());
        let request = Signed { method: &Method::POST, target: "/", headers: &headers, body: b"" };
        let refused = authorization(&request, Cover::Everything, now).unwrap_err();
        assert_eq!(refused, format!("the signature does not cover {missing}"));
    }
}

#[test]
fn headers_that_are_no_signature_are_told_apart() {
    let good = "Signature algorithm=\"rsa-sha256\",headers=\"date\",keyId=\"k\",signature=\"AA==\",version=\"1\"";
    assert!(parse(good).is_ok());
    for (from, to) in [
        ("Signature ", "Bearer "),
        ("rsa-sha256", "hmac-sha256"),
        ("AA==", "A"),
        ("\"k\"", "k"),
        ("keyId", "key"),
        ("algorithm=\"rsa-sha256\",", ""),
        ("keyId=\"k\"", "keyId=\"k\",keyId=\"k\""),
        (",version=\"1\"", ""),
        ("version=\"1\"", "version=\"2\""),
        ("signature=\"AA==\",", ""),
        (",version=\"1\"", ","),
    ] {
        assert!(parse(&good.replace(from, to)).is_err(), "{from} -> {to}");
    }
}

proptest::proptest! {
    #[test]
    fn any_header_is_read(text in ".{0,120}") {
        let _ = parse(&text);
        let _ = parse(&format!("Signature {text}"));
    }
}
