//! Rights, expiry, last use and rotation of keys over HTTP.

use crate::sse::{Stream, TIMEOUT, serve};
use axum::http::Method;
use leasehold_core::key::{KeyAccess, KeyRights, KeyScope, Payloads};
use leasehold_ops::key::KeySpec;
use leasehold_server::ServerOptions;
use leasehold_store::ManualClock;
use leasehold_testbed::{BackendKind, BackendOptions, ServerSetup, TestBackend, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// A server whose store has a manual clock.
async fn server_with_clock(on: BackendKind) -> (TestServer, ManualClock) {
    let clock = ManualClock::starting_at("2026-03-01T12:00:00Z".parse().unwrap());
    let options = BackendOptions::default().clock(clock.clone());
    let backend = TestBackend::with(on, options).await;
    let server = TestServer::over(backend, ServerSetup::default()).await;
    (server, clock)
}

fn for_an_hour(scope: KeyScope) -> KeySpec {
    KeySpec {
        expires_in: Some(HOUR),
        ..KeySpec::full("test", scope)
    }
}

#[tokio::test]
async fn read_only_key_is_told_so() {
    let server = TestServer::new().await;
    let spec = KeySpec {
        rights: KeyRights {
            access: KeyAccess::Read,
            ..KeyRights::full(KeyScope::Admin)
        },
        ..KeySpec::full("test", KeyScope::Admin)
    };
    let key = server.key_with(&spec).await;
    server.get("/v1/workspaces", &key).await.expect(200);
    let refused = server
        .post(
            "/v1/workspaces",
            &key,
            json!({ "name": "n", "plan": "FREE" }),
        )
        .await;
    assert_eq!(refused.status, 403);
    let problem = refused.expect_problem("read_only_key", "");
    assert!(problem["detail"].as_str().unwrap().contains("read-only"));
}

/// The cached key, an open stream and a waiting claim end soon after the key expired, and the holder is told why.
async fn expired_key_is_rejected(on: BackendKind) {
    let (server, clock) = server_with_clock(on).await;
    let workspace = server.workspace(1).await;
    let scope = KeyScope::Workspace(workspace.workspace);
    let key = server.key_with(&for_an_hour(scope)).await;
    let worker = KeyScope::Worker {
        queues: vec!["mine".to_owned()],
    };
    let worker = server.key_with(&for_an_hour(worker)).await;
    let me = server.get("/v1/me", &key).await.expect(200);
    assert!(me["expires_at"].is_string());
    let url = format!("{}{}", serve(&server).await, workspace.path("/changes"));
    let mut stream = Stream::open(&url, &key, None).await;
    assert_eq!(stream.next().await.unwrap().event, "ready");
    let wait = json!({ "worker": "w", "wait_ms": 60_000 });
    let claim = server.post("/v1/queues/mine/claim", &worker, wait);
    let expire = async {
        let waits = async || server.state.waiting_claims() == 1;
        assert!(eventually(TIMEOUT, waits).await);
        clock.advance(HOUR);
    };
    let claim = async { tokio::join!(claim, expire).0 };
    let claim = tokio::time::timeout(TIMEOUT, claim).await;
    assert_eq!(claim.expect("the claim ended").status, 401);
    let rejected = async || server.get("/v1/me", &key).await.status == 401;
    assert!(eventually(TIMEOUT, rejected).await);
    assert_eq!(stream.next().await.unwrap().comment, "the key expired");
    assert_eq!(stream.next().await, None);
    let told = server.get("/v1/me", &key).await;
    let told = told.expect_problem("unauthenticated", "");
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("expired at"), "{detail}");
    let listed = server
        .get("/v1/keys?limit=1000", &server.admin)
        .await
        .expect(200);
    let listed = listed["items"].as_array().unwrap();
    let expired = listed.iter().filter(|key| key["expired"] == true);
    assert_eq!(expired.count(), 2);
}

