//! Requests: enqueue one or a batch, show, list; invalid ones are rejected with the path.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_store::fresh_id;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer, create_definition};
use serde_json::{Value, json};
use tokio_postgres::NoTls;
use uuid::Uuid;

/// Returns an order with one more field.
fn with(workspace: &KeyedWorkspace, field: &str, value: Value) -> Value {
    let mut body = workspace.order();
    body[field] = value;
    body
}

async fn ids(server: &TestServer, path: &str, key: &str, limit: u32) -> Vec<String> {
    let listed = server.all_pages(path, key, limit).await;
    listed
        .iter()
        .map(|r| r["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn enqueued_request_is_found_at_its_location() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let server = TestServer::on(on).await;
        let workspace = server.workspace(1).await;
        let mut body = workspace.order();
        body["priority"] = json!(7);
        body["run_at"] = json!("2099-01-01T00:00:00Z");
        body["idempotency_key"] = json!("first");
        let made = server
            .post(&workspace.path("/requests"), &workspace.key, body.clone())
            .await;
        let location = made.header("location").to_owned();
        let made = made.expect(201);
        assert_eq!(made["inserted"], true);
        let shown = server.get(&location, &workspace.key).await.expect(200);
        assert_eq!(shown["id"], made["id"]);
        assert_eq!(shown["status"], "PENDING");
        for field in [
            "definition",
            "params",
            "priority",
            "run_at",
            "idempotency_key",
        ] {
            assert_eq!(shown[field], body[field], "{field}");
        }
        let timeline = server
            .get(&format!("{location}/timeline"), &workspace.key)
            .await
            .expect(200);
        let events = timeline["events"].as_array().unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["to"], "PENDING");
        let by = events[0]["by"].as_str().unwrap();
        assert!(by.starts_with("test ("), "the key's name: {by}");
    }
}

#[tokio::test]
async fn timeline_has_every_transition_in_order() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let ended = server
        .enqueue_ended(&workspace, ExecutionEnd::TimedOut)
        .await;
    let path = workspace.path(&format!("/requests/{}/timeline", ended.id));
    let timeline = server.get(&path, &workspace.key).await.expect(200);
    let events = timeline["events"].as_array().unwrap();
    let to: Vec<&str> = events.iter().map(|e| e["to"].as_str().unwrap()).collect();
    assert_eq!(to, ["PENDING", "CLAIMED", "DISPATCHED", "FAILED"]);
    let unknown_id: Uuid = fresh_id();
    for below in ["", "/timeline"] {
        let nothing = workspace.path(&format!("/requests/{unknown_id}{below}"));
        server
            .get(&nothing, &workspace.key)
            .await
            .expect_problem("not_found", "");
    }
}

/// As after the partition with the first events has expired.
#[tokio::test]
async fn timeline_without_its_beginning_says_so() {
    let server = TestServer::on(BackendKind::Postgres).await;
    let workspace = server.workspace(1).await;
    let ended = server
        .enqueue_ended(&workspace, ExecutionEnd::Completed)
        .await;
    let url = server.backend.database().url_in("leasehold");
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let path = workspace.path(&format!("/requests/{}/timeline", ended.id));
    let expire = include_str!("sql/event_expire.sql");
    for (left, is_pruned) in [(4, false), (3, true), (2, true), (1, true), (0, true)] {
        let timeline = server.get(&path, &workspace.key).await.expect(200);
        assert_eq!(timeline["events"].as_array().unwrap().len(), left);
        assert_eq!(timeline["beginning_pruned"], is_pruned, "{left} left");
        let expired = client.execute(expire, &[&ended.id.0]).await.unwrap();
        assert_eq!(expired, u64::from(left > 0));
    }
}

#[tokio::test]
async fn repeated_idempotency_key_returns_the_same_request() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let path = workspace.path("/requests");
    let send = async |key: &str, body| {
        let headers = [("idempotency-key", key)];
        server
            .call_with(Method::POST, &path, &workspace.key, &headers, body)
            .await
    };
    let first = send("one", workspace.order()).await.expect(201);
    let again = send("one", workspace.order()).await;
    let location = again.header("location").to_owned();
    let again = again.expect(200);
    assert_eq!(again, json!({"id": first["id"], "inserted": false}));
    assert!(location.ends_with(first["id"].as_str().unwrap()));
    let by_body = with(&workspace, "idempotency_key", json!("one"));
    let same = server
        .post(&path, &workspace.key, by_body.clone())
        .await
        .expect(200);
    assert_eq!(same["id"], first["id"]);
    assert_eq!(
        send("one", by_body.clone()).await.expect(200)["id"],
        first["id"]
    );
    let other = with(&workspace, "params", json!({"n": 2}));
    let conflict = send("one", other)
        .await
        .expect_problem("idempotency_conflict", "");
    assert_eq!(conflict["held_by"], first["id"]);
    let differs = send("two", by_body).await;
    differs.expect_problem("invalid_parameter", "Idempotency-Key");
    let long = "k".repeat(256);
    let answer = send(&long, workspace.order()).await;
    answer.expect_problem("invalid_parameter", "Idempotency-Key");
    let answer = server
        .post(
            &path,
            &workspace.key,
            with(&workspace, "idempotency_key", json!(long)),
        )
        .await;
    answer.expect_problem("invalid", "/idempotency_key");
    assert_eq!(ids(&server, &path, &workspace.key, 100).await.len(), 1);
}

