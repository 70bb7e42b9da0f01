//! Mutual TLS between the engine and the server.

use crate::{engine, options, order};
use leasehold_engine::{Engine, StartOutcome};
use leasehold_engine_temporal::{ClientCertificate, TemporalEngine, TemporalOptions, TemporalTls};
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

/// Starts a TLS proxy as `temporal.example` that requires client certificates and forwards plain text to the server.
async fn tls_proxy(authority: &Authority) -> String {
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

fn with_tls(address: String, tls: TemporalTls) -> TemporalEngine {
    TemporalEngine::new(TemporalOptions {
        address,
        tls: Some(tls),
        ..options()
    })
    .unwrap()
}

#[tokio::test]
async fn only_valid_certificates_are_accepted() {
    let authority = authority();
    let address = tls_proxy(&authority).await;
    let right = TemporalTls {
        ca: Some(authority.pem().into_bytes()),
        domain: Some("temporal.example".to_owned()),
        client: Some(certificate("leasehold", &authority)),
    };
    let start = order();
    let outcome = with_tls(address.clone(), right.clone()).start(&start).await;
    assert_eq!(outcome, StartOutcome::Started);
    assert!(engine().describe(start.execution).await.is_ok());
    let other_authority = self::authority();
    for wrong in [
        TemporalTls {
            ca: Some(other_authority.pem().into_bytes()),
            ..right.clone()
        },
        TemporalTls {
            domain: Some("other.example".to_owned()),
            ..right.clone()
        },
        TemporalTls {
            client: Some(certificate("leasehold", &other_authority)),
            ..right.clone()
        },
        TemporalTls {
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
