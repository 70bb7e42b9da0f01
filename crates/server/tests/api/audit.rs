//! The audit log over HTTP: who changed what, seen by administrators and by the workspace concerned.

use axum::http::Method;
use leasehold_testbed::{BackendKind, TestServer};
use serde_json::{Value, json};

async fn changes_are_listed_with_their_key(on: BackendKind) {
    let server = TestServer::on(on).await;
    let (own, other) = (server.workspace(1).await, server.workspace(1).await);
    let me = server.get("/v1/me", &own.key).await.expect(200);
    let admin = server.get("/v1/me", &server.admin).await.expect(200);
    let definitions = own.path("/definitions");
    let new = json!({ "name": "by the tenant" });
    server.post(&definitions, &own.key, new).await.expect(201);
    let change = json!({ "paused": true });
    for workspace in [&own, &other] {
        let path = workspace.path("");
        let changed = server.call(Method::PATCH, &path, &server.admin, change.clone());
        changed.await.expect(200);
    }
    let list = async |query: &str, key: &str| -> Vec<Value> {
        let page = server
            .get(&format!("/v1/audit{query}"), key)
            .await
            .expect(200);
        page["items"].as_array().unwrap().clone()
    };
    let mine = list("", &own.key).await;
    assert_eq!(mine[0]["action"], "workspace_update");
    assert_eq!(mine[0]["actor"], "admin");
    assert_eq!(mine[0]["key"], admin["id"]);
    assert_eq!(mine[1]["action"], "definition_create");
    assert_eq!(mine[1]["key"], me["id"]);
    assert_eq!(mine[1]["details"], json!({ "name": "by the tenant" }));
    let id = own.workspace.to_string();
    assert!(mine.iter().all(|entry| entry["workspace"] == id.as_str()));
    // The testbed made the first entries without a key.
    let first = mine.last().unwrap();
    assert_eq!((&first["actor"], first.get("key")), (&json!("local"), None));
    let all = list("?limit=1000", &server.admin).await;
    let both = |entry: &&Value| entry["action"] == "workspace_update";
    assert_eq!(all.iter().filter(both).count(), 2);
    let by_me = format!(
        "?key={}&action=definition_create",
        me["id"].as_str().unwrap()
    );
    assert_eq!(list(&by_me, &server.admin).await, [mine[1].clone()]);
    let of_own = format!("?workspace={id}&limit=1000");
    assert_eq!(list(&of_own, &server.admin).await, mine);
    let pages = server.all_pages("/v1/audit", &own.key, 2).await;
    assert_eq!(pages, mine);
    let foreign = format!("/v1/audit?workspace={}", other.workspace);
    let foreign = server.get(&foreign, &own.key).await;
    assert_eq!(foreign.status, 404);
}

#[tokio::test]
async fn changes_are_listed_with_their_key_on_sqlite() {
    changes_are_listed_with_their_key(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn changes_are_listed_with_their_key_on_postgres() {
    changes_are_listed_with_their_key(BackendKind::Postgres).await;
}

#[tokio::test]
async fn audit_entries_of_keys_contain_no_secret() {
    let server = TestServer::new().await;
    let new = json!({ "name": "n", "scope": { "kind": "metrics" } });
    let created = server
        .post("/v1/keys", &server.admin, new)
        .await
        .expect(201);
    let path = format!("/v1/keys/{}", created["key"]["id"].as_str().unwrap());
    let rotate = format!("{path}/rotate");
    let rotated = server.post(&rotate, &server.admin, json!({})).await;
    let rotated = rotated.expect(201);
    let deleted = server.call(Method::DELETE, &path, &server.admin, Value::Null);
    deleted.await.expect(200);
    let listed = server.get("/v1/audit", &server.admin).await;
    for secret in [&created["secret"], &rotated["secret"]] {
        let random = &secret.as_str().unwrap()["lh_metrics_".len()..];
        assert!(!listed.text.contains(random));
    }
    let actions = listed.expect(200);
    let actions = actions["items"].as_array().unwrap().iter();
    let actions: Vec<&str> = actions.map(|e| e["action"].as_str().unwrap()).collect();
    assert_eq!(actions[..3], ["key_revoke", "key_rotate", "key_create"]);
}
