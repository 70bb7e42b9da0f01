//! Definitions and versions: create, publish, show, list, delete; invalid ones are rejected with the path.

use axum::http::Method;
use leasehold_store::fresh_id;
use leasehold_testbed::{KeyedWorkspace, TestServer, create_definition};
use serde_json::{Value, json};
use uuid::Uuid;

fn binding() -> Value {
    json!({"body": {"binding": {"workflow_type": "Order", "task_queue": "orders"}}})
}

fn graph(nodes: Value, edges: Value) -> Value {
    json!({"body": {"graph": {"nodes": nodes, "edges": edges}}})
}

fn delay(id: &str) -> Value {
    json!({"type": "delay", "id": id, "milliseconds": 1})
}

async fn create(server: &TestServer, workspace: &KeyedWorkspace, name: &str) -> String {
    let path = workspace.path("/definitions");
    let made = server
        .post(&path, &workspace.key, json!({"name": name}))
        .await
        .expect(201);
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn definition_is_created_shown_and_deleted() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let id = create(&server, &workspace, "bill").await;
    let path = workspace.path(&format!("/definitions/{id}"));
    let shown = server.get(&path, &workspace.key).await.expect(200);
    assert_eq!(shown["name"], "bill");
    assert_eq!(shown["workspace"], workspace.workspace.to_string());
    assert_eq!(shown["current_version"], Value::Null);
    let deleted = server
        .call(Method::DELETE, &path, &workspace.key, Value::Null)
        .await;
    assert_eq!((deleted.status, deleted.text.as_str()), (204, ""));
    server
        .get(&path, &workspace.key)
        .await
        .expect_problem("not_found", "");
    let again = server
        .call(Method::DELETE, &path, &workspace.key, Value::Null)
        .await;
    again.expect_problem("not_found", "");
}

#[tokio::test]
async fn invalid_definition_is_rejected_with_the_reason() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let path = workspace.path("/definitions");
    let post = async |body| server.post(&path, &workspace.key, body).await;
    post(json!({"name": "order"}))
        .await
        .expect_problem("name_taken", "");
    post(json!({"name": " "}))
        .await
        .expect_problem("invalid", "/name");
    post(json!({"name": "a".repeat(201)}))
        .await
        .expect_problem("invalid", "/name");
    post(json!({"name": "a\u{0}"}))
        .await
        .expect_problem("invalid", "/name");
    post(json!({"name": 1}))
        .await
        .expect_problem("invalid", "/name");
    post(json!({})).await.expect_problem("invalid", "");
    post(json!({"name": "a", "more": 1}))
        .await
        .expect_problem("invalid", "/more");
    let nowhere = format!("/v1/workspaces/{}/definitions", Uuid::nil());
    let answer = server
        .post(&nowhere, &server.admin, json!({"name": "a"}))
        .await;
    answer.expect_problem("not_found", "");
}

#[tokio::test]
async fn definitions_and_versions_are_listed_in_pages_without_gaps() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let mut made = vec![workspace.definition.to_string()];
    for n in 0..6 {
        made.push(create(&server, &workspace, &format!("definition {n}")).await);
    }
    made.sort();
    let path = workspace.path("/definitions");
    for limit in [1, 3, 7, 100] {
        let listed = server.all_pages(&path, &workspace.key, limit).await;
        let ids: Vec<&str> = listed.iter().map(|d| d["id"].as_str().unwrap()).collect();
        assert_eq!(ids, made, "{limit}");
    }
    let path = workspace.path(&format!("/definitions/{}/versions", workspace.definition));
    for _ in 0..4 {
        server
            .post(&path, &workspace.key, binding())
            .await
            .expect(201);
    }
    for limit in [1, 2, 5, 100] {
        let listed = server.all_pages(&path, &workspace.key, limit).await;
        let numbers: Vec<u64> = listed
            .iter()
            .map(|v| v["number"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5], "{limit}");
    }
}

#[tokio::test]
async fn list_of_unknown_workspace_is_not_found_and_invalid_page_is_named() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let nowhere = format!("/v1/workspaces/{}", Uuid::nil());
    let unknown_id: Uuid = fresh_id();
    for path in [
        format!("{nowhere}/definitions"),
        workspace.path(&format!("/definitions/{unknown_id}/versions")),
        workspace.path(&format!("/definitions/{unknown_id}")),
        workspace.path(&format!("/versions/{unknown_id}")),
    ] {
        server
            .get(&path, &server.admin)
            .await
            .expect_problem("not_found", "");
    }
    let draft = create_definition(&*server.store, workspace.workspace, "draft").await;
    let none = workspace.path(&format!("/definitions/{draft}/versions"));
    assert_eq!(
        server.get(&none, &workspace.key).await.expect(200)["items"],
        json!([])
    );
    let list = workspace.path("/definitions");
    for (query, name) in [
        ("?limit=0", "limit"),
        ("?limit=1001", "limit"),
        ("?after=x", "after"),
        ("?limit=x", "query"),
        ("?sort=name", "query"),
    ] {
        let answer = server.get(&format!("{list}{query}"), &workspace.key).await;
        answer.expect_problem("invalid_parameter", name);
    }
    let strange = server
        .get(&workspace.path("/definitions/x"), &workspace.key)
        .await;
    strange.expect_problem("invalid_parameter", "definition");
}

