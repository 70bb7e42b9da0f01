//! Queues, the job limit, locks and instances: show and change them.

use axum::http::Method;
use leasehold_core::key::KeyScope;
use leasehold_store::instance::InstanceHeartbeat;
use leasehold_store::lock::LockRequest;
use leasehold_testbed::{TestResponse, TestServer};
use serde_json::{Value, json};
use std::time::Duration;

async fn patch(server: &TestServer, queue: &str, change: Value) -> TestResponse {
    let path = format!("/v1/queues/{queue}");
    server
        .call(Method::PATCH, &path, &server.admin, change)
        .await
}

#[tokio::test]
async fn first_change_creates_a_queue() {
    let server = TestServer::new().await;
    server
        .get("/v1/queues/emails", &server.admin)
        .await
        .expect_problem("not_found", "");
    let change = json!({
        "limit": 7, "paused": true, "keep_completed": false, "lease_ms": 5_000, "max_attempts": 3, "timeout_ms": 60_000,
        "backoff": {"base_ms": 10, "factor": 3.0, "max_ms": 500, "jitter": 0.5},
    });
    let changed = patch(&server, "emails", change.clone()).await.expect(200);
    for (field, value) in change.as_object().unwrap() {
        assert_eq!(&changed[field], value, "{field}");
    }
    let shown = server.get("/v1/queues/emails", &server.admin).await;
    assert_eq!(shown.expect(200), changed);
}

/// A limit or a pause there would stop the `http` and `delay` nodes of all tenants.
#[tokio::test]
async fn internal_queue_cannot_be_changed() {
    let server = TestServer::new().await;
    let refused = patch(&server, "leasehold:http", json!({"paused": true})).await;
    assert_eq!(refused.status, 400);
    refused.expect_problem("invalid_parameter", "queue");
    let stored = server.store.queue_get("leasehold:http").await.unwrap();
    assert!(stored.is_none_or(|queue| !queue.settings.paused));
}

