//! Instance principals: certificates for instances, and session tokens in exchange for them.

use crate::answer::{Answer, Outcome, Refusal};
use crate::error::Error;
use crate::key::{PublicKey, pem, pem_body};
use crate::settings::CloudSettings;
use crate::shared::lock;
use crate::verify::{Authorization, Signed, matches};
use crate::world::hex_id;
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, PKCS_RSA_SHA256,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The instance that the metadata service speaks of when nobody says which.
pub(crate) const MANAGEMENT_INSTANCE: &str = "ocid1.instance.oc1.phx.aaaainst";

/// How long a session can last.
const LONGEST_SESSION: Duration = Duration::from_hours(24 * 3650);

/// What the metadata service gives one instance.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A session: a token and the key that signs with it.
#[derive(Debug)]
struct Session {
    key: PublicKey,
    expires: SystemTime,
    instance: String,
}

/// A certificate that was given out.
#[derive(Debug)]
struct Issued {
    der: Vec<u8>,
    key: PublicKey,
    instance: String,
}

/// The authority: its key, what it gave out, and the sessions there are.
pub(crate) struct Federation {
    tenancy: String,
    compartment: String,
    lifetime: Duration,
    authority: Option<Authority>,
    identities: HashMap<String, Identity>,
    issued: HashMap<String, Issued>,
    sessions: HashMap<String, Session>,
}

impl std::fmt::Debug for Federation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Federation").field("sessions", &self.sessions.len()).finish_non_exhaustive()
    }
}

/// The intermediate certificate and its key.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
    signer: RsaKeyPair,
}

/// An RSA key: what signs, and its PKCS#8 form.
struct NewKey {
    signer: RsaKeyPair,
    der: Vec<u8>,
}

fn new_key() -> Result<NewKey, Refusal> {
    let key = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| broken("key"))?;
    let der: Pkcs8V1Der<'_> = key.as_der().map_err(|_| broken("key"))?;
    let der = der.as_ref().to_vec();
    Ok(NewKey { signer: key, der })
}

fn certificate_key(der: &[u8]) -> Result<KeyPair, Refusal> {
    let der = der.to_vec().into();
    KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_RSA_SHA256).map_err(|_| broken("key"))
}

pub(crate) fn broken(what: &str) -> Refusal {
    let message = format!("the simulator could not make a {what}");
    Refusal::new(hyper::StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
}

fn name(entries: Vec<(DnType, String)>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    for (kind, value) in entries {
        name.push(kind, value);
    }
    name
}

impl Authority {
    fn new() -> Result<Self, Refusal> {
        let NewKey { signer, der } = new_key()?;
        let key = certificate_key(&der)?;
        let mut params = CertificateParams::default();
        let common = "PKISVC Identity Intermediate r2".to_owned();
        params.distinguished_name = name(vec![(DnType::CommonName, common)]);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let certificate = params.self_signed(&key).map_err(|_| broken("certificate"))?;
        Ok(Self { issuer: Issuer::new(params, key), certificate, signer })
    }
}

/// What an instance asks the metadata service about who it is.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) instance: String,
    pub(crate) part: Part,
}

/// A part of an identity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Certificate,
    Key,
    Intermediate,
}

/// Gives a part of an identity. Keys are made when first needed, since one takes a tenth of a
/// second and most tests need none, and while the lock is free.
pub(crate) fn give(federation: &Mutex<Federation>, asked: &Asked) -> Outcome {
    if lock(federation).authority.is_none() {
        let authority = Authority::new()?;
        // Another may have been quicker.
        lock(federation).authority.get_or_insert(authority);
    }
    let identity = || {
        let known = lock(federation).identities.get(&asked.instance).cloned();
        if let Some(identity) = known {
            return Ok(identity);
        }
        let key = new_key()?;
        lock(federation).identity(&asked.instance, key)
    };
    let text = match asked.part {
        Part::Certificate => identity()?.certificate,
        Part::Key => {
            let key = identity()?.key;
            pkcs1_pem(&key).unwrap_or(key)
        }
        Part::Intermediate => lock(federation).intermediate()?,
    };
    Ok(Answer::text(text))
}

impl Federation {
    pub(crate) fn new(settings: &CloudSettings) -> Result<Self, Error> {
        let mut federation = Self {
            tenancy: settings.tenancy.clone(),
            compartment: settings.compartments.first().cloned().unwrap_or_default(),
            lifetime: Duration::ZERO,
            authority: None,
            identities: HashMap::new(),
            issued: HashMap::new(),
            sessions: HashMap::new(),
        };
        federation.set_lifetime(Duration::from_secs(settings.session_seconds))?;
        Ok(federation)
    }

