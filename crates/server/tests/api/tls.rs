//! TLS: protocols, certificate reload, and invalid files.

use crate::listening_server::{HEALTH, ListeningServer, Peer, SHORT};
use axum::http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use leasehold_server::{ServerOptions, Tls};
use leasehold_testkit::{TempDir, temp_dir};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A certificate and a key in files.
struct CertificateFiles {
    directory: TempDir,
    generated: CertifiedKey<KeyPair>,
}

impl CertificateFiles {
    fn new() -> Self {
        let files = Self {
            directory: temp_dir(),
            generated: generate_simple_self_signed(["localhost".to_owned()]).unwrap(),
        };
        files.write();
        files
    }

    fn regenerate(&mut self) {
        self.generated = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        self.write();
    }

    fn write(&self) {
        std::fs::write(self.certificate(), self.generated.cert.pem()).unwrap();
        std::fs::write(self.key(), self.generated.signing_key.serialize_pem()).unwrap();
    }

    fn certificate(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }

    fn read(&self) -> Tls {
        Tls::read(&self.certificate(), &self.key()).unwrap()
    }

    fn trusted(&self) -> CertificateDer<'static> {
        self.generated.cert.der().clone()
    }
}

/// Opens a TLS connection that trusts only this certificate.
async fn connect_tls(
    server: &ListeningServer,
    trusted: CertificateDer<'static>,
    protocol: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

#[tokio::test]
async fn http1_and_http2_work_over_tls() {
    let files = CertificateFiles::new();
    let server = ListeningServer::over(ServerOptions::default(), Some(files.read())).await;

    let mut peer = Peer(
        connect_tls(&server, files.trusted(), "http/1.1")
            .await
            .unwrap(),
    );
    peer.send(HEALTH).await;
    assert_eq!(peer.response().await.0, 200);

    let stream = connect_tls(&server, files.trusted(), "h2").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let io = TokioIo::new(stream);
    let (mut caller, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::get("https://localhost/healthz").body(Empty::<Bytes>::new());
    let response = caller.send_request(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&body[..], br#"{"status":"ok"}"#);

    // A stop closes both connections.
    server.stop().await;
    connection.await.unwrap().unwrap();
    assert_eq!(peer.read_to_close().await, "");
}

#[tokio::test]
async fn reloaded_certificate_is_used_for_new_connections() {
    let mut files = CertificateFiles::new();
    let tls = files.read();
    let server = ListeningServer::over(ServerOptions::default(), Some(tls.clone())).await;
    let old = files.trusted();
    connect_tls(&server, old.clone(), "http/1.1").await.unwrap();

    std::fs::write(files.key(), "no key").unwrap();
    assert!(tls.reload().is_err());
    connect_tls(&server, old.clone(), "http/1.1").await.unwrap();

    files.regenerate();
    tls.reload().unwrap();
    assert!(connect_tls(&server, old, "http/1.1").await.is_err());
    connect_tls(&server, files.trusted(), "http/1.1")
        .await
        .unwrap();
}

#[tokio::test]
async fn peer_without_tls_handshake_is_disconnected() {
    let options = ServerOptions {
        header_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = ListeningServer::over(options, Some(CertificateFiles::new().read())).await;
    let mut silent = server.connect().await;
    assert_eq!(silent.read_to_close().await, "");
    let mut plain = server.connect().await;
    plain.send(HEALTH).await;
    assert!(!plain.read_to_close().await.contains("HTTP/1.1"));
}

#[test]
fn invalid_files_are_named_with_their_setting() {
    let files = CertificateFiles::new();
    let (certificate, key) = (files.certificate(), files.key());
    let missing = files.directory.path().join("missing.pem");
    let other = CertificateFiles::new();
    for (certificate, key, named) in [
        (&missing, &key, "server.tls_certificate_file"),
        (&certificate, &missing, "server.tls_key_file"),
        (&key, &key, "contains no PEM certificate"),
        (&certificate, &certificate, "contains no PEM key"),
        (&certificate, &other.key(), "server.tls_key_file"),
    ] {
        let error = Tls::read(certificate, key).err().unwrap().to_string();
        assert!(error.contains(named), "{error}");
    }
}
