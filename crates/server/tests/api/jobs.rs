//! Jobs: enqueue, show, list and cancel them.

use leasehold_core::key::KeyScope;
use leasehold_testbed::{TestResponse, TestServer};
use serde_json::{Value, json};

const JOBS: &str = "/v1/queues/emails/jobs";
const BATCH: &str = "/v1/queues/emails/jobs/batch";

async fn enqueue(server: &TestServer, job: Value) -> TestResponse {
    server.post(JOBS, &server.admin, job).await
}

async fn job(server: &TestServer, id: &Value) -> Value {
    server
        .get(&format!("/v1/jobs/{id}"), &server.admin)
        .await
        .expect(200)
}

async fn assert_no_jobs(server: &TestServer) {
    let jobs = server.get("/v1/jobs", &server.admin).await.expect(200);
    assert_eq!(jobs["items"], json!([]));
}

#[tokio::test]
async fn job_is_returned_as_enqueued() {
    let server = TestServer::with_manual_clock().await;
    let new = json!({
        "kind": "welcome", "payload": {"to": ["ada", 1.50, null]}, "priority": 9, "run_in_ms": 1_500, "max_attempts": 4, "timeout_ms": 250,
        "backoff": {"base_ms": 10, "factor": 3.0, "max_ms": 500, "jitter": 0.5}, "dedup_key": "ada", "dedup_window_ms": 60_000,
    });
    let answer = enqueue(&server, new.clone()).await.expect(201);
    assert_eq!(answer["inserted"], true);
    let shown = job(&server, &answer["id"]).await;
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
async fn payload_keeps_its_json_text() {
    let server = TestServer::new().await;
    let body = r#"{"kind": "a", "payload": {"b": 1.50, "a": 9007199254740993}}"#;
    let answer = server
        .call_raw(axum::http::Method::POST, JOBS, &server.admin, body)
        .await;
    let id = answer.expect(201)["id"].clone();
    let shown = server.get(&format!("/v1/jobs/{id}"), &server.admin).await;
    assert!(shown.text.contains("9007199254740993"), "{}", shown.text);
}

#[tokio::test]
async fn held_dedup_key_returns_the_job_that_holds_it() {
    let server = TestServer::new().await;
    let new = json!({"kind": "welcome", "dedup_key": "ada"});
    let first = enqueue(&server, new.clone()).await.expect(201);
    let second = enqueue(&server, new).await.expect(200);
    assert_eq!(second, json!({"id": first["id"], "inserted": false}));
}

#[tokio::test]
async fn batch_is_enqueued_completely_and_returned_in_order() {
    let server = TestServer::new().await;
    let jobs: Vec<Value> = (0..50)
        .map(|n| json!({"kind": "a", "payload": n}))
        .collect();
    let answer = server
        .post(BATCH, &server.admin, json!({"jobs": jobs}))
        .await
        .expect(201);
    for (n, enqueued) in answer["jobs"].as_array().unwrap().iter().enumerate() {
        assert_eq!(job(&server, &enqueued["id"]).await["payload"], n);
    }
}

#[tokio::test]
async fn invalid_jobs_are_rejected_with_the_path() {
    let server = TestServer::new().await;
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
        enqueue(&server, job.clone())
            .await
            .expect_problem("invalid", path);
        if path.is_empty() {
            continue;
        }
        let batch = json!({"jobs": [{"kind": "fine"}, job]});
        let answer = server.post(BATCH, &server.admin, batch).await;
        answer.expect_problem("invalid", &format!("/jobs/1{path}"));
    }
    server
        .post(BATCH, &server.admin, json!({"jobs": []}))
        .await
        .expect_problem("invalid", "/jobs");
    assert_no_jobs(&server).await;
}

#[tokio::test]
async fn batch_over_the_limit_is_rejected() {
    let server = TestServer::new().await;
    let jobs = |count: usize| json!({"jobs": vec![json!({"kind": "a"}); count]});
    let answer = server.post(BATCH, &server.admin, jobs(10_001)).await;
    answer.expect_problem("invalid", "/jobs");
    assert_no_jobs(&server).await;
    server
        .post(BATCH, &server.admin, jobs(10_000))
        .await
        .expect(201);
}

