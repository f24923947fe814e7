//! Signatures byte for byte as Oracle's SDK makes them, and keys in every form.

use cloud_core::Secret;
use cloud_oci::sign::{Signed, SignedBody, sha256};
use cloud_oci::{KeyError, PrivateKey};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("data/signing-vectors.json")).expect("the vectors are JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().expect("a text")
}

/// Signs what a vector says and compares text, hash and header.
fn agrees(vector: &Value, key: &PrivateKey) {
    let name = text(vector, "name");
    let (method, url, body) =
        (text(vector, "method"), text(vector, "url"), text(vector, "body_utf8"));
    let (_, rest) = url.split_once("://").expect("a URL");
    let (host, path) = rest.split_once('/').expect("a path");
    let target = format!("/{path}");
    let signed_headers: Vec<&str> = vector["signed_headers"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let hash = sha256(body.as_bytes());
    assert_eq!(hash, text(vector, "body_sha256_b64"), "{name}");
    let signed_body =
        SignedBody { length: body.len(), content_type: "application/json", sha256: &hash };
    let signed = Signed {
        method,
        target: &target,
        host: signed_headers.contains(&"host").then_some(host),
        date: text(vector, "date"),
        body: signed_headers.contains(&"x-content-sha256").then_some(signed_body),
    };
    assert_eq!(signed.text(), text(vector, "signing_string"), "{name}");
    let authorization = signed.authorization(key, text(vector, "key_id")).expect("it signs");
    assert_eq!(authorization, text(vector, "authorization"), "{name}");
}

#[test]
fn every_vector_agrees_byte_for_byte() {
    let vectors = vectors();
    let key = PrivateKey::from_pem(text(&vectors, "private_key_pem_pkcs1"), None).expect("a key");
    let rows = vectors["vectors"].as_array().expect("a list");
    assert_eq!(rows.len(), 13);
    for vector in rows {
        agrees(vector, &key);
    }
}

#[test]
fn both_plain_forms_are_the_same_key() {
    let vectors = vectors();
    for form in ["private_key_pem_pkcs1", "private_key_pem_pkcs8"] {
        // As Oracle's console gives it out, and with a passphrase that it does not need.
        let pem = format!("{}OCI_API_KEY\n", text(&vectors, form));
        let pass = Secret::new("not needed".to_owned());
        let key = PrivateKey::from_pem(&pem, Some(&pass)).expect("a key");
        assert_eq!(key.fingerprint().expect("a digest"), text(&vectors, "fingerprint"), "{form}");
    }
}

const SEALED: &str = include_str!("data/key-encrypted-pkcs8-aes256-pbkdf2.pem");

#[test]
fn an_encrypted_key_opens_with_its_passphrase() {
    let pass = Secret::new("throwaway-pass".to_owned());
    let key = PrivateKey::from_pem(SEALED, Some(&pass)).expect("it opens");
    assert_eq!(key.fingerprint().expect("a digest"), text(&vectors(), "fingerprint"));
    let wrong = Secret::new("another".to_owned());
    let table = [(Some(&wrong), KeyError::WrongPassphrase), (None, KeyError::NoPassphrase)];
    for (pass, expected) in table {
        assert_eq!(PrivateKey::from_pem(SEALED, pass).err(), Some(expected));
    }
}

/// OpenSSL leaves SHA-1 out, as that is what is meant where nothing is said.
#[test]
fn keys_are_opened_with_every_cipher_and_hash_that_we_read() {
    let pass = Secret::new("throwaway-pass".to_owned());
    for pem in [
        include_str!("data/key-encrypted-pkcs8-aes128-sha1.pem"),
        include_str!("data/key-encrypted-pkcs8-aes192-sha384.pem"),
        include_str!("data/key-encrypted-pkcs8-aes256-sha512.pem"),
    ] {
        let key = PrivateKey::from_pem(pem, Some(&pass)).expect("it opens");
        assert_eq!(key.fingerprint().expect("a digest"), text(&vectors(), "fingerprint"));
    }
}

#[test]
fn an_encrypted_key_of_another_kind_is_not_called_a_wrong_passphrase() {
    let pem = include_str!("data/key-encrypted-pkcs8-ec.pem");
    for (pass, expected) in
        [("throwaway-pass", KeyError::NotRsa), ("another", KeyError::WrongPassphrase)]
    {
        let pass = Secret::new(pass.to_owned());
        assert_eq!(PrivateKey::from_pem(pem, Some(&pass)).err(), Some(expected));
    }
}

#[test]
fn the_old_encryption_is_refused_with_the_command_that_converts_it() {
    let old = [
        include_str!("data/key-encrypted-pkcs1-aes256.pem"),
        include_str!("data/key-encrypted-pkcs1-des3.pem"),
    ];
    for pem in old {
        let pass = Secret::new("throwaway-pass".to_owned());
        let error = PrivateKey::from_pem(pem, Some(&pass)).expect_err("it is old");
        assert_eq!(error, KeyError::LegacyEncryption);
        assert!(error.to_string().contains("openssl pkcs8 -topk8 -v2"), "{error}");
    }
}

#[test]
fn what_is_no_key_is_refused() {
    let sealed_badly = SEALED.replace("MIIF", "MIIE");
    let other = "-----BEGIN EC PRIVATE KEY-----\nAQID\n-----END EC PRIVATE KEY-----";
    let junk = "-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----";
    let pass = Secret::new("throwaway-pass".to_owned());
    let table = [
        ("", KeyError::NoKey),
        ("hello", KeyError::NoKey),
        (other, KeyError::NotRsa),
        (junk, KeyError::NotRsa),
        (&sealed_badly, KeyError::OtherEncryption),
    ];
    for (pem, expected) in table {
        assert_eq!(PrivateKey::from_pem(pem, Some(&pass)).err(), Some(expected), "{pem}");
    }
}

#[test]
fn a_new_key_signs_and_says_nothing() {
    let (one, other) = (PrivateKey::generate(), PrivateKey::generate());
    let (one, other) = (one.expect("a key"), other.expect("a key"));
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_eq!(one.sign(b"x"), one.sign(b"x"), "the same text, the same signature");
    assert_eq!(format!("{one:?}"), "PrivateKey");
}
