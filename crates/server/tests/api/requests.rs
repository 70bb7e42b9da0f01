//! Requests: enqueued one by one and in batches, shown, listed, and refused by the path of what is wrong.

use axum::http::Method;
use leasehold_core::ExecutionEnd;
use leasehold_store::fresh_id;
use leasehold_testbed::{BackendKind, KeyedWorkspace, TestServer, create_definition};
use serde_json::{Value, json};
use uuid::Uuid;

/// An order with one more field.
fn with(site: &KeyedWorkspace, field: &str, value: Value) -> Value {
    let mut body = site.order();
    body[field] = value;
    body
}

async fn ids(ground: &TestServer, path: &str, key: &str, limit: u32) -> Vec<String> {
    let listed = ground.all_pages(path, key, limit).await;
    listed
        .iter()
        .map(|r| r["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_request_is_enqueued_and_found_where_its_location_says() {
    for on in [BackendKind::Sqlite, BackendKind::Postgres] {
        let ground = TestServer::on(on).await;
        let site = ground.workspace(1).await;
        let mut body = site.order();
        body["priority"] = json!(7);
        body["run_at"] = json!("2099-01-01T00:00:00Z");
        body["idempotency_key"] = json!("first");
        let made = ground
            .post(&site.path("/requests"), &site.key, body.clone())
            .await;
        let location = made.header("location").to_owned();
        let made = made.expect(201);
        assert_eq!(made["inserted"], true);
        let shown = ground.get(&location, &site.key).await.expect(200);
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
        let timeline = ground
            .get(&format!("{location}/timeline"), &site.key)
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
async fn a_timeline_has_every_transition_in_order() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let ended = ground.ended(&site, ExecutionEnd::TimedOut).await;
    let path = site.path(&format!("/requests/{}/timeline", ended.id));
    let timeline = ground.get(&path, &site.key).await.expect(200);
    let events = timeline["events"].as_array().unwrap();
    let to: Vec<&str> = events.iter().map(|e| e["to"].as_str().unwrap()).collect();
    assert_eq!(to, ["PENDING", "CLAIMED", "DISPATCHED", "FAILED"]);
    let stranger: Uuid = fresh_id();
    for below in ["", "/timeline"] {
        let nothing = site.path(&format!("/requests/{stranger}{below}"));
        ground
            .get(&nothing, &site.key)
            .await
            .refused("not_found", "");
    }
}

#[tokio::test]
async fn a_repeated_idempotency_key_is_the_same_request_by_header_or_by_body() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let path = site.path("/requests");
    let send = async |key: &str, body| {
        let headers = [("idempotency-key", key)];
        ground
            .call_with(Method::POST, &path, &site.key, &headers, body)
            .await
    };
    let first = send("one", site.order()).await.expect(201);
    let again = send("one", site.order()).await;
    let location = again.header("location").to_owned();
    let again = again.expect(200);
    assert_eq!(again, json!({"id": first["id"], "inserted": false}));
    assert!(location.ends_with(first["id"].as_str().unwrap()));
    let by_body = with(&site, "idempotency_key", json!("one"));
    let same = ground
        .post(&path, &site.key, by_body.clone())
        .await
        .expect(200);
    assert_eq!(same["id"], first["id"]);
    assert_eq!(
        send("one", by_body.clone()).await.expect(200)["id"],
        first["id"]
    );
    let other = with(&site, "params", json!({"n": 2}));
    let conflict = send("one", other).await.refused("idempotency_conflict", "");
    assert_eq!(conflict["held_by"], first["id"]);
    let differs = send("two", by_body).await;
    differs.refused("invalid_parameter", "Idempotency-Key");
    let long = "k".repeat(256);
    let answer = send(&long, site.order()).await;
    answer.refused("invalid_parameter", "Idempotency-Key");
    let answer = ground
        .post(
            &path,
            &site.key,
            with(&site, "idempotency_key", json!(long)),
        )
        .await;
    answer.refused("invalid", "/idempotency_key");
    assert_eq!(ids(&ground, &path, &site.key, 100).await.len(), 1);
}

#[tokio::test]
async fn the_callers_trace_is_kept_unless_it_cannot_be() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let long = "0".repeat(2_000);
    for (sent, kept) in [(trace, Some(trace)), (&long, None)] {
        let headers = [("traceparent", sent)];
        let path = site.path("/requests");
        let made = ground
            .call_with(Method::POST, &path, &site.key, &headers, site.order())
            .await;
        let id = made.expect(201)["id"].as_str().unwrap().parse().unwrap();
        let request = ground
            .store
            .request_get(site.workspace, id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(request.trace_context.as_deref(), kept);
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_named_by_its_path() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    ground
        .publish(site.workspace, site.definition, Some(schema))
        .await;
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    let cases = [
        (with(&site, "params", json!({"n": "one"})), "/params/n"),
        (
            with(&site, "params", json!("x".repeat(256 * 1024))),
            "/params",
        ),
        (with(&site, "params", json!({"a": "\u{0}"})), "/params/a"),
        (with(&site, "priority", json!(1001)), "/priority"),
        (with(&site, "priority", json!(40_000)), "/priority"),
        (
            with(&site, "dedupe_window_ms", json!(-1)),
            "/dedupe_window_ms",
        ),
        (with(&site, "run_at", json!("tomorrow")), "/run_at"),
        (
            with(&site, "idempotency_key", json!("")),
            "/idempotency_key",
        ),
        (with(&site, "definition", json!("order")), "/definition"),
        (with(&site, "colour", json!("red")), "/colour"),
        (json!({"params": {}}), ""),
        (json!([]), ""),
    ];
    let path = site.path("/requests");
    for (body, at) in cases {
        let refused = ground
            .post(&path, &site.key, body.clone())
            .await
            .refused("invalid", at);
        let detail = refused["detail"].as_str().unwrap();
        assert!(!detail.contains("requests[0]"), "{detail}");
    }
    let mut window = with(&site, "idempotency_key", json!("k"));
    window["dedupe_window_ms"] = json!(0);
    ground
        .post(&path, &site.key, window)
        .await
        .refused("invalid", "/dedupe_window_ms");
    let nested = ground
        .post(&path, &site.key, with(&site, "params", deep))
        .await;
    assert_eq!(nested.json["code"], "invalid", "{}", nested.text);
    assert_eq!(
        ids(&ground, &path, &site.key, 100).await,
        [""; 0],
        "nothing was enqueued"
    );
}

#[tokio::test]
async fn the_definition_of_another_workspace_is_forbidden_to_admins_and_hidden_from_others() {
    let ground = TestServer::new().await;
    let (site, other) = (ground.workspace(1).await, ground.workspace(1).await);
    let path = site.path("/requests");
    let theirs = with(&site, "definition", json!(other.definition));
    ground
        .post(&path, &ground.admin, theirs.clone())
        .await
        .refused("forbidden", "");
    let hidden = ground
        .post(&path, &site.key, theirs)
        .await
        .refused("not_found", "");
    let stranger: Uuid = fresh_id();
    let unknown = with(&site, "definition", json!(stranger));
    let unknown = ground
        .post(&path, &site.key, unknown)
        .await
        .refused("not_found", "");
    let said = |problem: &Value, id: String| problem["detail"].as_str().unwrap().replace(&id, "…");
    assert_eq!(
        said(&hidden, other.definition.to_string()),
        said(&unknown, stranger.to_string()),
        "theirs is refused in the same words as what is not there"
    );
    let draft = create_definition(&*ground.store, site.workspace, "draft").await;
    let draft = with(&site, "definition", json!(draft));
    ground
        .post(&path, &site.key, draft)
        .await
        .refused("not_published", "");
    let nowhere = format!("/v1/workspaces/{}/requests", Uuid::nil());
    ground
        .post(&nowhere, &ground.admin, site.order())
        .await
        .refused("not_found", "");
}

#[tokio::test]
async fn a_batch_is_enqueued_whole_in_order_or_not_at_all() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    let path = site.path("/requests/batch");
    let list = site.path("/requests");
    let one = site.order();
    let bad = with(&site, "priority", json!(1001));
    let answer = ground
        .post(&path, &site.key, json!({"requests": [one, bad]}))
        .await;
    answer.refused("invalid", "/requests/1/priority");
    ground
        .post(&path, &site.key, json!({"requests": []}))
        .await
        .refused("invalid", "/requests");
    let many = json!({"requests": vec![json!({"definition": site.definition}); 10_001]});
    ground
        .post(&path, &site.key, many)
        .await
        .refused("invalid", "/requests");
    assert_eq!(ids(&ground, &list, &site.key, 100).await, [""; 0]);
    let keyed = with(&site, "idempotency_key", json!("k"));
    let batch = json!({"requests": [one, keyed, one]});
    let made = ground
        .post(&path, &site.key, batch.clone())
        .await
        .expect(200);
    let made = made["requests"].as_array().unwrap();
    assert!(made.iter().all(|request| request["inserted"] == true));
    let mut inserted: Vec<&str> = made.iter().map(|r| r["id"].as_str().unwrap()).collect();
    inserted.reverse();
    assert_eq!(
        ids(&ground, &list, &site.key, 100).await,
        inserted,
        "newest first"
    );
    let again = ground.post(&path, &site.key, batch).await.expect(200);
    let new: Vec<bool> = (0..3)
        .map(|n| again["requests"][n]["inserted"] == true)
        .collect();
    assert_eq!(new, [true, false, true]);
}

#[tokio::test]
async fn requests_are_listed_newest_first_to_the_end_and_by_filter() {
    let ground = TestServer::new().await;
    let (site, other) = (ground.workspace(50).await, ground.workspace(50).await);
    let theirs = ground.enqueue(&other).await;
    let mut failed = Vec::new();
    for end in [
        ExecutionEnd::Failed,
        ExecutionEnd::TimedOut,
        ExecutionEnd::Completed,
    ] {
        failed.insert(0, ground.ended(&site, end).await.id.to_string());
    }
    let completed = failed.remove(0);
    let mut pending = Vec::new();
    for _ in 0..5 {
        pending.insert(0, ground.enqueue(&site).await);
    }
    let all = [pending.clone(), vec![completed.clone()], failed.clone()].concat();
    let path = site.path("/requests");
    for limit in [1, 3, 8, 100] {
        assert_eq!(ids(&ground, &path, &site.key, limit).await, all, "{limit}");
        let filtered = format!("{path}?status=PENDING");
        assert_eq!(ids(&ground, &filtered, &site.key, limit).await, pending);
    }
    let of_definition = format!("{path}?definition={}&status=COMPLETED", site.definition);
    assert_eq!(
        ids(&ground, &of_definition, &site.key, 2).await,
        [completed]
    );
    let reason = format!("{path}?reason=timed_out");
    assert_eq!(ids(&ground, &reason, &site.key, 2).await, failed[..1]);
    let dead = site.path("/dead-letters");
    assert_eq!(ids(&ground, &dead, &site.key, 1).await, failed);
    let dead = site.path("/dead-letters?reason=execution_failed");
    assert_eq!(ids(&ground, &dead, &site.key, 1).await, failed[1..]);
    let everything = ids(&ground, "/v1/requests", &ground.admin, 2).await;
    assert_eq!(everything.len(), 9);
    let one = format!("/v1/requests?workspace={}", other.workspace);
    assert_eq!(ids(&ground, &one, &ground.admin, 2).await, [theirs]);
}

#[tokio::test]
async fn a_list_with_a_wrong_filter_or_of_nobody_is_refused() {
    let ground = TestServer::new().await;
    let site = ground.workspace(1).await;
    for below in ["/requests", "/dead-letters"] {
        for (query, name) in [
            ("?reason=bad_luck", "query"),
            ("?definition=x", "query"),
            ("?after=x", "after"),
            ("?limit=0", "limit"),
            ("?colour=red", "query"),
        ] {
            let answer = ground
                .get(&site.path(&format!("{below}{query}")), &site.key)
                .await;
            answer.refused("invalid_parameter", name);
        }
        let nowhere = format!("/v1/workspaces/{}{below}", Uuid::nil());
        ground
            .get(&nowhere, &ground.admin)
            .await
            .refused("not_found", "");
        let answer = ground.get(&site.path(below), &site.key).await.expect(200);
        assert_eq!(answer, json!({"items": []}));
    }
    let answer = ground
        .get(&site.path("/requests?status=pending"), &site.key)
        .await;
    answer.refused("invalid_parameter", "query");
    let nowhere = format!("/v1/requests?workspace={}", Uuid::nil());
    ground
        .get(&nowhere, &ground.admin)
        .await
        .refused("not_found", "");
}