#[tokio::test]
async fn absent_fields_stay_and_null_removes_a_limit() {
    let server = TestServer::new().await;
    let backoff = json!({"base_ms": 10, "factor": 3.0, "max_ms": 500, "jitter": 0.5});
    let first = json!({"limit": 7, "timeout_ms": 9_000, "backoff": backoff});
    patch(&server, "emails", first).await.expect(200);
    let changed = patch(&server, "emails", json!({"max_attempts": 4}))
        .await
        .expect(200);
    assert_eq!(changed["backoff"], backoff);
    assert_eq!(
        (&changed["limit"], &changed["max_attempts"]),
        (&json!(7), &json!(4))
    );
    let none = json!({"limit": null, "timeout_ms": null});
    let changed = patch(&server, "emails", none).await.expect(200);
    assert_eq!(
        (&changed["limit"], &changed["timeout_ms"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(changed["max_attempts"], 4);
}

#[tokio::test]
async fn change_out_of_range_names_its_field_and_creates_no_queue() {
    let server = TestServer::new().await;
    let backoff = |base: u64, factor: f64| json!({"base_ms": base, "factor": factor, "max_ms": 500, "jitter": 0.5});
    for (change, path) in [
        (json!({"limit": 1_000_001}), "/limit"),
        (json!({"lease_ms": 99}), "/lease_ms"),
        (json!({"max_attempts": 0}), "/max_attempts"),
        (json!({"timeout_ms": 0}), "/timeout_ms"),
        (json!({"backoff": backoff(10, 0.5)}), "/backoff/factor"),
        (json!({"backoff": backoff(501, 1.0)}), "/backoff/max_ms"),
        (
            json!({"backoff": backoff(99_999_999_999, 1.0)}),
            "/backoff/base_ms",
        ),
        (json!({"limits": 1}), "/limits"),
    ] {
        patch(&server, "emails", change)
            .await
            .expect_problem("invalid", path);
    }
    let long = "q".repeat(129);
    patch(&server, &long, json!({}))
        .await
        .expect_problem("invalid_parameter", "queue");
    patch(&server, "a%00b", json!({}))
        .await
        .expect_problem("invalid_parameter", "queue");
    let queues = server.get("/v1/queues", &server.admin).await.expect(200);
    assert_eq!(queues["items"], json!([]));
}

#[tokio::test]
async fn queues_are_listed_by_name_in_pages() {
    let server = TestServer::new().await;
    for name in ["b", "d", "a", "c%2Fd", "e"] {
        patch(&server, name, json!({})).await.expect(200);
    }
    let all = server.all_pages("/v1/queues", &server.admin, 2).await;
    let names: Vec<&str> = all
        .iter()
        .map(|queue| queue["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c/d", "d", "e"]);
}

#[tokio::test]
async fn counts_are_current() {
    let server = TestServer::new().await;
    server
        .get("/v1/queues/emails/counts", &server.admin)
        .await
        .expect_problem("not_found", "");
    let jobs = json!({"jobs": [{"kind": "a"}, {"kind": "a"}, {"kind": "a", "run_in_ms": 60_000}]});
    let path = "/v1/queues/emails/jobs/batch";
    server.post(path, &server.admin, jobs).await.expect(201);
    let claim = json!({"worker": "w"});
    let path = "/v1/queues/emails/claim";
    server.post(path, &server.admin, claim).await.expect(200);
    let counts = server.get("/v1/queues/emails/counts", &server.admin).await;
    let expected = json!({"ready": 1, "scheduled": 1, "running": 1, "completed": 0, "failed": 0});
    assert_eq!(counts.expect(200), expected);
}

#[tokio::test]
async fn worker_key_reads_its_queues_and_changes_none() {
    let server = TestServer::new().await;
    patch(&server, "emails", json!({})).await.expect(200);
    patch(&server, "others", json!({})).await.expect(200);
    let queues = vec!["emails".to_owned()];
    let key = server.key(KeyScope::Worker { queues }).await;
    server.get("/v1/queues/emails", &key).await.expect(200);
    server
        .get("/v1/queues/others", &key)
        .await
        .expect_problem("not_found", "");
    let change = server.call(
        Method::PATCH,
        "/v1/queues/emails",
        &key,
        json!({"paused": true}),
    );
    change.await.expect_problem("forbidden", "");
}

#[tokio::test]
async fn job_limit_is_set_shown_and_removed() {
    let server = TestServer::new().await;
    let put = async |limit: Value| {
        let body = json!({"limit": limit});
        server
            .call(Method::PUT, "/v1/job-limit", &server.admin, body)
            .await
    };
    let shown = async || server.get("/v1/job-limit", &server.admin).await.expect(200);
    assert_eq!(shown().await, json!({"limit": null}));
    put(json!(5)).await.expect(200);
    assert_eq!(shown().await, json!({"limit": 5}));
    put(json!(1_000_001))
        .await
        .expect_problem("invalid", "/limit");
    assert_eq!(shown().await, json!({"limit": 5}));
    put(Value::Null).await.expect(200);
    assert_eq!(shown().await, json!({"limit": null}));
}

#[tokio::test]
async fn lock_is_held_until_its_expiry_by_the_stores_clock() {
    let server = TestServer::with_manual_clock().await;
    let request = LockRequest {
        name: "processExecutionQueue".to_owned(),
        owner: "one".to_owned(),
        at_most_for: Duration::from_secs(15),
    };
    server.store.lock_acquire(&request).await.unwrap();
    let held = async || {
        let locks = server.get("/v1/locks", &server.admin).await.expect(200);
        assert_eq!(locks["locks"][0]["owner"], "one");
        locks["locks"][0]["held"].as_bool().unwrap()
    };
    assert!(held().await);
    server.backend.advance(Duration::from_secs(16));
    assert!(!held().await);
}

#[tokio::test]
async fn instances_are_listed_as_registered() {
    let server = TestServer::new().await;
    let beat = InstanceHeartbeat {
        id: "host-1".to_owned(),
        version: "0.2.0".to_owned(),
        dispatches: true,
        listens: Some("http://127.0.0.1:7777".to_owned()),
    };
    let hour = Duration::from_secs(3600);
    server.store.instance_heartbeat(&beat, hour).await.unwrap();
    let answer = server.get("/v1/instances", &server.admin).await.expect(200);
    let instance = &answer["instances"][0];
    assert_eq!(instance["id"], "host-1");
    assert_eq!(instance["dispatches"], true);
    assert_eq!(instance["listens"], "http://127.0.0.1:7777");
}
