//! Public keys, as PEM and as what verifies signatures.

use aws_lc_rs::signature::{ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// An RSA public key, parsed once.
#[derive(Clone)]
pub(crate) struct PublicKey(ParsedPublicKey);

impl PublicKey {
    /// Reads `-----BEGIN PUBLIC KEY-----` or `-----BEGIN RSA PUBLIC KEY-----`.
    pub(crate) fn from_pem(pem: &str) -> Option<Self> {
        Self::from_der(&pem_body(pem)?)
    }

    /// Reads a `SubjectPublicKeyInfo` or a PKCS#1 key.
    pub(crate) fn from_der(der: &[u8]) -> Option<Self> {
        ParsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, der).ok().map(Self)
    }

    /// True if the signature is this key's, of this message.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.0.verify_sig(message, signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicKey")
    }
}

/// The bytes of the first block of a PEM text.
pub(crate) fn pem_body(pem: &str) -> Option<Vec<u8>> {
    let inside = pem.lines().map(str::trim).skip_while(|line| !line.starts_with("-----BEGIN "));
    let text: String = inside.skip(1).take_while(|line| !line.starts_with("-----END ")).collect();
    STANDARD.decode(text).ok().filter(|der| !der.is_empty())
}

/// A PEM text of one block, lines of 64 characters.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_there_and_back() {
        let der: Vec<u8> = (0..=255).collect();
        assert_eq!(pem_body(&pem("THING", &der)), Some(der));
    }

    #[test]
    fn what_is_no_key_is_none() {
        for text in ["", "-----BEGIN PUBLIC KEY-----", "-----BEGIN X-----\n!!\n-----END X-----"] {
            assert!(PublicKey::from_pem(text).is_none(), "{text}");
        }
        assert!(PublicKey::from_pem(&pem("PUBLIC KEY", b"not a key")).is_none());
    }
}
