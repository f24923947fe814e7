//! Private keys: parsing, generation and signing.

use crate::der::{OBJECT, OCTETS, Reader, SEQUENCE};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    UnboundCipherKey,
};
use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::Secret;
use md5::{Digest as _, Md5};
use std::fmt;
use std::num::NonZeroU32;

/// Maximum number of rounds, so that a file cannot cause excessive work.
const MOST_ROUNDS: u32 = 10_000_000;

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text has no private key.
    #[error("no private key in PEM form")]
    NoKey,
    /// The file is not text.
    #[error("not in PEM form; convert it with `openssl pkey -inform DER -in OLD.der -out NEW.pem`")]
    NotPem,
    /// OpenSSL's old encryption, which derives the key with MD5.
    #[error(
        "encrypted in OpenSSL's old form; convert it with \
         `openssl pkcs8 -topk8 -v2 aes-256-cbc -in OLD.pem -out NEW.pem`"
    )]
    LegacyEncryption,
    /// Encrypted with an unsupported scheme.
    #[error(
        "encrypted with a cipher other than AES-CBC with PBKDF2; convert it with \
         `openssl pkcs8 -topk8 -v2 aes-256-cbc -in OLD.pem -out NEW.pem`"
    )]
    OtherEncryption,
    /// Encrypted, without a passphrase.
    #[error("encrypted, and there is no passphrase; set pass_phrase or OCI_CLI_PASSPHRASE")]
    NoPassphrase,
    /// Encrypted with another passphrase.
    #[error(
        "the passphrase does not open it; set pass_phrase or OCI_CLI_PASSPHRASE to the right one"
    )]
    WrongPassphrase,
    /// Not an RSA key, or too short.
    #[error("not an RSA key of 2048 bits or more")]
    NotRsa,
    /// Rejected by the crypto library.
    #[error("the crypto library refused")]
    Refused,
}

/// An RSA signing key. `Debug` does not show it.
pub struct PrivateKey(KeyPair);

impl PrivateKey {
    /// Parses a key in PKCS#1 or PKCS#8, the latter encrypted or not. The passphrase of an unencrypted key is ignored.
    pub fn from_pem(text: &str, passphrase: Option<&Secret<String>>) -> Result<Self, KeyError> {
        let blocks = pem::parse_many(text).map_err(|_| KeyError::NoKey)?;
        let block = blocks.iter().find(|block| block.tag().ends_with("PRIVATE KEY"));
        let block = block.ok_or(KeyError::NoKey)?;
        if block.headers().get("Proc-Type").is_some_and(|kind| kind.contains("ENCRYPTED")) {
            return Err(KeyError::LegacyEncryption);
        }
        let pair = match block.tag() {
            "RSA PRIVATE KEY" => KeyPair::from_der(block.contents()),
            "PRIVATE KEY" => KeyPair::from_pkcs8(block.contents()),
            "ENCRYPTED PRIVATE KEY" => {
                let passphrase = passphrase.ok_or(KeyError::NoPassphrase)?;
                let bytes = decrypted(block.contents(), passphrase.expose().as_bytes())?;
                // With a wrong passphrase, the padding may be valid by chance, but the content is not.
                let opened = Reader::new(bytes.expose()).is_one_sequence();
                let wrong = if opened { KeyError::NotRsa } else { KeyError::WrongPassphrase };
                return KeyPair::from_pkcs8(bytes.expose()).map(Self).map_err(|_| wrong);
            }
            _ => return Err(KeyError::NotRsa),
        };
        pair.map(Self).map_err(|_| KeyError::NotRsa)
    }

    /// Generates a key of 2048 bits.
    pub fn generate() -> Result<Self, KeyError> {
        KeyPair::generate(KeySize::Rsa2048).map(Self).map_err(|_| KeyError::Refused)
    }

    /// The public key, as a `SubjectPublicKeyInfo` in DER.
    pub fn public_der(&self) -> Result<Vec<u8>, KeyError> {
        let der: Result<PublicKeyX509Der<'_>, _> = self.0.public_key().as_der();
        der.map(|der| der.as_ref().to_vec()).map_err(|_| KeyError::Refused)
    }

