//! Instance principals: exchange the certificate of this machine for a token.
//!
//! The metadata service returns the certificate and its key. The client generates a new key and requests a token for it
//! from the identity service, signed with the certificate's key. The token, and so the new key, is valid for some minutes.

use crate::auth::{Identity, JSON, target};
use crate::classify::{classify, with_remark};
use crate::der;
use crate::key::{KeyError, PrivateKey};
use crate::sign::{Signed, SignedBody, sha256};
use crate::{Clock, Region, jwt};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::http::{
    Classification, Client, ClientConfig, HeaderName, HeaderValue, Method, Proxies, Request,
    Response, Unsigned, Url, by_status,
};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{
    ApiOperation, Error, ErrorKind, Generation, Held, Result, Secret, Token, TokenCache,
};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// The metadata service of every instance.
pub(crate) const METADATA: &str = "http://169.254.169.254/opc/v2";

/// The metadata service over IPv6, for instances without IPv4.
const METADATA_IPV6: &str = "http://[fd00:c1::a9fe:a9fe]/opc/v2";

/// Remaining lifetime at which a token is renewed.
const LEAST_LIFE: Duration = Duration::from_mins(1);

/// Connect timeout of the metadata service, which allows a second attempt of the system.
const LONGEST_CONNECT: Duration = Duration::from_secs(2);

pub(crate) struct InstancePrincipal {
    metadata: Metadata,
    client: Client<Unsigned>,
    /// The address for exchanging certificates.
    pub(crate) federation: Url,
    clock: Clock,
    tokens: TokenCache<Identity>,
}

/// A client of the metadata service.
pub(crate) struct Metadata {
    client: Client<Unsigned>,
    base: Url,
}

/// The identity from the metadata service.
struct Certificate {
    leaf: Vec<u8>,
    intermediates: Vec<Vec<u8>>,
    key: PrivateKey,
    tenancy: String,
}

impl Metadata {
    /// Creates a client with this base address, without proxy.
    pub(crate) fn new(http: &ClientConfig, base: Url) -> Result<Self> {
        let pacer = Pacer::new(Pace::default());
        let client = Client::new(nearby(http), Unsigned, classify_metadata, pacer)?;
        Ok(Self { client, base: where_there_is_a_way(base, has_route) })
    }

    /// The region of this machine.
    pub(crate) async fn region(&self) -> Result<Region> {
        let short = self.text("instance/region").await?;
        if let Some(region) = Region::find(&short) {
            return Ok(region);
        }
        // Not in the table, so query the realm, too.
        let text = self.text("instance/regionInfo").await?;
        let info: RegionInfo = serde_json::from_str(&text).map_err(|_| {
            let why =
                format!("unknown region {short}, and no regionInfo from the metadata service");
            error(ErrorKind::Protocol).because(why)
        })?;
        Ok(Region::in_realm(info.region_identifier, info.realm_domain_component))
    }

    async fn certificate(&self) -> Result<Certificate> {
        let leaf = self.text("identity/cert.pem").await?;
        let key = self.text("identity/key.pem").await?;
        let intermediate = self.text("identity/intermediate.pem").await?;
        let wrong = |what: &str| error(ErrorKind::Protocol).because(what);
        let mut leaves = ders(&leaf).into_iter();
        let leaf = leaves.next().ok_or_else(|| wrong("cert.pem has no certificate"))?;
        let key = PrivateKey::from_pem(&key, None)
            .map_err(|cause| wrong("key.pem has no usable key").caused_by(cause))?;
        let tenancy = tenancy(&leaf).ok_or_else(|| wrong("the certificate names no tenancy"))?;
        Ok(Certificate { leaf, intermediates: ders(&intermediate), key, tenancy })
    }

    async fn text(&self, path: &str) -> Result<String> {
        self.read(ApiOperation::Authenticate, path).await.map_err(elsewhere)
    }

