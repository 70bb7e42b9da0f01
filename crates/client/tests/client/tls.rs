//! The client over TLS, with and without the server's certificate authority.

use crate::counting_server::CountingServer;
use leasehold_client::{Client, ClientError, ClientOptions};
use leasehold_server::Tls;
use leasehold_testbed::BackendKind;
use leasehold_testkit::temp_dir;

#[tokio::test]
async fn private_ca_is_trusted_only_if_configured() {
    let server = CountingServer::new(BackendKind::Sqlite).await;
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = temp_dir();
    let (certificate, key) = (
        directory.path().join("cert.pem"),
        directory.path().join("key.pem"),
    );
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let tls = Tls::read(&certificate, &key).unwrap();
    let (address, serving) = server.serve(Some(tls)).await;
    let address = format!("https://localhost:{}", address.port());

    let with_ca = ClientOptions {
        ca_pem: Some(certified.cert.pem().into_bytes()),
        ..ClientOptions::default()
    };
    let client = Client::with(&address, &server.admin, with_ca).unwrap();
    assert_eq!(client.key_me().await.unwrap().name, "admin");

    let without_ca = ClientOptions {
        max_attempts: 1,
        ..ClientOptions::default()
    };
    let client = Client::with(&address, &server.admin, without_ca).unwrap();
    let error = client.key_me().await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable(_)), "{error:?}");
    server.stop.cancel();
    serving.await.unwrap();
}