    /// The fingerprint of the public key in OCI: its MD5 in hex, with colons.
    pub fn fingerprint(&self) -> Result<String, KeyError> {
        let digest = Md5::digest(self.public_der()?);
        let hex: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(hex.join(":"))
    }

    /// Signs a text with RSASSA-PKCS1-v1_5 and SHA-256, in base64.
    pub fn sign(&self, text: &[u8]) -> Result<String, KeyError> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature)
            .map_err(|_| KeyError::Refused)?;
        Ok(STANDARD.encode(signature))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey")
    }
}

/// Decrypts an `EncryptedPrivateKeyInfo`: PBES2 with PBKDF2 and AES-CBC (RFC 8018).
fn decrypted(der: &[u8], passphrase: &[u8]) -> Result<Secret<Vec<u8>>, KeyError> {
    let sealed = Sealed::read(der).ok_or(KeyError::OtherEncryption)?;
    let mut key = vec![0; sealed.key_length];
    pbkdf2::derive(sealed.hash, sealed.rounds, sealed.salt, passphrase, &mut key);
    let open = || {
        let key = UnboundCipherKey::new(sealed.cipher, &key)?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(key)?;
        let mut text = sealed.text.to_vec();
        let context = DecryptionContext::Iv128(FixedLength::from(sealed.iv));
        let plain = key.decrypt(&mut text, context)?.to_vec();
        Ok(Secret::new(plain))
    };
    open().map_err(|_: aws_lc_rs::error::Unspecified| KeyError::WrongPassphrase)
}

/// The parts of an `EncryptedPrivateKeyInfo`.
struct Sealed<'a> {
    hash: pbkdf2::Algorithm,
    rounds: NonZeroU32,
    salt: &'a [u8],
    cipher: &'static Algorithm,
    key_length: usize,
    iv: [u8; 16],
    text: &'a [u8],
}

impl<'a> Sealed<'a> {
    fn read(der: &'a [u8]) -> Option<Self> {
        let mut info = Reader::new(der).sequence()?;
        let mut scheme = info.sequence()?;
        let text = info.expect(OCTETS)?;
        if scheme.expect(OBJECT)? != PBES2 {
            return None;
        }
        let mut scheme = scheme.sequence()?;
        let (mut derivation, mut encryption) = (scheme.sequence()?, scheme.sequence()?);
        if derivation.expect(OBJECT)? != PBKDF2 {
            return None;
        }
        let mut derivation = derivation.sequence()?;
        let salt = derivation.expect(OCTETS)?;
        let rounds = NonZeroU32::new(derivation.number()?).filter(|n| n.get() <= MOST_ROUNDS)?;
        let (cipher, key_length) = cipher(encryption.expect(OBJECT)?)?;
        let iv = encryption.expect(OCTETS)?.try_into().ok()?;
        Some(Self { hash: hash(derivation)?, rounds, salt, cipher, key_length, iv, text })
    }
}

const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
/// The last byte of the identifier tells which.
const HMAC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02];
const AES: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01];

/// The hash in the rest of PBKDF2's parameters; SHA-1 by default.
fn hash(mut parameters: Reader<'_>) -> Option<pbkdf2::Algorithm> {
    let mut next = parameters.any();
    if next.is_some_and(|(tag, _)| tag == crate::der::INTEGER) {
        next = parameters.any(); // the length of the key, which the cipher says too
    }
    let Some((tag, content)) = next else {
        return Some(pbkdf2::PBKDF2_HMAC_SHA1);
    };
    if tag != SEQUENCE {
        return None;
    }
    match Reader::new(content).expect(OBJECT)?.strip_prefix(HMAC)? {
        [0x07] => Some(pbkdf2::PBKDF2_HMAC_SHA1),
        [0x09] => Some(pbkdf2::PBKDF2_HMAC_SHA256),
        [0x0a] => Some(pbkdf2::PBKDF2_HMAC_SHA384),
        [0x0b] => Some(pbkdf2::PBKDF2_HMAC_SHA512),
        _ => None,
    }
}

/// The cipher and the length of its key.
fn cipher(object: &[u8]) -> Option<(&'static Algorithm, usize)> {
    match object.strip_prefix(AES)? {
        [0x02] => Some((&AES_128, 16)),
        [0x16] => Some((&AES_192, 24)),
        [0x2a] => Some((&AES_256, 32)),
        _ => None,
    }
}
