//! Definitions and versions: made, published, shown, listed, deleted, and refused by the path of what is wrong.

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

async fn make(ground: &TestServer, site: &KeyedWorkspace, name: &str) -> String {
    let path = site.path("/definitions");
    let made = ground
        .post(&path, &site.key, json!({"name": name}))
        .await
        .expect(201);
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_definition_is_made_shown_and_deleted() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let id = make(&ground, &site, "bill").await;
    let path = site.path(&format!("/definitions/{id}"));
    let shown = ground.get(&path, &site.key).await.expect(200);
    assert_eq!(shown["name"], "bill");
    assert_eq!(shown["workspace"], site.workspace.to_string());
    assert_eq!(shown["current_version"], Value::Null);
    let deleted = ground
        .call(Method::DELETE, &path, &site.key, Value::Null)
        .await;
    assert_eq!((deleted.status, deleted.text.as_str()), (204, ""));
    ground.get(&path, &site.key).await.refused("not_found", "");
    let again = ground
        .call(Method::DELETE, &path, &site.key, Value::Null)
        .await;
    again.refused("not_found", "");
}

#[tokio::test]
async fn a_definition_that_cannot_be_made_says_why() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let path = site.path("/definitions");
    let post = async |body| ground.post(&path, &site.key, body).await;
    post(json!({"name": "order"}))
        .await
        .refused("name_taken", "");
    post(json!({"name": " "})).await.refused("invalid", "/name");
    post(json!({"name": "a".repeat(201)}))
        .await
        .refused("invalid", "/name");
    post(json!({"name": "a\u{0}"}))
        .await
        .refused("invalid", "/name");
    post(json!({"name": 1})).await.refused("invalid", "/name");
    post(json!({})).await.refused("invalid", "");
    post(json!({"name": "a", "more": 1}))
        .await
        .refused("invalid", "/more");
    let nowhere = format!("/v1/workspaces/{}/definitions", Uuid::nil());
    let answer = ground
        .post(&nowhere, &ground.admin, json!({"name": "a"}))
        .await;
    answer.refused("not_found", "");
}

#[tokio::test]
async fn definitions_and_versions_are_listed_to_the_end_without_gaps() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let mut made = vec![site.definition.to_string()];
    for n in 0..6 {
        made.push(make(&ground, &site, &format!("definition {n}")).await);
    }
    made.sort();
    let path = site.path("/definitions");
    for limit in [1, 3, 7, 100] {
        let listed = ground.all_pages(&path, &site.key, limit).await;
        let ids: Vec<&str> = listed.iter().map(|d| d["id"].as_str().unwrap()).collect();
        assert_eq!(ids, made, "{limit}");
    }
    let path = site.path(&format!("/definitions/{}/versions", site.definition));
    for _ in 0..4 {
        ground.post(&path, &site.key, binding()).await.expect(201);
    }
    for limit in [1, 2, 5, 100] {
        let listed = ground.all_pages(&path, &site.key, limit).await;
        let numbers: Vec<u64> = listed
            .iter()
            .map(|v| v["number"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5], "{limit}");
    }
}

#[tokio::test]
async fn a_list_of_what_is_not_there_is_not_found_and_a_wrong_page_is_named() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let nowhere = format!("/v1/workspaces/{}", Uuid::nil());
    let stranger: Uuid = fresh_id();
    for path in [
        format!("{nowhere}/definitions"),
        site.path(&format!("/definitions/{stranger}/versions")),
        site.path(&format!("/definitions/{stranger}")),
        site.path(&format!("/versions/{stranger}")),
    ] {
        ground
            .get(&path, &ground.admin)
            .await
            .refused("not_found", "");
    }
    let draft = create_definition(&*ground.store, site.workspace, "draft").await;
    let none = site.path(&format!("/definitions/{draft}/versions"));
    assert_eq!(
        ground.get(&none, &site.key).await.expect(200)["items"],
        json!([])
    );
    let list = site.path("/definitions");
    for (query, name) in [
        ("?limit=0", "limit"),
        ("?limit=1001", "limit"),
        ("?after=x", "after"),
        ("?limit=x", "query"),
        ("?sort=name", "query"),
    ] {
        let answer = ground.get(&format!("{list}{query}"), &site.key).await;
        answer.refused("invalid_parameter", name);
    }
    let strange = ground.get(&site.path("/definitions/x"), &site.key).await;
    strange.refused("invalid_parameter", "definition");
}