#[tokio::test]
async fn valid_trace_context_is_stored_and_invalid_one_ignored() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let long = "0".repeat(2_000);
    for (sent, kept) in [(trace, Some(trace)), (&long, None)] {
        let headers = [("traceparent", sent)];
        let path = workspace.path("/requests");
        let made = server
            .call_with(
                Method::POST,
                &path,
                &workspace.key,
                &headers,
                workspace.order(),
            )
            .await;
        let id = made.expect(201)["id"].as_str().unwrap().parse().unwrap();
        let request = server
            .store
            .request_get(workspace.workspace, id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(request.trace_context.as_deref(), kept);
    }
}

#[tokio::test]
async fn invalid_request_is_rejected_with_its_path() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let endless = json!({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]});
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "endless": endless}});
    server
        .publish(workspace.workspace, workspace.definition, Some(schema))
        .await;
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    let cases = [
        (with(&workspace, "params", json!({"n": "one"})), "/params/n"),
        (with(&workspace, "params", json!({"endless": 1})), "/params"),
        (
            with(&workspace, "params", json!("x".repeat(256 * 1024))),
            "/params",
        ),
        (
            with(&workspace, "params", json!({"a": "\u{0}"})),
            "/params/a",
        ),
        (with(&workspace, "priority", json!(1001)), "/priority"),
        (with(&workspace, "priority", json!(40_000)), "/priority"),
        (
            with(&workspace, "dedupe_window_ms", json!(-1)),
            "/dedupe_window_ms",
        ),
        (with(&workspace, "run_at", json!("tomorrow")), "/run_at"),
        (
            with(&workspace, "idempotency_key", json!("")),
            "/idempotency_key",
        ),
        (
            with(&workspace, "definition", json!("order")),
            "/definition",
        ),
        (with(&workspace, "colour", json!("red")), "/colour"),
        (json!({"params": {}}), ""),
        (json!([]), ""),
    ];
    let path = workspace.path("/requests");
    for (body, at) in cases {
        let refused = server
            .post(&path, &workspace.key, body.clone())
            .await
            .expect_problem("invalid", at);
        let detail = refused["detail"].as_str().unwrap();
        assert!(!detail.contains("requests[0]"), "{detail}");
    }
    let mut window = with(&workspace, "idempotency_key", json!("k"));
    window["dedupe_window_ms"] = json!(0);
    server
        .post(&path, &workspace.key, window)
        .await
        .expect_problem("invalid", "/dedupe_window_ms");
    let nested = server
        .post(&path, &workspace.key, with(&workspace, "params", deep))
        .await;
    assert_eq!(nested.json["code"], "invalid", "{}", nested.text);
    assert_eq!(
        ids(&server, &path, &workspace.key, 100).await,
        [""; 0],
        "nothing was enqueued"
    );
}

#[tokio::test]
async fn foreign_definition_is_forbidden_to_admins_and_hidden_from_others() {
    let server = TestServer::new().await;
    let (workspace, other) = (server.workspace(1).await, server.workspace(1).await);
    let path = workspace.path("/requests");
    let theirs = with(&workspace, "definition", json!(other.definition));
    server
        .post(&path, &server.admin, theirs.clone())
        .await
        .expect_problem("forbidden", "");
    let hidden = server
        .post(&path, &workspace.key, theirs)
        .await
        .expect_problem("not_found", "");
    let unknown_id: Uuid = fresh_id();
    let unknown = with(&workspace, "definition", json!(unknown_id));
    let unknown = server
        .post(&path, &workspace.key, unknown)
        .await
        .expect_problem("not_found", "");
    let text = |problem: &Value, id: String| problem["detail"].as_str().unwrap().replace(&id, "…");
    assert_eq!(
        text(&hidden, other.definition.to_string()),
        text(&unknown, unknown_id.to_string()),
        "a definition of another workspace is not hidden"
    );
    let draft = create_definition(&*server.store, workspace.workspace, "draft").await;
    let draft = with(&workspace, "definition", json!(draft));
    server
        .post(&path, &workspace.key, draft)
        .await
        .expect_problem("not_published", "");
    let nowhere = format!("/v1/workspaces/{}/requests", Uuid::nil());
    server
        .post(&nowhere, &server.admin, workspace.order())
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn batch_is_enqueued_in_order_or_not_at_all() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    let path = workspace.path("/requests/batch");
    let list = workspace.path("/requests");
    let one = workspace.order();
    let bad = with(&workspace, "priority", json!(1001));
    let answer = server
        .post(&path, &workspace.key, json!({"requests": [one, bad]}))
        .await;
    answer.expect_problem("invalid", "/requests/1/priority");
    server
        .post(&path, &workspace.key, json!({"requests": []}))
        .await
        .expect_problem("invalid", "/requests");
    let many = json!({"requests": vec![json!({"definition": workspace.definition}); 10_001]});
    server
        .post(&path, &workspace.key, many)
        .await
        .expect_problem("invalid", "/requests");
    assert_eq!(ids(&server, &list, &workspace.key, 100).await, [""; 0]);
    let keyed = with(&workspace, "idempotency_key", json!("k"));
    let batch = json!({"requests": [one, keyed, one]});
    let made = server
        .post(&path, &workspace.key, batch.clone())
        .await
        .expect(200);
    let made = made["requests"].as_array().unwrap();
    assert!(made.iter().all(|request| request["inserted"] == true));
    let mut inserted: Vec<&str> = made.iter().map(|r| r["id"].as_str().unwrap()).collect();
    inserted.reverse();
    assert_eq!(
        ids(&server, &list, &workspace.key, 100).await,
        inserted,
        "newest first"
    );
    let again = server.post(&path, &workspace.key, batch).await.expect(200);
    let new: Vec<bool> = (0..3)
        .map(|n| again["requests"][n]["inserted"] == true)
        .collect();
    assert_eq!(new, [true, false, true]);
}