    /// The certificate that issues those of instances.
    fn intermediate(&self) -> Result<String, Refusal> {
        let authority = self.authority.as_ref().ok_or_else(|| broken("key"))?;
        Ok(pem("CERTIFICATE", authority.certificate.der()))
    }

    /// The certificate and key of an instance, with this key if it has none yet.
    fn identity(&mut self, instance: &str, new: NewKey) -> Result<Identity, Refusal> {
        if let Some(identity) = self.identities.get(instance) {
            return Ok(identity.clone());
        }
        let NewKey { signer, der } = new;
        let key = certificate_key(&der)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = self.subject(instance);
        let issuer = &self.authority.as_ref().ok_or_else(|| broken("key"))?.issuer;
        let leaf = params.signed_by(&key, issuer).map_err(|_| broken("certificate"))?;
        let certificate = leaf.der().to_vec();
        let public =
            PublicKey::from_der(signer.public_key().as_ref()).ok_or_else(|| broken("key"))?;
        let identity = Identity {
            certificate: pem("CERTIFICATE", &certificate),
            key: pem("PRIVATE KEY", &der),
        };
        self.issued.insert(
            fingerprint(&certificate),
            Issued { der: certificate, key: public, instance: instance.to_owned() },
        );
        self.identities.insert(instance.to_owned(), identity.clone());
        Ok(identity)
    }

    /// The subject of an instance's certificate. The real one has all in units; rcgen holds one
    /// entry of a kind, and readers look for the prefix, so only the tenancy is where it was.
    fn subject(&self, instance: &str) -> DistinguishedName {
        let mut entries = vec![(DnType::CommonName, instance.to_owned())];
        entries.push((DnType::OrganizationalUnitName, format!("opc-tenant:{}", self.tenancy)));
        entries.push((DnType::OrganizationName, format!("opc-compartment:{}", self.compartment)));
        entries.push((DnType::LocalityName, format!("opc-instance:{instance}")));
        entries.push((DnType::StateOrProvinceName, "opc-certtype:instance".to_owned()));
        name(entries)
    }

    /// Who signs with this session token, and with which key.
    pub(crate) fn session(&self, token: &str, now: SystemTime) -> Option<(&PublicKey, &str)> {
        let session = self.sessions.get(token).filter(|session| session.expires > now)?;
        Some((&session.key, &session.instance))
    }

    /// Forgets an instance that is no more: its certificate gets no token from here on.
    pub(crate) fn forget(&mut self, instance: &str) {
        self.identities.remove(instance);
        self.issued.retain(|_, issued| issued.instance != instance);
        self.sessions.retain(|_, session| session.instance != instance);
    }

    /// Ends every session.
    pub(crate) fn end_sessions(&mut self) -> usize {
        let ended = self.sessions.len();
        self.sessions.clear();
        ended
    }

    /// How long new sessions last.
    pub(crate) fn set_lifetime(&mut self, lifetime: Duration) -> Result<(), Error> {
        if lifetime > LONGEST_SESSION {
            return Err(Error::Beyond { what: "session", most: "10 years" });
        }
        self.lifetime = lifetime;
        Ok(())
    }

    /// `POST /v1/x509`: a certificate in exchange for a session token.
    pub(crate) fn exchange(
        &mut self,
        request: &Signed<'_>,
        signature: &Authorization<'_>,
        now: SystemTime,
    ) -> Outcome {
        let body: Value = serde_json::from_slice(request.body)
            .map_err(|error| Refusal::unparsable(error.to_string()))?;
        let bytes = |name: &str| {
            let text = body.get(name).and_then(Value::as_str);
            let text = text.ok_or_else(|| Refusal::missing(name))?;
            STANDARD.decode(text).map_err(|_| Refusal::unparsable(format!("{name} is not base64")))
        };
        let certificate = bytes("certificate")?;
        let public = bytes("publicKey")?;
        // The SDKs send a SubjectPublicKeyInfo; the key alone (PKCS#1) is another thing.
        let session = RsaNumbers::read(&public).and_then(|_| PublicKey::from_der(&public));
        let refused =
            || Refusal::invalid("publicKey is not the SubjectPublicKeyInfo of an RSA key");
        let session = session.ok_or_else(refused)?;
        let print = fingerprint(&certificate);
        let unknown = || Refusal::unauthenticated("the certificate is not one of ours");
        let issued = self.issued.get(&print).filter(|issued| issued.der == certificate);
        let issued = issued.ok_or_else(unknown)?;
        if signature.key_id != format!("{}/fed-x509/{print}", self.tenancy) {
            return Err(Refusal::unauthenticated("keyId does not name the certificate"));
        }
        if !matches(request, signature, &issued.key) {
            return Err(Refusal::unauthenticated("the certificate's key did not sign this"));
        }
        self.check_intermediate(&body)?;
        let instance = issued.instance.clone();
        let token = self.token(&instance, &public, now)?;
        let expires = now + self.lifetime;
        self.sessions.retain(|_, session| session.expires > now);
        self.sessions.insert(token.clone(), Session { key: session, expires, instance });
        Ok(Answer::json(&json!({"token": token})))
    }