#[tokio::test]
async fn a_version_is_published_and_shown_as_it_came() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let id = make(&ground, &site, "bill").await;
    let path = site.path(&format!("/definitions/{id}/versions"));
    let mut new = graph(
        json!([delay("a"), delay("b")]),
        json!([{"from": "a", "to": "b"}]),
    );
    new["params_schema"] = json!({"type": "object"});
    new["execution_timeout_ms"] = json!(90_000);
    let made = ground.post(&path, &site.key, new.clone()).await.expect(201);
    assert_eq!(made["number"], 1);
    assert_eq!(made["definition"], id);
    for field in ["body", "params_schema", "execution_timeout_ms"] {
        assert_eq!(made[field], new[field], "{field}");
    }
    let one = site.path(&format!("/versions/{}", made["id"].as_str().unwrap()));
    assert_eq!(ground.get(&one, &site.key).await.expect(200), made);
    let definition = site.path(&format!("/definitions/{id}"));
    let shown = ground.get(&definition, &site.key).await.expect(200);
    assert_eq!(shown["current_version"], made["id"]);
    ground
        .call(Method::DELETE, &definition, &site.key, Value::Null)
        .await
        .expect(204);
    assert_eq!(ground.get(&one, &site.key).await.expect(200), made);
    ground
        .post(&path, &site.key, new)
        .await
        .refused("not_found", "");
}

/// Refuses each with the path beside it, and publishes nothing.
async fn all_are_refused(cases: impl IntoIterator<Item = (Value, &str)>) {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let path = site.path(&format!("/definitions/{}/versions", site.definition));
    for (new, at) in cases {
        let answer = ground.post(&path, &site.key, new).await;
        answer.refused("invalid", at);
    }
    let listed = ground.all_pages(&path, &site.key, 100).await;
    assert_eq!(listed.len(), 1, "nothing was published");
}

#[tokio::test]
async fn what_is_wrong_with_a_graph_is_named_by_its_path() {
    let two = |edges: Value| graph(json!([delay("a"), delay("b")]), edges);
    let edge = |from: &str, to: &str| json!({"from": from, "to": to});
    let url = format!("http://{}", "u".repeat(8_000));
    let http = |n: usize| json!({"type": "http", "id": n.to_string(), "url": url});
    let large = (0..200).map(http).collect();
    let twice = json!([delay("a"), delay("a")]);
    all_are_refused([
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
async fn what_else_is_wrong_with_a_version_is_named_by_its_path() {
    let with = |field: &str, value: Value| {
        let mut new = binding();
        new[field] = value;
        new
    };
    let bound = |kind: Value, queue: Value| json!({"body": {"binding": {"workflow_type": kind, "task_queue": queue}}});
    let timeout = |value: Value| with("execution_timeout_ms", value);
    let schema = |value: Value| with("params_schema", value);
    all_are_refused([
        (bound(json!(""), json!("a")), "/body/binding/workflow_type"),
        (bound(json!("a"), json!(7)), "/body/binding/task_queue"),
        (json!({"body": {"script": {}}}), "/body/script"),
        (schema(json!({"type": "no such type"})), "/params_schema"),
        (schema(json!({"a": "\u{0}"})), "/params_schema/a"),
        (timeout(json!(0)), "/execution_timeout_ms"),
        (timeout(json!(31_622_400_001u64)), "/execution_timeout_ms"),
        (timeout(json!(-1)), "/execution_timeout_ms"),
        (with("strange", json!(1)), "/strange"),
    ])
    .await;
}