#[tokio::test]
async fn version_is_returned_as_published() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let id = create(&server, &workspace, "bill").await;
    let path = workspace.path(&format!("/definitions/{id}/versions"));
    let mut new = graph(
        json!([delay("a"), delay("b")]),
        json!([{"from": "a", "to": "b"}]),
    );
    new["params_schema"] = json!({"type": "object"});
    new["execution_timeout_ms"] = json!(90_000);
    let made = server
        .post(&path, &workspace.key, new.clone())
        .await
        .expect(201);
    assert_eq!(made["number"], 1);
    assert_eq!(made["definition"], id);
    for field in ["body", "params_schema", "execution_timeout_ms"] {
        assert_eq!(made[field], new[field], "{field}");
    }
    let one = workspace.path(&format!("/versions/{}", made["id"].as_str().unwrap()));
    assert_eq!(server.get(&one, &workspace.key).await.expect(200), made);
    let definition = workspace.path(&format!("/definitions/{id}"));
    let shown = server.get(&definition, &workspace.key).await.expect(200);
    assert_eq!(shown["current_version"], made["id"]);
    server
        .call(Method::DELETE, &definition, &workspace.key, Value::Null)
        .await
        .expect(204);
    assert_eq!(server.get(&one, &workspace.key).await.expect(200), made);
    server
        .post(&path, &workspace.key, new)
        .await
        .expect_problem("not_found", "");
}

/// Asserts that each body is rejected with its path and nothing is published.
async fn assert_all_rejected(cases: impl IntoIterator<Item = (Value, &str)>) {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let path = workspace.path(&format!("/definitions/{}/versions", workspace.definition));
    for (new, at) in cases {
        let answer = server.post(&path, &workspace.key, new).await;
        answer.expect_problem("invalid", at);
    }
    let listed = server.all_pages(&path, &workspace.key, 100).await;
    assert_eq!(listed.len(), 1, "nothing was published");
}

#[tokio::test]
async fn invalid_graph_is_rejected_with_its_path() {
    let two = |edges: Value| graph(json!([delay("a"), delay("b")]), edges);
    let edge = |from: &str, to: &str| json!({"from": from, "to": to});
    let url = format!("http://{}", "u".repeat(8_000));
    let http = |n: usize| json!({"type": "http", "id": n.to_string(), "url": url});
    let large = (0..200).map(http).collect();
    let twice = json!([delay("a"), delay("a")]);
    assert_all_rejected([
        (graph(json!([]), json!([])), "/body/graph/nodes"),
        (graph(twice, json!([])), "/body/graph/nodes/1/id"),
        (
            graph(json!([delay("")]), json!([])),
            "/body/graph/nodes/0/id",
        ),
        (
            two(json!([edge("a", "b"), edge("a", "x")])),
            "/body/graph/edges/1/to",
        ),
        (two(json!([edge("x", "b")])), "/body/graph/edges/0/from"),
        (
            two(json!([edge("a", "b"), edge("a", "b")])),
            "/body/graph/edges/1",
        ),
        (
            two(json!([edge("a", "b"), edge("b", "a")])),
            "/body/graph/edges",
        ),
        (graph(large, json!([])), "/body/graph"),
    ])
    .await;
}

#[tokio::test]
async fn invalid_version_is_rejected_with_its_path() {
    let with = |field: &str, value: Value| {
        let mut new = binding();
        new[field] = value;
        new
    };
    let bound = |kind: Value, queue: Value| json!({"body": {"binding": {"workflow_type": kind, "task_queue": queue}}});
    let timeout = |value: Value| with("execution_timeout_ms", value);
    let schema = |value: Value| with("params_schema", value);
    assert_all_rejected([
        (bound(json!(""), json!("a")), "/body/binding/workflow_type"),
        (bound(json!("a"), json!(7)), "/body/binding/task_queue"),
        (json!({"body": {"script": {}}}), "/body/script"),
        (
            schema(json!({"type": "no such type"})),
            "/params_schema/type",
        ),
        (schema(json!({"a": "\u{0}"})), "/params_schema/a"),
        (
            schema(json!({"items": {"pattern": "(a)\\1"}})),
            "/params_schema/items/pattern",
        ),
        (schema(json!({"$ref": "#"})), "/params_schema"),
        (timeout(json!(0)), "/execution_timeout_ms"),
        (timeout(json!(31_622_400_001u64)), "/execution_timeout_ms"),
        (timeout(json!(-1)), "/execution_timeout_ms"),
        (with("strange", json!(1)), "/strange"),
    ])
    .await;
}