#[tokio::test]
async fn requests_are_listed_newest_first_and_filtered() {
    let server = TestServer::new().await;
    let (workspace, other) = (server.workspace(50).await, server.workspace(50).await);
    let theirs = server.enqueue(&other).await;
    let mut failed = Vec::new();
    for end in [
        ExecutionEnd::Failed,
        ExecutionEnd::TimedOut,
        ExecutionEnd::Completed,
    ] {
        failed.insert(
            0,
            server.enqueue_ended(&workspace, end).await.id.to_string(),
        );
    }
    let completed = failed.remove(0);
    let mut pending = Vec::new();
    for _ in 0..5 {
        pending.insert(0, server.enqueue(&workspace).await);
    }
    let all = [pending.clone(), vec![completed.clone()], failed.clone()].concat();
    let path = workspace.path("/requests");
    for limit in [1, 3, 8, 100] {
        assert_eq!(
            ids(&server, &path, &workspace.key, limit).await,
            all,
            "{limit}"
        );
        let filtered = format!("{path}?status=PENDING");
        assert_eq!(
            ids(&server, &filtered, &workspace.key, limit).await,
            pending
        );
    }
    let of_definition = format!(
        "{path}?definition={}&status=COMPLETED",
        workspace.definition
    );
    assert_eq!(
        ids(&server, &of_definition, &workspace.key, 2).await,
        [completed]
    );
    let reason = format!("{path}?reason=timed_out");
    assert_eq!(ids(&server, &reason, &workspace.key, 2).await, failed[..1]);
    let dead = workspace.path("/dead-letters");
    assert_eq!(ids(&server, &dead, &workspace.key, 1).await, failed);
    let dead = workspace.path("/dead-letters?reason=execution_failed");
    assert_eq!(ids(&server, &dead, &workspace.key, 1).await, failed[1..]);
    let everything = ids(&server, "/v1/requests", &server.admin, 2).await;
    assert_eq!(everything.len(), 9);
    let one = format!("/v1/requests?workspace={}", other.workspace);
    assert_eq!(ids(&server, &one, &server.admin, 2).await, [theirs]);
}

#[tokio::test]
async fn list_with_invalid_filter_or_unknown_workspace_is_rejected() {
    let server = TestServer::new().await;
    let workspace = server.workspace(1).await;
    for below in ["/requests", "/dead-letters"] {
        for (query, name) in [
            ("?reason=bad_luck", "query"),
            ("?definition=x", "query"),
            ("?after=x", "after"),
            ("?limit=0", "limit"),
            ("?colour=red", "query"),
        ] {
            let answer = server
                .get(&workspace.path(&format!("{below}{query}")), &workspace.key)
                .await;
            answer.expect_problem("invalid_parameter", name);
        }
        let nowhere = format!("/v1/workspaces/{}{below}", Uuid::nil());
        server
            .get(&nowhere, &server.admin)
            .await
            .expect_problem("not_found", "");
        let answer = server
            .get(&workspace.path(below), &workspace.key)
            .await
            .expect(200);
        assert_eq!(answer, json!({"items": []}));
    }
    let answer = server
        .get(&workspace.path("/requests?status=pending"), &workspace.key)
        .await;
    answer.expect_problem("invalid_parameter", "query");
    let nowhere = format!("/v1/requests?workspace={}", Uuid::nil());
    server
        .get(&nowhere, &server.admin)
        .await
        .expect_problem("not_found", "");
}
