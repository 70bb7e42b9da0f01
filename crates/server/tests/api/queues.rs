//! Queues, the limit of all, locks and instances: shown and changed.

use axum::http::Method;
use leasehold_core::key::KeyScope;
use leasehold_store::instance::InstanceBeat;
use leasehold_store::lock::LockRequest;
use leasehold_testbed::{TestResponse, TestServer};
use serde_json::{Value, json};
use std::time::Duration;

async fn patch(ground: &TestServer, queue: &str, change: Value) -> TestResponse {
    let path = format!("/v1/queues/{queue}");
    ground
        .call(Method::PATCH, &path, &ground.admin, change)
        .await
}

#[tokio::test]
async fn a_queue_is_made_by_its_first_change_and_shows_what_was_changed() {
    let ground = TestServer::new().await;
    ground
        .get("/v1/queues/emails", &ground.admin)
        .await
        .refused("not_found", "");
    let change = json!({
        "limit": 7, "paused": true, "keep_completed": false, "lease_ms": 5_000, "max_attempts": 3, "timeout_ms": 60_000,
        "backoff": {"base_ms": 10, "factor": 3.0, "max_ms": 500, "jitter": 0.5},
    });
    let changed = patch(&ground, "emails", change.clone()).await.expect(200);
    for (field, value) in change.as_object().unwrap() {
        assert_eq!(&changed[field], value, "{field}");
    }
    let shown = ground.get("/v1/queues/emails", &ground.admin).await;
    assert_eq!(shown.expect(200), changed);
}

#[tokio::test]
async fn what_a_change_does_not_name_stays_and_null_takes_away() {
    let ground = TestServer::new().await;
    let backoff = json!({"base_ms": 10, "factor": 3.0, "max_ms": 500, "jitter": 0.5});
    let first = json!({"limit": 7, "timeout_ms": 9_000, "backoff": backoff});
    patch(&ground, "emails", first).await.expect(200);
    let changed = patch(&ground, "emails", json!({"max_attempts": 4}))
        .await
        .expect(200);
    assert_eq!(changed["backoff"], backoff);
    assert_eq!(
        (&changed["limit"], &changed["max_attempts"]),
        (&json!(7), &json!(4))
    );
    let none = json!({"limit": null, "timeout_ms": null});
    let changed = patch(&ground, "emails", none).await.expect(200);
    assert_eq!(
        (&changed["limit"], &changed["timeout_ms"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(changed["max_attempts"], 4);
}

#[tokio::test]
async fn a_change_out_of_bounds_names_its_field_and_makes_no_queue() {
    let ground = TestServer::new().await;
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
        patch(&ground, "emails", change)
            .await
            .refused("invalid", path);
    }
    let long = "q".repeat(129);
    patch(&ground, &long, json!({}))
        .await
        .refused("invalid_parameter", "queue");
    patch(&ground, "a%00b", json!({}))
        .await
        .refused("invalid_parameter", "queue");
    let queues = ground.get("/v1/queues", &ground.admin).await.expect(200);
    assert_eq!(queues["items"], json!([]));
}

#[tokio::test]
async fn queues_are_listed_by_name_page_by_page() {
    let ground = TestServer::new().await;
    for name in ["b", "d", "a", "c%2Fd", "e"] {
        patch(&ground, name, json!({})).await.expect(200);
    }
    let all = ground.all_pages("/v1/queues", &ground.admin, 2).await;
    let names: Vec<&str> = all
        .iter()
        .map(|queue| queue["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c/d", "d", "e"]);
}

#[tokio::test]
async fn counts_are_counted_now() {
    let ground = TestServer::new().await;
    ground
        .get("/v1/queues/emails/counts", &ground.admin)
        .await
        .refused("not_found", "");
    let jobs = json!({"jobs": [{"kind": "a"}, {"kind": "a"}, {"kind": "a", "run_in_ms": 60_000}]});
    let path = "/v1/queues/emails/jobs/batch";
    ground.post(path, &ground.admin, jobs).await.expect(201);
    let claim = json!({"worker": "w"});
    let path = "/v1/queues/emails/claim";
    ground.post(path, &ground.admin, claim).await.expect(200);
    let counts = ground.get("/v1/queues/emails/counts", &ground.admin).await;
    let expected = json!({"ready": 1, "scheduled": 1, "running": 1, "completed": 0, "failed": 0});
    assert_eq!(counts.expect(200), expected);
}

#[tokio::test]
async fn a_workers_key_sees_its_own_queues_and_changes_none() {
    let ground = TestServer::new().await;
    patch(&ground, "emails", json!({})).await.expect(200);
    patch(&ground, "others", json!({})).await.expect(200);
    let queues = vec!["emails".to_owned()];
    let key = ground.key(KeyScope::Worker { queues }).await;
    ground.get("/v1/queues/emails", &key).await.expect(200);
    ground
        .get("/v1/queues/others", &key)
        .await
        .refused("not_found", "");
    let change = ground.call(
        Method::PATCH,
        "/v1/queues/emails",
        &key,
        json!({"paused": true}),
    );
    change.await.refused("forbidden", "");
}

#[tokio::test]
async fn the_limit_of_all_is_set_shown_and_taken_away() {
    let ground = TestServer::new().await;
    let put = async |limit: Value| {
        let body = json!({"limit": limit});
        ground
            .call(Method::PUT, "/v1/job-limit", &ground.admin, body)
            .await
    };
    let shown = async || ground.get("/v1/job-limit", &ground.admin).await.expect(200);
    assert_eq!(shown().await, json!({"limit": null}));
    put(json!(5)).await.expect(200);
    assert_eq!(shown().await, json!({"limit": 5}));
    put(json!(1_000_001)).await.refused("invalid", "/limit");
    assert_eq!(shown().await, json!({"limit": 5}));
    put(Value::Null).await.expect(200);
    assert_eq!(shown().await, json!({"limit": null}));
}

#[tokio::test]
async fn a_lock_is_held_until_its_time_by_the_stores_clock() {
    let ground = TestServer::with_manual_clock().await;
    let request = LockRequest {
        name: "processExecutionQueue".to_owned(),
        owner: "one".to_owned(),
        at_most_for: Duration::from_secs(15),
    };
    ground.store.lock_acquire(&request).await.unwrap();
    let held = async || {
        let locks = ground.get("/v1/locks", &ground.admin).await.expect(200);
        assert_eq!(locks["locks"][0]["owner"], "one");
        locks["locks"][0]["held"].as_bool().unwrap()
    };
    assert!(held().await);
    ground.backend.advance(Duration::from_secs(16));
    assert!(!held().await);
}

#[tokio::test]
async fn instances_are_listed_as_they_spoke_of_themselves() {
    let ground = TestServer::new().await;
    let beat = InstanceBeat {
        id: "host-1".to_owned(),
        version: "0.1.0".to_owned(),
        dispatches: true,
        listens: Some("http://127.0.0.1:7777".to_owned()),
    };
    let hour = Duration::from_secs(3600);
    ground.store.instance_beat(&beat, hour).await.unwrap();
    let answer = ground.get("/v1/instances", &ground.admin).await.expect(200);
    let instance = &answer["instances"][0];
    assert_eq!(instance["id"], "host-1");
    assert_eq!(instance["dispatches"], true);
    assert_eq!(instance["listens"], "http://127.0.0.1:7777");
}
