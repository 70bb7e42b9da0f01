//! Jobs: put into queues, shown, listed and cancelled.

use leasehold_core::key::KeyScope;
use leasehold_testbed::{TestResponse, TestServer};
use serde_json::{Value, json};

const JOBS: &str = "/v1/queues/emails/jobs";
const BATCH: &str = "/v1/queues/emails/jobs/batch";

async fn enqueue(ground: &TestServer, job: Value) -> TestResponse {
    ground.post(JOBS, &ground.admin, job).await
}

async fn job(ground: &TestServer, id: &Value) -> Value {
    ground
        .get(&format!("/v1/jobs/{id}"), &ground.admin)
        .await
        .expect(200)
}

async fn nothing_is_queued(ground: &TestServer) {
    let jobs = ground.get("/v1/jobs", &ground.admin).await.expect(200);
    assert_eq!(jobs["items"], json!([]));
}

#[tokio::test]
async fn a_job_is_shown_as_it_was_enqueued() {
    let ground = TestServer::with_manual_clock().await;
    let new = json!({
        "kind": "welcome", "payload": {"to": ["ada", 1.50, null]}, "priority": 9, "run_in_ms": 1_500, "max_attempts": 4, "timeout_ms": 250,
        "backoff": {"base_ms": 10, "factor": 3.0, "max_ms": 500, "jitter": 0.5}, "dedup_key": "ada", "dedup_window_ms": 60_000,
    });
    let answer = enqueue(&ground, new.clone()).await.expect(201);
    assert_eq!(answer["inserted"], true);
    let shown = job(&ground, &answer["id"]).await;
    for field in [
        "kind",
        "payload",
        "priority",
        "max_attempts",
        "timeout_ms",
        "backoff",
        "dedup_key",
    ] {
        assert_eq!(shown[field], new[field], "{field}");
    }
    assert_eq!(shown["run_at"], "2026-03-01T12:00:01.5Z");
    assert_eq!(
        (&shown["queue"], &shown["status"]),
        (&json!("emails"), &json!("queued"))
    );
    assert_eq!(
        (&shown["attempts"], &shown["token"]),
        (&json!(0), &json!(0))
    );
}

#[tokio::test]
async fn a_payload_keeps_the_text_it_came_as() {
    let ground = TestServer::new().await;
    let body = r#"{"kind": "a", "payload": {"b": 1.50, "a": 9007199254740993}}"#;
    let answer = ground
        .call_raw(axum::http::Method::POST, JOBS, &ground.admin, body)
        .await;
    let id = answer.expect(201)["id"].clone();
    let shown = ground.get(&format!("/v1/jobs/{id}"), &ground.admin).await;
    assert!(shown.text.contains("9007199254740993"), "{}", shown.text);
}

#[tokio::test]
async fn a_held_dedup_key_answers_the_job_that_holds_it() {
    let ground = TestServer::new().await;
    let new = json!({"kind": "welcome", "dedup_key": "ada"});
    let first = enqueue(&ground, new.clone()).await.expect(201);
    let second = enqueue(&ground, new).await.expect(200);
    assert_eq!(second, json!({"id": first["id"], "inserted": false}));
}

#[tokio::test]
async fn a_batch_is_put_in_whole_and_answered_in_order() {
    let ground = TestServer::new().await;
    let jobs: Vec<Value> = (0..50)
        .map(|n| json!({"kind": "a", "payload": n}))
        .collect();
    let answer = ground
        .post(BATCH, &ground.admin, json!({"jobs": jobs}))
        .await
        .expect(201);
    for (n, enqueued) in answer["jobs"].as_array().unwrap().iter().enumerate() {
        assert_eq!(job(&ground, &enqueued["id"]).await["payload"], n);
    }
}

#[tokio::test]
async fn bad_jobs_are_refused_by_the_path_of_what_is_wrong_in_them() {
    let ground = TestServer::new().await;
    let long = "x".repeat(256 * 1024);
    let moment = "2026-03-01T12:00:00Z";
    for (job, path) in [
        (json!({}), ""),
        (json!({"kind": ""}), "/kind"),
        (json!({"kind": "a\u{0}"}), "/kind"),
        (json!({"kind": "a", "priority": 1001}), "/priority"),
        (
            json!({"kind": "a", "payload": {"b": "c\u{0}"}}),
            "/payload/b",
        ),
        (json!({"kind": "a", "payload": long}), "/payload"),
        (
            json!({"kind": "a", "run_at": moment, "run_in_ms": 1}),
            "/run_in_ms",
        ),
        (
            json!({"kind": "a", "run_in_ms": 31_622_400_001u64}),
            "/run_in_ms",
        ),
        (json!({"kind": "a", "max_attempts": 0}), "/max_attempts"),
        (json!({"kind": "a", "timeout_ms": 0}), "/timeout_ms"),
        (
            json!({"kind": "a", "dedup_key": "k".repeat(256)}),
            "/dedup_key",
        ),
        (
            json!({"kind": "a", "dedup_window_ms": 1}),
            "/dedup_window_ms",
        ),
        (
            json!({"kind": "a", "dedup_key": "k", "dedup_window_ms": 0}),
            "/dedup_window_ms",
        ),
        (json!({"kind": "a", "colour": 1}), "/colour"),
    ] {
        enqueue(&ground, job.clone()).await.refused("invalid", path);
        if path.is_empty() {
            continue;
        }
        let batch = json!({"jobs": [{"kind": "fine"}, job]});
        let answer = ground.post(BATCH, &ground.admin, batch).await;
        answer.refused("invalid", &format!("/jobs/1{path}"));
    }
    ground
        .post(BATCH, &ground.admin, json!({"jobs": []}))
        .await
        .refused("invalid", "/jobs");
    nothing_is_queued(&ground).await;
}

