//! Finding things: workspaces and definitions by name, requests and executions by id alone.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_store::fresh_id;
use leasehold_testbed::{BackendKind, TestServer, create_definition};
use serde_json::{Value, json};
use uuid::Uuid;

/// Names that no workspace and no definition can have.
fn impossible() -> Vec<String> {
    let long = "x".repeat(5_000);
    ["", "%20", "a%00b", "%0A", &long].map(str::to_owned).into()
}

async fn names_are_found(on: BackendKind) {
    let ground = TestServer::on(on).await;
    let body = json!({"name": "größer & more?", "plan": "PRO"});
    let made = ground.post("/v1/workspaces", &ground.admin, body).await;
    let made = made.expect(201);
    ground.workspace(1).await;
    let find = async |name: &str| {
        let path = format!("/v1/workspaces?name={name}");
        ground.get(&path, &ground.admin).await.expect(200)
    };
    let found = find("gr%C3%B6%C3%9Fer%20%26%20more%3F").await;
    assert_eq!(found, json!({"items": [made]}));
    for name in impossible()
        .iter()
        .map(String::as_str)
        .chain(["gr", "nobody"])
    {
        assert_eq!(find(name).await, json!({"items": []}), "{name}");
    }
    let path = format!("/v1/workspaces/{}", made["id"].as_str().unwrap());
    let deleted = ground.call(Method::DELETE, &path, &ground.admin, Value::Null);
    assert_eq!(deleted.await.status, 204);
    let gone = find("gr%C3%B6%C3%9Fer%20%26%20more%3F").await;
    assert_eq!(gone, json!({"items": []}));
}

async fn definitions_are_found(on: BackendKind) {
    let ground = TestServer::on(on).await;
    let (site, other) = (ground.workspace(1).await, ground.workspace(1).await);
    create_definition(&*ground.store, other.workspace, "parcel").await;
    let find = async |name: &str, key: &str| {
        let path = site.path(&format!("/definitions?name={name}"));
        ground.get(&path, key).await.expect(200)
    };
    for key in [&site.key, &ground.admin] {
        let found = find("order", key).await;
        assert_eq!(found["items"].as_array().unwrap().len(), 1);
        assert_eq!(found["items"][0]["id"], site.definition.to_string());
        assert!(found["items"][0]["current_version"].is_string());
        assert_eq!(found["next"], Value::Null);
    }
    for name in impossible()
        .iter()
        .map(String::as_str)
        .chain(["parcel", "Order"])
    {
        assert_eq!(find(name, &site.key).await, json!({"items": []}), "{name}");
    }
    let nowhere: Uuid = fresh_id();
    let path = format!("/v1/workspaces/{nowhere}/definitions?name=order");
    ground
        .get(&path, &ground.admin)
        .await
        .refused("not_found", "");
}

async fn ids_are_found(on: BackendKind) {
    let ground = TestServer::on(on).await;
    let site = ground.workspace(2).await;
    let running = ground.running(&site).await;
    for (below, id) in [
        ("requests", running.id.to_string()),
        ("executions", running.execution.to_string()),
    ] {
        let own = site.path(&format!("/{below}/{id}"));
        let own = ground.get(&own, &site.key).await.expect(200);
        let found = format!("/v1/{below}/{id}");
        let found = ground.get(&found, &ground.admin).await.expect(200);
        assert_eq!(found, own);
        let stranger: Uuid = fresh_id();
        let nothing = format!("/v1/{below}/{stranger}");
        let nothing = ground.get(&nothing, &ground.admin).await;
        nothing.refused("not_found", "");
    }
    ground
        .finish(running.execution, ExecutionEnd::Completed)
        .await;
    let path = format!("/v1/requests/{}", running.id);
    let ended = ground.get(&path, &ground.admin).await.expect(200);
    assert_eq!(ended["status"], "COMPLETED");
    assert_eq!(ended["workspace"], site.workspace.to_string());
}

#[tokio::test]
async fn things_are_found_on_sqlite() {
    names_are_found(BackendKind::Sqlite).await;
    definitions_are_found(BackendKind::Sqlite).await;
    ids_are_found(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn things_are_found_on_postgres() {
    names_are_found(BackendKind::Postgres).await;
    definitions_are_found(BackendKind::Postgres).await;
    ids_are_found(BackendKind::Postgres).await;
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_named() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let id: Uuid = fresh_id();
    for path in ["/v1/workspaces".to_owned(), site.path("/definitions")] {
        for (query, parameter) in [
            (format!("name=a&after={id}"), "after"),
            ("name=a&limit=0".to_owned(), "limit"),
            ("name=a&name=b".to_owned(), "query"),
        ] {
            let path = format!("{path}?{query}");
            let answer = ground.get(&path, &ground.admin).await;
            answer.refused("invalid_parameter", parameter);
        }
    }
    for (path, parameter) in [
        ("/v1/requests/x", "request"),
        ("/v1/executions/1", "execution"),
    ] {
        let answer = ground.get(path, &ground.admin).await;
        answer.refused("invalid_parameter", parameter);
    }
}
