//! Deny rules: they override allow rules, in every form of an address, for DNS answers and for redirects.

use super::http_server::{TestHttpServer, answer};
use super::{SOON, get, guard_with};
use std::net::IpAddr;

/// Every name resolves to these addresses.
fn resolve_to(addresses: &'static [&'static str]) -> impl Fn(&str) -> Vec<IpAddr> + Send + Sync {
    move |_| addresses.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test]
async fn denied_public_network_is_blocked_in_every_form() {
    let outbound = guard_with(&[], &["198.41.0.0/16", "2a00:1450::/32"], |_| Vec::new());
    for host in [
        "198.41.0.4",
        "3324575748",
        "0xc6290004",
        "[::ffff:198.41.0.4]",
        "[64:ff9b::198.41.0.4]",
        "[2a00:1450:4001::1]",
    ] {
        let url = format!("http://{host}/");
        let error = outbound.call(&get(&url), SOON).await.expect_err(&url);
        assert!(error.message.contains("http_nodes.deny"), "{url}: {error}");
        assert!(!error.is_retryable, "{url}");
    }
}

#[tokio::test]
async fn deny_overrides_allow() {
    let server = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "")).await;
    let port = server.address.port();
    let loopback = resolve_to(&["127.0.0.1"]);
    let outbound = guard_with(
        &["127.0.0.0/8", "*.internal.test"],
        &["127.0.0.1", "secret.internal.test"],
        loopback,
    );
    for host in ["127.0.0.1", "db.internal.test", "secret.internal.test."] {
        let url = format!("http://{host}:{port}/");
        let error = outbound.call(&get(&url), SOON).await.expect_err(&url);
        assert!(error.message.contains("http_nodes.deny"), "{url}: {error}");
    }
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

#[tokio::test]
async fn denied_addresses_are_removed_from_dns_answers() {
    let server = TestHttpServer::on("127.0.0.1", |_| answer("200 OK", &[], "")).await;
    let url = format!("http://mixed.test:{}/", server.address.port());
    let mixed = resolve_to(&["127.0.0.2", "127.0.0.1"]);
    let outbound = guard_with(&["127.0.0.0/8"], &["127.0.0.2"], mixed);
    outbound.call(&get(&url), SOON).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn redirect_to_a_denied_target_is_blocked() {
    let inner = TestHttpServer::on("127.0.0.2", |_| answer("200 OK", &[], "reached")).await;
    let port = inner.address.port();
    let server = TestHttpServer::on("127.0.0.1", move |path| {
        let location = format!("http://{}:{port}/", path.trim_start_matches('/'));
        answer("307 Temporary Redirect", &[("location", &location)], "")
    })
    .await;
    let denied = resolve_to(&["127.0.0.2"]);
    let outbound = guard_with(&["127.0.0.0/8"], &["127.0.0.2", "corp.test"], denied);
    for host in ["127.0.0.2", "any.test", "corp.test"] {
        let error = outbound
            .call(&get(server.url(&format!("/{host}"))), SOON)
            .await
            .expect_err(host);
        assert!(error.message.contains("http_nodes.deny"), "{host}: {error}");
    }
    assert!(inner.requests().is_empty(), "{:?}", inner.requests());
}