    fn check_intermediate(&self, body: &Value) -> Result<(), Refusal> {
        let ours = self.authority.as_ref().map(|authority| authority.certificate.der().to_vec());
        let sent = body.get("intermediateCertificates").and_then(Value::as_array);
        let sent = sent.into_iter().flatten().filter_map(Value::as_str);
        if sent.into_iter().any(|text| STANDARD.decode(text).ok() == ours) {
            return Ok(());
        }
        Err(Refusal::unauthenticated("the intermediate certificate is not ours"))
    }

    /// A signed token that says whose it is and until when.
    fn token(&self, instance: &str, key: &[u8], now: SystemTime) -> Result<String, Refusal> {
        let seconds =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let claims = json!({
            "sub": instance,
            "opc-tenant": self.tenancy,
            "opc-compartment": self.compartment,
            "opc-instance": instance,
            "opc-certtype": "instance",
            "ptype": "instance",
            "iss": "authService.oracle.com",
            "iat": seconds(now),
            "exp": seconds(now + self.lifetime),
            "jti": hex_id(),
            "jwk": jwk(key).to_string(),
        });
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": "asw"});
        let text = format!("{}.{}", encode(&header), encode(&claims));
        let authority = self.authority.as_ref().ok_or_else(|| broken("token"))?;
        let mut signature = vec![0; authority.signer.public_modulus_len()];
        authority
            .signer
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
            .map_err(|_| broken("token"))?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// SHA-1 of a certificate, in upper-case hexadecimal with colons.
fn fingerprint(der: &[u8]) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, der);
    let bytes: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}

/// The session's key as a JSON web key: modulus and exponent out of its DER form.
fn jwk(spki: &[u8]) -> Value {
    let numbers = RsaNumbers::read(spki).unwrap_or_default();
    json!({
        "kty": "RSA",
        "n": URL_SAFE_NO_PAD.encode(numbers.modulus),
        "e": URL_SAFE_NO_PAD.encode(numbers.exponent),
        "alg": "RS256",
        "use": "sig",
    })
}

/// The two numbers of an RSA public key.
#[derive(Debug, Default)]
struct RsaNumbers<'a> {
    modulus: &'a [u8],
    exponent: &'a [u8],
}

impl<'a> RsaNumbers<'a> {
    /// Reads a `SubjectPublicKeyInfo`.
    fn read(spki: &'a [u8]) -> Option<Self> {
        let (_, outer, _) = element(spki)?;
        let (_, _algorithm, rest) = element(outer)?;
        let (_, bits, _) = element(rest)?;
        let (_, key, _) = element(bits.get(1..)?)?;
        let (_, modulus, rest) = element(key)?;
        let (_, exponent, _) = element(rest)?;
        let plain = |number: &'a [u8]| number.strip_prefix(&[0]).unwrap_or(number);
        Some(Self { modulus: plain(modulus), exponent: plain(exponent) })
    }
}

/// One DER element: its tag, what is in it, and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = if short < 0x80 {
        (usize::from(short), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
        let add = |sum: usize, byte: &u8| sum.checked_mul(256)?.checked_add(usize::from(*byte));
        (bytes.iter().try_fold(0, add)?, rest)
    };
    let (inside, rest) = rest.split_at_checked(length)?;
    Some((tag, inside, rest))
}

/// The private key of an identity in the older form, which the real service gives.
pub(crate) fn pkcs1_pem(key: &str) -> Option<String> {
    let der = pem_body(key)?;
    let (_, outer, _) = element(&der)?;
    let (_, _version, rest) = element(outer)?;
    let (_, _algorithm, rest) = element(rest)?;
    let (_, inside, _) = element(rest)?;
    Some(pem("RSA PRIVATE KEY", inside))
}
