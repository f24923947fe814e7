//! The HTTP client over TLS, with certificates of our own.

use cloud_core::http::{Client, ClientConfig, Method, Request, Roots, Unsigned, Url, by_status};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{ApiOperation, Error, ErrorKind, Result};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority, and its certificate in PEM.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }
}

struct Server {
    address: SocketAddr,
    connections: Arc<AtomicU32>,
}

/// Answers every request with 200, over TLS.
async fn serve(authority: &Authority) -> Server {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
    let certificate = params.signed_by(&key, &authority.issuer).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let connections = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let Ok(mut stream) = acceptor.accept(socket).await else {
                continue;
            };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        }
    });
    Server { address, connections }
}

async fn ask(address: SocketAddr, trusted: &Authority) -> Result<String, Error> {
    ask_trusting(address, Roots::Only(trusted.pem.clone().into_bytes())).await
}

async fn ask_trusting(address: SocketAddr, roots: Roots) -> Result<String, Error> {
    let mut config = ClientConfig::default();
    config.roots = roots;
    let client = Client::new(config, Unsigned, by_status, Pacer::new(Pace::default()))?;
    let url = Url::parse(&format!("https://{address}/")).expect("a URL");
    let response = client.send(&Request::new(ApiOperation::List, Method::GET, url)).await?;
    Ok(String::from_utf8_lossy(&response.body).into_owned())
}

#[tokio::test]
async fn a_certificate_of_a_trusted_authority_is_taken() {
    let authority = Authority::new();
    let server = serve(&authority).await;
    assert_eq!(ask(server.address, &authority).await.expect("an answer"), "ok");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_at_once() {
    let server = serve(&Authority::new()).await;
    let error = ask(server.address, &Authority::new()).await.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(error.message(), Some("no secure connection to 127.0.0.1"));
    assert!(format!("{error:?}").contains("InvalidCertificate"), "the cause is kept: {error:?}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 1, "trust does not come by waiting");
}

#[tokio::test]
async fn a_certificate_of_anybody_is_taken_where_that_was_asked_for() {
    let server = serve(&Authority::new()).await;
    assert_eq!(ask_trusting(server.address, Roots::Unchecked).await.expect("an answer"), "ok");
}

#[test]
fn a_bundle_that_is_none_is_refused_before_anything_is_asked() {
    let pem = b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n".to_vec();
    for roots in [Roots::Only(pem.clone()), Roots::SystemAnd(pem)] {
        let mut config = ClientConfig::default();
        config.roots = roots;
        let client = Client::new(config, Unsigned, by_status, Pacer::new(Pace::default()));
        let error = client.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.message(), Some("bad certificate bundle"));
    }
}