#[tokio::test]
async fn jobs_are_listed_newest_first_by_queue_and_status() {
    let server = TestServer::new().await;
    let jobs = json!({"jobs": vec![json!({"kind": "a"}); 5]});
    server
        .post(BATCH, &server.admin, jobs.clone())
        .await
        .expect(201);
    let path = "/v1/queues/others/jobs/batch";
    server.post(path, &server.admin, jobs).await.expect(201);
    let claim = json!({"worker": "w", "max": 2});
    server
        .post("/v1/queues/emails/claim", &server.admin, claim)
        .await
        .expect(200);
    let ids = async |path: &str| -> Vec<i64> {
        let jobs = server.all_pages(path, &server.admin, 2).await;
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
    let wrong = server.get("/v1/jobs?status=waiting", &server.admin).await;
    wrong.expect_problem("invalid_parameter", "query");
    let wrong = server.get("/v1/jobs?after=soon", &server.admin).await;
    wrong.expect_problem("invalid_parameter", "after");
}

#[tokio::test]
async fn only_a_queued_job_can_be_cancelled() {
    let server = TestServer::new().await;
    let cancel = async |id: &Value| {
        let path = format!("/v1/jobs/{id}/cancel");
        server.post(&path, &server.admin, Value::Null).await
    };
    let queued = enqueue(&server, json!({"kind": "a", "run_in_ms": 60_000}))
        .await
        .expect(201);
    let cancelled = cancel(&queued["id"]).await.expect(200);
    assert_eq!(cancelled["status"], "failed");
    assert_eq!(cancelled["last_error"], "cancelled");
    cancel(&queued["id"])
        .await
        .expect_problem("already_finished", "");
    let running = enqueue(&server, json!({"kind": "a"})).await.expect(201);
    let claim = json!({"worker": "w"});
    server
        .post("/v1/queues/emails/claim", &server.admin, claim)
        .await
        .expect(200);
    cancel(&running["id"])
        .await
        .expect_problem("job_running", "");
    cancel(&json!(999_999))
        .await
        .expect_problem("not_found", "");
}

#[tokio::test]
async fn worker_key_reads_and_cancels_only_jobs_of_its_queues() {
    let server = TestServer::new().await;
    let queues = vec!["others".to_owned()];
    let key = server.key(KeyScope::Worker { queues }).await;
    let hidden = enqueue(&server, json!({"kind": "a"})).await.expect(201);
    let own = server
        .post("/v1/queues/others/jobs", &key, json!({"kind": "a"}))
        .await;
    let own = own.expect(201);
    let path = format!("/v1/jobs/{}", hidden["id"]);
    server
        .get(&path, &key)
        .await
        .expect_problem("not_found", "");
    let cancel = server
        .post(&format!("{path}/cancel"), &key, Value::Null)
        .await;
    cancel.expect_problem("not_found", "");
    assert_eq!(job(&server, &hidden["id"]).await["status"], "queued");
    server
        .get(&format!("/v1/jobs/{}", own["id"]), &key)
        .await
        .expect(200);
    let path = format!("/v1/jobs/{}/cancel", own["id"]);
    server.post(&path, &key, Value::Null).await.expect(200);
}

#[tokio::test]
async fn trace_context_of_the_caller_reaches_the_worker() {
    let server = TestServer::new().await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("traceparent", trace)];
    let new = json!({"kind": "a"});
    let method = axum::http::Method::POST;
    let answer = server
        .call_with(method, JOBS, &server.admin, &headers, new)
        .await;
    answer.expect(201);
    let claim = json!({"worker": "w"});
    let claimed = server
        .post("/v1/queues/emails/claim", &server.admin, claim)
        .await
        .expect(200);
    assert_eq!(claimed["jobs"][0]["trace_context"], trace);
}