#[tokio::test]
async fn expired_key_is_rejected_on_sqlite() {
    expired_key_is_rejected(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn expired_key_is_rejected_on_postgres() {
    expired_key_is_rejected(BackendKind::Postgres).await;
}

async fn rotated_key_works_for_the_overlap(on: BackendKind) {
    let (server, clock) = server_with_clock(on).await;
    let old = server.key(KeyScope::Metrics).await;
    let listed = server
        .get("/v1/keys?limit=1000", &server.admin)
        .await
        .expect(200);
    let listed = listed["items"].as_array().unwrap();
    let key = listed.iter().find(|key| key["scope"]["kind"] == "metrics");
    let path = format!("/v1/keys/{}/rotate", key.unwrap()["id"].as_str().unwrap());
    assert_eq!(server.get("/metrics", &old).await.status, 200);
    let options = json!({ "overlap_ms": 3_600_000 });
    let rotated = server
        .post(&path, &server.admin, options.clone())
        .await
        .expect(201);
    let new = rotated["secret"].as_str().unwrap();
    assert_eq!(rotated["key"]["scope"]["kind"], "metrics");
    assert_eq!(rotated["old"]["successor"], rotated["key"]["id"]);
    for key in [&old, new] {
        assert_eq!(server.get("/metrics", key).await.status, 200);
    }
    let again = server.post(&path, &server.admin, options.clone()).await;
    let again = again.expect_problem("rotation_refused", "");
    let successor = rotated["key"]["id"].as_str().unwrap();
    assert!(again["detail"].as_str().unwrap().contains(successor));
    clock.advance(HOUR);
    let ended = async || server.get("/metrics", &old).await.status == 401;
    assert!(eventually(TIMEOUT, ended).await);
    assert_eq!(server.get("/metrics", new).await.status, 200);
}

#[tokio::test]
async fn rotated_key_works_for_the_overlap_on_sqlite() {
    rotated_key_works_for_the_overlap(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn rotated_key_works_for_the_overlap_on_postgres() {
    rotated_key_works_for_the_overlap(BackendKind::Postgres).await;
}

#[tokio::test]
async fn key_creates_no_key_with_more_rights() {
    let server = TestServer::new().await;
    let hidden = KeyRights {
        payloads: Payloads::Hidden,
        ..KeyRights::full(KeyScope::Admin)
    };
    let spec = KeySpec {
        rights: hidden,
        ..KeySpec::full("test", KeyScope::Admin)
    };
    let key = server.key_with(&spec).await;
    let scope = json!({ "kind": "admin" });
    let new = |payloads: &str| json!({ "name": "n", "scope": scope, "payloads": payloads });
    let refused = server.post("/v1/keys", &key, new("shown")).await;
    assert_eq!(refused.status, 403);
    refused.expect_problem("forbidden", "");
    server
        .post("/v1/keys", &key, new("hidden"))
        .await
        .expect(201);
    // Rotating another key would give its rights away.
    let admin = server.get("/v1/me", &server.admin).await.expect(200);
    let path = format!("/v1/keys/{}/rotate", admin["id"].as_str().unwrap());
    assert_eq!(server.post(&path, &key, json!({})).await.status, 403);
}

#[tokio::test]
async fn key_revokes_no_key_with_more_rights() {
    let server = TestServer::new().await;
    let rights = |payloads| KeyRights {
        payloads,
        ..KeyRights::full(KeyScope::Admin)
    };
    let id = async |key: &str| {
        let me = server.get("/v1/me", key).await.expect(200);
        me["id"].as_str().unwrap().to_owned()
    };
    let spec = |payloads| KeySpec {
        rights: rights(payloads),
        ..KeySpec::full("test", KeyScope::Admin)
    };
    let hidden = server.key_with(&spec(Payloads::Hidden)).await;
    let shown = server.key_with(&spec(Payloads::Shown)).await;
    for query in ["", "?force=true"] {
        let path = format!("/v1/keys/{}{query}", id(&shown).await);
        let refused = server
            .call(Method::DELETE, &path, &hidden, Value::Null)
            .await;
        assert_eq!(refused.status, 403);
        refused.expect_problem("forbidden", "");
    }
    // Its own rights are enough for itself.
    let path = format!("/v1/keys/{}", id(&hidden).await);
    let revoked = server.call(Method::DELETE, &path, &hidden, Value::Null);
    revoked.await.expect(200);
    server.get("/v1/me", &shown).await.expect(200);
}

/// The last use is recorded once per interval, not once per call, and not by rejected calls.
async fn last_use_is_recorded_once_per_interval(on: BackendKind) {
    let server = TestServer::on_with_options(
        on,
        ServerOptions {
            key_use_interval: Duration::from_secs(3_600),
            ..ServerOptions::default()
        },
    )
    .await;
    let path = "/v1/keys?limit=1000";
    let last_used = async || {
        let me = server.get("/v1/me", &server.admin).await.expect(200);
        let id = me["id"].as_str().unwrap();
        let key = server.store.key_get(id.parse().unwrap()).await.unwrap();
        key.unwrap().last_used_at
    };
    let recorded = async || last_used().await.is_some();
    assert!(eventually(TIMEOUT, recorded).await);
    let first = last_used().await;
    for _ in 0..50 {
        server.get(path, &server.admin).await.expect(200);
    }
    assert_eq!(last_used().await, first);
}

#[tokio::test]
async fn last_use_is_recorded_once_per_interval_on_sqlite() {
    last_use_is_recorded_once_per_interval(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn last_use_is_recorded_once_per_interval_on_postgres() {
    last_use_is_recorded_once_per_interval(BackendKind::Postgres).await;
}
