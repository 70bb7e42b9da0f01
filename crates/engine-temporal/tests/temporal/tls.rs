//! TLS both ways: the server proves itself to us, and we to it.

use crate::{engine, options, order};
use leasehold_engine::{Engine, StartOutcome};
use leasehold_engine_temporal::{ClientCertificate, TemporalEngine, TemporalOptions, Tls};
use leasehold_testkit::TestTemporal;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut parameters = CertificateParams::default();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

fn certificate(name: &str, authority: &Authority) -> ClientCertificate {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = parameters.signed_by(&key, authority).unwrap();
    ClientCertificate {
        certificate: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
    }
}

/// Speaks TLS as `temporal.example` to those who show a certificate, and plain text to the server behind it.
async fn front(authority: &Authority) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let own = certificate("temporal.example", authority);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(&own.certificate).unwrap()],
            PrivateKeyDer::from_pem_slice(&own.key).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(client).await else {
                    return;
                };
                let server = TcpStream::connect(TestTemporal::shared().address()).await;
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server.unwrap()).await;
            });
        }
    });
    address
}

fn with_tls(address: String, tls: Tls) -> TemporalEngine {
    TemporalEngine::new(TemporalOptions {
        address,
        tls: Some(tls),
        ..options()
    })
    .unwrap()
}

#[tokio::test]
async fn only_the_right_certificates_get_through() {
    let authority = authority();
    let address = front(&authority).await;
    let right = Tls {
        ca: Some(authority.pem().into_bytes()),
        domain: Some("temporal.example".to_owned()),
        client: Some(certificate("leasehold", &authority)),
    };
    let start = order();
    let outcome = with_tls(address.clone(), right.clone()).start(&start).await;
    assert_eq!(outcome, StartOutcome::Started);
    assert!(engine().describe(start.execution).await.is_ok());
    let stranger = self::authority();
    for wrong in [
        Tls {
            ca: Some(stranger.pem().into_bytes()),
            ..right.clone()
        },
        Tls {
            domain: Some("other.example".to_owned()),
            ..right.clone()
        },
        Tls {
            client: Some(certificate("leasehold", &stranger)),
            ..right.clone()
        },
        Tls {
            client: None,
            ..right.clone()
        },
    ] {
        let outcome = with_tls(address.clone(), wrong).start(&order()).await;
        assert!(
            matches!(outcome, StartOutcome::Unavailable { reached: false, .. }),
            "{outcome:?}"
        );
    }
}