#[tokio::test]
async fn more_jobs_than_a_batch_takes_are_refused() {
    let ground = TestServer::new().await;
    let jobs = |count: usize| json!({"jobs": vec![json!({"kind": "a"}); count]});
    let answer = ground.post(BATCH, &ground.admin, jobs(10_001)).await;
    answer.refused("invalid", "/jobs");
    nothing_is_queued(&ground).await;
    ground
        .post(BATCH, &ground.admin, jobs(10_000))
        .await
        .expect(201);
}

#[tokio::test]
async fn jobs_are_listed_newest_first_by_queue_and_status() {
    let ground = TestServer::new().await;
    let jobs = json!({"jobs": vec![json!({"kind": "a"}); 5]});
    ground
        .post(BATCH, &ground.admin, jobs.clone())
        .await
        .expect(201);
    let path = "/v1/queues/others/jobs/batch";
    ground.post(path, &ground.admin, jobs).await.expect(201);
    let claim = json!({"worker": "w", "max": 2});
    ground
        .post("/v1/queues/emails/claim", &ground.admin, claim)
        .await
        .expect(200);
    let ids = async |path: &str| -> Vec<i64> {
        let jobs = ground.all_pages(path, &ground.admin, 2).await;
        jobs.iter().map(|job| job["id"].as_i64().unwrap()).collect()
    };
    let all = ids("/v1/jobs").await;
    assert_eq!(all.len(), 10);
    assert!(all.is_sorted_by(|a, b| a > b));
    assert_eq!(ids(JOBS).await.len(), 5);
    assert_eq!(ids("/v1/jobs?queue=emails").await, ids(JOBS).await);
    assert_eq!(ids(&format!("{JOBS}?status=running")).await.len(), 2);
    assert_eq!(ids("/v1/jobs?status=queued&queue=others").await.len(), 5);
    assert_eq!(ids("/v1/jobs?queue=a%00b").await, [0i64; 0]);
    let wrong = ground.get("/v1/jobs?status=waiting", &ground.admin).await;
    wrong.refused("invalid_parameter", "query");
    let wrong = ground.get("/v1/jobs?after=soon", &ground.admin).await;
    wrong.refused("invalid_parameter", "after");
}

#[tokio::test]
async fn a_queued_job_is_cancelled_a_running_or_ended_one_is_not() {
    let ground = TestServer::new().await;
    let cancel = async |id: &Value| {
        let path = format!("/v1/jobs/{id}/cancel");
        ground.post(&path, &ground.admin, Value::Null).await
    };
    let queued = enqueue(&ground, json!({"kind": "a", "run_in_ms": 60_000}))
        .await
        .expect(201);
    let cancelled = cancel(&queued["id"]).await.expect(200);
    assert_eq!(cancelled["status"], "failed");
    assert_eq!(cancelled["last_error"], "cancelled");
    cancel(&queued["id"]).await.refused("already_finished", "");
    let running = enqueue(&ground, json!({"kind": "a"})).await.expect(201);
    let claim = json!({"worker": "w"});
    ground
        .post("/v1/queues/emails/claim", &ground.admin, claim)
        .await
        .expect(200);
    cancel(&running["id"]).await.refused("job_running", "");
    cancel(&json!(999_999)).await.refused("not_found", "");
}

#[tokio::test]
async fn a_workers_key_sees_and_cancels_only_jobs_of_its_queues() {
    let ground = TestServer::new().await;
    let queues = vec!["others".to_owned()];
    let key = ground.key(KeyScope::Worker { queues }).await;
    let hidden = enqueue(&ground, json!({"kind": "a"})).await.expect(201);
    let own = ground
        .post("/v1/queues/others/jobs", &key, json!({"kind": "a"}))
        .await;
    let own = own.expect(201);
    let path = format!("/v1/jobs/{}", hidden["id"]);
    ground.get(&path, &key).await.refused("not_found", "");
    let cancel = ground
        .post(&format!("{path}/cancel"), &key, Value::Null)
        .await;
    cancel.refused("not_found", "");
    assert_eq!(job(&ground, &hidden["id"]).await["status"], "queued");
    ground
        .get(&format!("/v1/jobs/{}", own["id"]), &key)
        .await
        .expect(200);
    let path = format!("/v1/jobs/{}/cancel", own["id"]);
    ground.post(&path, &key, Value::Null).await.expect(200);
}

#[tokio::test]
async fn the_callers_trace_context_reaches_the_worker() {
    let ground = TestServer::new().await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("traceparent", trace)];
    let new = json!({"kind": "a"});
    let method = axum::http::Method::POST;
    let answer = ground
        .call_with(method, JOBS, &ground.admin, &headers, new)
        .await;
    answer.expect(201);
    let claim = json!({"worker": "w"});
    let claimed = ground
        .post("/v1/queues/emails/claim", &ground.admin, claim)
        .await
        .expect(200);
    assert_eq!(claimed["jobs"][0]["trace_context"], trace);
}
