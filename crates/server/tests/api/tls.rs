//! TLS: who is believed, what is spoken over it, and what is said of files that cannot work.

use crate::listening::{HEALTH, Listening, Peer, SHORT};
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

/// A certificate and a key in their files.
struct Files {
    folder: TempDir,
    made: CertifiedKey<KeyPair>,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            folder: temp_dir(),
            made: generate_simple_self_signed(["localhost".to_owned()]).unwrap(),
        };
        files.write();
        files
    }

    fn renew(&mut self) {
        self.made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        self.write();
    }

    fn write(&self) {
        std::fs::write(self.certificate(), self.made.cert.pem()).unwrap();
        std::fs::write(self.key(), self.made.signing_key.serialize_pem()).unwrap();
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    fn read(&self) -> Tls {
        Tls::read(&self.certificate(), &self.key()).unwrap()
    }

    fn trusted(&self) -> CertificateDer<'static> {
        self.made.cert.der().clone()
    }
}

/// Speaks TLS to the server, believing this certificate only.
async fn shake(
    server: &Listening,
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
async fn both_protocols_are_spoken_over_tls() {
    let files = Files::new();
    let server = Listening::over(ServerOptions::default(), Some(files.read())).await;

    let mut peer = Peer(shake(&server, files.trusted(), "http/1.1").await.unwrap());
    peer.say(HEALTH).await;
    assert_eq!(peer.answer().await.0, 200);

    let stream = shake(&server, files.trusted(), "h2").await.unwrap();
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

    // A stop ends both.
    server.stopped().await;
    connection.await.unwrap().unwrap();
    assert_eq!(peer.rest().await, "");
}

#[tokio::test]
async fn a_certificate_that_was_renewed_is_shown_to_new_connections() {
    let mut files = Files::new();
    let tls = files.read();
    let server = Listening::over(ServerOptions::default(), Some(tls.clone())).await;
    let old = files.trusted();
    shake(&server, old.clone(), "http/1.1").await.unwrap();

    std::fs::write(files.key(), "no key").unwrap();
    assert!(tls.renew().is_err());
    shake(&server, old.clone(), "http/1.1").await.unwrap();

    files.renew();
    tls.renew().unwrap();
    assert!(shake(&server, old, "http/1.1").await.is_err());
    shake(&server, files.trusted(), "http/1.1").await.unwrap();
}

#[tokio::test]
async fn a_peer_that_does_not_shake_hands_is_cut_and_one_that_speaks_in_the_clear_gets_nothing() {
    let options = ServerOptions {
        header_timeout: SHORT,
        ..ServerOptions::default()
    };
    let server = Listening::over(options, Some(Files::new().read())).await;
    let mut silent = server.connect().await;
    assert_eq!(silent.rest().await, "");
    let mut plain = server.connect().await;
    plain.say(HEALTH).await;
    assert!(!plain.rest().await.contains("HTTP/1.1"));
}

#[test]
fn files_that_cannot_work_are_named_by_their_setting() {
    let files = Files::new();
    let (certificate, key) = (files.certificate(), files.key());
    let missing = files.folder.path().join("missing.pem");
    let other = Files::new();
    for (certificate, key, named) in [
        (&missing, &key, "server.tls_certificate_file"),
        (&certificate, &missing, "server.tls_key_file"),
        (&key, &key, "has no certificate in PEM"),
        (&certificate, &certificate, "has no key in PEM"),
        (&certificate, &other.key(), "server.tls_key_file"),
    ] {
        let error = Tls::read(certificate, key).err().unwrap().to_string();
        assert!(error.contains(named), "{error}");
    }
}