    /// What is at a path below the base.
    pub(crate) async fn read(&self, operation: ApiOperation, path: &str) -> Result<String> {
        let url = format!("{}/{path}", self.base.as_str().trim_end_matches('/'));
        let url = Url::parse(&url).map_err(|cause| error(ErrorKind::Invalid).caused_by(cause))?;
        let bearer = HeaderValue::from_static("Bearer Oracle");
        let request = Request::new(operation, Method::GET, url)
            .on(format!("metadata {path}"))
            .with_header(HeaderName::from_static("authorization"), bearer);
        let response = self.client.send(&request).await?;
        Ok(String::from_utf8_lossy(&response.body).trim().to_owned())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegionInfo {
    region_identifier: String,
    realm_domain_component: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exchange {
    certificate: String,
    public_key: String,
    intermediate_certificates: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct Issued {
    token: String,
}

impl InstancePrincipal {
    pub(crate) fn new(
        metadata: Metadata,
        http: ClientConfig,
        federation: Url,
        clock: Clock,
    ) -> Result<Self> {
        let pacer = Pacer::new(Pace::default());
        let client = Client::new(http, Unsigned, classify, pacer)?;
        let tokens = TokenCache::new(LEAST_LIFE);
        Ok(Self { metadata, client, federation, clock, tokens })
    }

    /// Returns the cached key and token, or new ones.
    pub(crate) async fn identity(&self) -> Result<Held<Identity>> {
        self.tokens.get(|| self.renew()).await
    }

    /// Drops the rejected token.
    pub(crate) fn forget(&self, generation: Generation) {
        self.tokens.forget(generation);
    }

    async fn renew(&self) -> Result<Token<Identity>> {
        match self.exchange().await {
            // The certificate and its key are two requests, and both may change in between.
            Err(error) if error.kind() == ErrorKind::Unauthenticated => self.exchange().await,
            result => result,
        }
    }

    async fn exchange(&self) -> Result<Token<Identity>> {
        let certificate = self.metadata.certificate().await?;
        let key = PrivateKey::generate().map_err(refused)?;
        let request = self.exchange_request(&certificate, &key)?;
        let response = self.client.send(&request).await;
        let response =
            response.map_err(|error| crate::classify::with_our_clock(error, &self.clock))?;
        let Issued { token } = response.json(&request)?;
        let life = jwt::expiry(&token).and_then(|end| end.duration_since(self.clock.now()).ok());
        let identity = Identity {
            key_id: Secret::new(format!("ST${token}")),
            key: Arc::new(key),
            tenancy: Some(certificate.tenancy),
        };
        Ok(Token { value: identity, life: life.unwrap_or_default() })
    }

    /// Signed with the certificate's key, without the host.
    fn exchange_request(&self, certificate: &Certificate, key: &PrivateKey) -> Result<Request> {
        let body = Exchange {
            certificate: STANDARD.encode(&certificate.leaf),
            public_key: STANDARD.encode(key.public_der().map_err(refused)?),
            intermediate_certificates: certificate
                .intermediates
                .iter()
                .map(|der| STANDARD.encode(der))
                .collect(),
        };
        let body = serde_json::to_vec(&body)
            .map_err(|cause| error(ErrorKind::Invalid).caused_by(cause))?;
        let (date, hash) = (self.clock.http_date(), sha256(&body));
        let signed = Signed {
            method: "POST",
            target: &target(&self.federation),
            host: None,
            date: &date,
            body: Some(SignedBody { length: body.len(), content_type: JSON, sha256: &hash }),
        };
        let key_id = format!("{}/fed-x509/{}", certificate.tenancy, thumbprint(&certificate.leaf));
        let authorization = signed.authorization(&certificate.key, &key_id).map_err(refused)?;
        let mut request =
            Request::new(ApiOperation::Authenticate, Method::POST, self.federation.clone())
                .on(&certificate.tenancy)
                .with_body(HeaderValue::from_static(JSON), body)
                .with_secret(Secret::new(authorization.clone()));
        for (name, value) in
            [("date", date), ("x-content-sha256", hash), ("authorization", authorization)]
        {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|cause| error(ErrorKind::Invalid).caused_by(cause))?;
            value.set_sensitive(name == "authorization");
            request = request.with_header(HeaderName::from_static(name), value);
        }
        Ok(request)
    }
}

/// The default base: IPv6 if there is a route to that and none to IPv4.
fn where_there_is_a_way(base: Url, has_route: impl Fn(&Url) -> bool) -> Url {
    let usual = base.as_str().trim_end_matches('/') == METADATA;
    let by_ipv6 = Url::parse(METADATA_IPV6).ok().filter(|_| usual && !has_route(&base));
    by_ipv6.filter(has_route).unwrap_or(base)
}

/// True if the system has a route to this host. Nothing is sent.
fn has_route(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let Ok(address) = host.parse::<IpAddr>() else {
        return false;
    };
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).is_ok_and(|socket| socket.connect((address, 80)).is_ok())
}

/// The HTTP configuration for a link-local service: no proxy, and short timeouts.
fn nearby(http: &ClientConfig) -> ClientConfig {
    let mut config = http.clone();
    config.proxies = Proxies::none();
    config.connect_timeout = config.connect_timeout.min(LONGEST_CONNECT);
    config
}

/// Adds a hint to an error of the metadata service: this machine is probably not an OCI instance.
fn elsewhere(error: Error) -> Error {
    if error.kind() != ErrorKind::Unavailable {
        return error;
    }
    with_remark(error, ": is this machine an OCI instance? else set auth: config_file")
}

/// The tenancy of a certificate.
pub(crate) fn tenancy(certificate: &[u8]) -> Option<String> {
    der::subject_values(certificate)?.iter().find_map(|value| {
        let tenancy =
            value.strip_prefix("opc-tenant:").or_else(|| value.strip_prefix("opc-identity:"))?;
        Some(tenancy.to_owned())
    })
}

/// The fingerprint of a certificate in a key id: its SHA-1 in upper-case hex, with colons.
fn thumbprint(certificate: &[u8]) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, certificate);
    let hex: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    hex.join(":")
}

