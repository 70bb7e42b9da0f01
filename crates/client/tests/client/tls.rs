//! The client over TLS: a server whose authority it was told to trust, and one that it was not.

use crate::counting_server::CountingServer;
use leasehold_client::{Client, ClientError, ClientOptions};
use leasehold_server::Tls;
use leasehold_testbed::BackendKind;
use leasehold_testkit::temp_dir;

#[tokio::test]
async fn a_server_of_ones_own_authority_is_trusted_if_and_only_if_told_so() {
    let ground = CountingServer::new(BackendKind::Sqlite).await;
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = temp_dir();
    let (certificate, key) = (
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let tls = Tls::read(&certificate, &key).unwrap();
    let (address, serving) = ground.serve(Some(tls)).await;
    let address = format!("https://localhost:{}", address.port());

    let trusting = ClientOptions {
        ca_pem: Some(certified.cert.pem().into_bytes()),
        ..ClientOptions::default()
    };
    let client = Client::with(&address, &ground.admin, trusting).unwrap();
    assert_eq!(client.key_me().await.unwrap().name, "admin");

    let wary = ClientOptions {
        tries: 1,
        ..ClientOptions::default()
    };
    let client = Client::with(&address, &ground.admin, wary).unwrap();
    let refused = client.key_me().await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Unreachable(_)),
        "{refused:?}"
    );
    ground.stop.cancel();
    serving.await.unwrap();
}
