//! Finds workspaces and definitions by name, requests and executions by id alone.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_store::fresh_id;
use leasehold_testbed::{BackendKind, TestServer, create_definition};
use serde_json::{Value, json};
use uuid::Uuid;

/// Names that are invalid for workspaces and definitions.
fn invalid_names() -> Vec<String> {
    let long = "x".repeat(5_000);
    ["", "%20", "a%00b", "%0A", &long].map(str::to_owned).into()
}

async fn workspaces_are_found_by_name(on: BackendKind) {
    let server = TestServer::on(on).await;
    let body = json!({"name": "größer & more?", "plan": "PRO"});
    let made = server.post("/v1/workspaces", &server.admin, body).await;
    let made = made.expect(201);
    server.workspace(1).await;
    let find = async |name: &str| {
        let path = format!("/v1/workspaces?name={name}");
        server.get(&path, &server.admin).await.expect(200)
    };
    let found = find("gr%C3%B6%C3%9Fer%20%26%20more%3F").await;
    assert_eq!(found, json!({"items": [made]}));
    for name in invalid_names()
        .iter()
        .map(String::as_str)
        .chain(["gr", "nobody"])
    {
        assert_eq!(find(name).await, json!({"items": []}), "{name}");
    }
    let path = format!("/v1/workspaces/{}", made["id"].as_str().unwrap());
    let deleted = server.call(Method::DELETE, &path, &server.admin, Value::Null);
    assert_eq!(deleted.await.status, 204);
    let gone = find("gr%C3%B6%C3%9Fer%20%26%20more%3F").await;
    assert_eq!(gone, json!({"items": []}));
}

async fn definitions_are_found_by_name(on: BackendKind) {
    let server = TestServer::on(on).await;
    let (workspace, other) = (server.workspace(1).await, server.workspace(1).await);
    create_definition(&*server.store, other.workspace, "parcel").await;
    let find = async |name: &str, key: &str| {
        let path = workspace.path(&format!("/definitions?name={name}"));
        server.get(&path, key).await.expect(200)
    };
    for key in [&workspace.key, &server.admin] {
        let found = find("order", key).await;
        assert_eq!(found["items"].as_array().unwrap().len(), 1);
        assert_eq!(found["items"][0]["id"], workspace.definition.to_string());
        assert!(found["items"][0]["current_version"].is_string());
        assert_eq!(found["next"], Value::Null);
    }
    for name in invalid_names()
        .iter()
        .map(String::as_str)
        .chain(["parcel", "Order"])
    {
        assert_eq!(
            find(name, &workspace.key).await,
            json!({"items": []}),
            "{name}"
        );
    }
    let nowhere: Uuid = fresh_id();
    let path = format!("/v1/workspaces/{nowhere}/definitions?name=order");
    server
        .get(&path, &server.admin)
        .await
        .expect_problem("not_found", "");
}

async fn requests_and_executions_are_found_by_id(on: BackendKind) {
    let server = TestServer::on(on).await;
    let workspace = server.workspace(2).await;
    let running = server.enqueue_running(&workspace).await;
    for (below, id) in [
        ("requests", running.id.to_string()),
        ("executions", running.execution.to_string()),
    ] {
        let own = workspace.path(&format!("/{below}/{id}"));
        let own = server.get(&own, &workspace.key).await.expect(200);
        let found = format!("/v1/{below}/{id}");
        let found = server.get(&found, &server.admin).await.expect(200);
        assert_eq!(found, own);
        let unknown_id: Uuid = fresh_id();
        let nothing = format!("/v1/{below}/{unknown_id}");
        let nothing = server.get(&nothing, &server.admin).await;
        nothing.expect_problem("not_found", "");
    }
    server
        .finish(running.execution, ExecutionEnd::Completed)
        .await;
    let path = format!("/v1/requests/{}", running.id);
    let ended = server.get(&path, &server.admin).await.expect(200);
    assert_eq!(ended["status"], "COMPLETED");
    assert_eq!(ended["workspace"], workspace.workspace.to_string());
}

#[tokio::test]
async fn objects_are_found_by_name_and_id_on_sqlite() {
    workspaces_are_found_by_name(BackendKind::Sqlite).await;
    definitions_are_found_by_name(BackendKind::Sqlite).await;
    requests_and_executions_are_found_by_id(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn objects_are_found_by_name_and_id_on_postgres() {
    workspaces_are_found_by_name(BackendKind::Postgres).await;
    definitions_are_found_by_name(BackendKind::Postgres).await;
    requests_and_executions_are_found_by_id(BackendKind::Postgres).await;
}

#[tokio::test]
async fn invalid_filters_are_named() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let id: Uuid = fresh_id();
    for path in ["/v1/workspaces".to_owned(), workspace.path("/definitions")] {
        for (query, parameter) in [
            (format!("name=a&after={id}"), "after"),
            ("name=a&limit=0".to_owned(), "limit"),
            ("name=a&name=b".to_owned(), "query"),
        ] {
            let path = format!("{path}?{query}");
            let answer = server.get(&path, &server.admin).await;
            answer.expect_problem("invalid_parameter", parameter);
        }
    }
    for (path, parameter) in [
        ("/v1/requests/x", "request"),
        ("/v1/executions/1", "execution"),
    ] {
        let answer = server.get(path, &server.admin).await;
        answer.expect_problem("invalid_parameter", parameter);
    }
}
