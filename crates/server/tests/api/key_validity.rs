//! Keys that must open nothing: those of a deleted workspace. And the key that must stay: the last administrator's.

use crate::sse::{Stream, TIMEOUT, serve};
use axum::http::Method;
use leasehold_ops as ops;
use leasehold_store::Actor;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};

/// The statuses of calls with the key: who am I, read, list, enqueue, publish.
async fn statuses(server: &TestServer, workspace: &KeyedWorkspace) -> Vec<u16> {
    let key = &workspace.key;
    let versions = format!("/definitions/{}/versions", workspace.definition);
    let graph = json!({"nodes": [{"id": "a", "type": "delay", "milliseconds": 1}]});
    let version = json!({ "body": { "graph": graph } });
    vec![
        server.get("/v1/me", key).await.status,
        server.get(&workspace.path(""), key).await.status,
        server.get(&workspace.path("/requests"), key).await.status,
        server
            .post(&workspace.path("/requests"), key, workspace.order())
            .await
            .status,
        server
            .post(&workspace.path(&versions), key, version)
            .await
            .status,
    ]
}

async fn key_of_a_deleted_workspace_is_rejected(on: BackendKind) {
    let server = TestServer::on(on).await;
    let (deleted, other) = (server.workspace(1).await, server.workspace(1).await);
    let open = [200, 200, 200, 201, 201];
    assert_eq!(statuses(&server, &deleted).await, open);
    server
        .call(
            Method::DELETE,
            &deleted.path(""),
            &server.admin,
            Value::Null,
        )
        .await
        .expect(204);
    // At once, although the key was cached.
    assert_eq!(statuses(&server, &deleted).await, [401; 5]);
    let refused = server.get("/v1/me", &deleted.key).await;
    let unknown = server.get("/v1/me", "lh_workspace_x").await;
    assert_eq!(refused.text, unknown.text);
    assert_eq!(statuses(&server, &other).await, open);
}

#[tokio::test]
async fn key_of_a_deleted_workspace_is_rejected_on_sqlite() {
    key_of_a_deleted_workspace_is_rejected(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn key_of_a_deleted_workspace_is_rejected_on_postgres() {
    key_of_a_deleted_workspace_is_rejected(BackendKind::Postgres).await;
}

/// Another instance deletes the workspace: this one has cached the key, and a stream is open.
async fn cached_key_and_open_stream_end_soon(on: BackendKind) {
    let server = TestServer::on(on).await;
    let workspace = server.workspace(1).await;
    assert_eq!(server.get("/v1/me", &workspace.key).await.status, 200);
    let url = format!("{}{}", serve(&server).await, workspace.path("/changes"));
    let mut stream = Stream::open(&url, &workspace.key, None).await;
    assert_eq!(stream.next().await.unwrap().event, "ready");
    ops::workspace::delete(&*server.store, workspace.workspace, &Actor::Local)
        .await
        .unwrap();
    let rejected = async || server.get("/v1/me", &workspace.key).await.status == 401;
    assert!(eventually(TIMEOUT, rejected).await);
    let last = stream.next().await.unwrap();
    assert_eq!(last.comment, "the workspace was deleted");
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn cached_key_and_open_stream_end_soon_on_sqlite() {
    cached_key_and_open_stream_end_soon(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn cached_key_and_open_stream_end_soon_on_postgres() {
    cached_key_and_open_stream_end_soon(BackendKind::Postgres).await;
}

async fn last_administrator_key_needs_force(on: BackendKind) {
    let server = TestServer::on(on).await;
    let key = async |secret: &str| {
        let me = server.get("/v1/me", secret).await.expect(200);
        format!("/v1/keys/{}", me["id"].as_str().unwrap())
    };
    let delete = async |path: &str| {
        let admin = &server.admin;
        server.call(Method::DELETE, path, admin, Value::Null).await
    };
    let own = key(&server.admin).await;
    let refused = delete(&own).await;
    assert_eq!(refused.status, 409);
    refused.expect_problem("last_admin_key", "");
    assert_eq!(server.get("/v1/me", &server.admin).await.status, 200);
    // Another administrator key makes both revocable, but not both of them.
    let spare = server.key(leasehold_core::key::KeyScope::Admin).await;
    delete(&key(&spare).await).await.expect(200);
    assert_eq!(delete(&own).await.status, 409);
    let forced = delete(&format!("{own}?force=true")).await;
    assert!(forced.expect(200)["revoked_at"].is_string());
    assert_eq!(server.get("/v1/me", &server.admin).await.status, 401);
}

#[tokio::test]
async fn last_administrator_key_needs_force_on_sqlite() {
    last_administrator_key_needs_force(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn last_administrator_key_needs_force_on_postgres() {
    last_administrator_key_needs_force(BackendKind::Postgres).await;
}