pub(crate) fn ders(text: &str) -> Vec<Vec<u8>> {
    let blocks = pem::parse_many(text).unwrap_or_default().into_iter();
    blocks.filter(|block| block.tag() == "CERTIFICATE").map(pem::Pem::into_contents).collect()
}

/// Classifies a 404 of the metadata service as transient, because the machine may have just booted.
fn classify_metadata(response: &Response) -> Classification {
    let mut classification = by_status(response);
    if classification.kind == ErrorKind::NotFound {
        classification.kind = ErrorKind::Unavailable;
    }
    classification
}

fn refused(cause: KeyError) -> Error {
    error(ErrorKind::Unauthenticated).caused_by(cause)
}

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, ApiOperation::Authenticate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_service_has_a_short_connect_timeout() {
        let mut http = ClientConfig::default();
        assert_eq!(nearby(&http).connect_timeout, Duration::from_secs(2));
        http.connect_timeout = Duration::from_secs(1);
        assert_eq!(nearby(&http).connect_timeout, Duration::from_secs(1));
    }

    #[test]
    fn an_instance_without_ipv4_uses_the_metadata_service_by_ipv6() {
        let elsewhere = "http://127.0.0.1:1/opc/v2";
        for (base, ways, chosen) in [
            (METADATA, &[METADATA][..], METADATA),
            (METADATA, &[METADATA, METADATA_IPV6], METADATA),
            (METADATA, &[METADATA_IPV6], METADATA_IPV6),
            (METADATA, &[], METADATA),
            (elsewhere, &[METADATA_IPV6], elsewhere),
        ] {
            let has_way = |url: &Url| ways.contains(&url.as_str());
            let found = where_there_is_a_way(Url::parse(base).unwrap(), has_way);
            assert_eq!(found.as_str(), chosen, "{base} with {ways:?}");
        }
        // A broadcast needs a socket option that is not set.
        for (url, known) in [("http://127.0.0.1/opc/v2", true), ("http://255.255.255.255/", false)]
        {
            assert_eq!(has_route(&Url::parse(url).unwrap()), known, "{url}");
        }
    }

    #[test]
    fn the_certificate_names_tenancy_and_thumbprint() {
        let text = include_str!("../tests/data/instance-principal.json");
        let log: serde_json::Value = serde_json::from_str(text).unwrap();
        let exchanges = log["exchanges"].as_array().unwrap();
        let pem = exchanges[0]["response_body"].as_str().unwrap();
        let leaf = ders(pem).remove(0);
        assert_eq!(tenancy(&leaf).unwrap(), "ocid1.tenancy.oc1..aaaaaaaathrowawaytenancy");
        let post = exchanges.iter().find(|e| e["request"] == "POST /v1/x509").unwrap();
        let headers = post["headers"].as_array().unwrap();
        let authorization = headers.iter().find(|h| h[0] == "authorization").unwrap();
        let key_id = format!(
            "keyId=\"ocid1.tenancy.oc1..aaaaaaaathrowawaytenancy/fed-x509/{}\"",
            thumbprint(&leaf)
        );
        assert!(authorization[1].as_str().unwrap().contains(&key_id), "{key_id}");
    }
}
