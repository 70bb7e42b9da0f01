//! The quota of worker keys: bytes of open jobs.

use leasehold_core::key::KeyScope;
use leasehold_server::ServerOptions;
use leasehold_testbed::{BackendKind, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::time::Duration;

/// 250 MiB were stored in four seconds with one worker key.
async fn open_jobs_of_a_worker_key_are_limited_by_bytes(kind: BackendKind) {
    let options = ServerOptions {
        key_max_open_bytes: 20_000,
        ..ServerOptions::default()
    };
    let server = TestServer::on_with_options(kind, options).await;
    let worker = |queue: &str| KeyScope::Worker {
        queues: vec![queue.to_owned()],
    };
    let (key, other) = (
        server.key(worker("mail")).await,
        server.key(worker("other")).await,
    );
    let job = || json!({"kind": "send", "payload": "x".repeat(998)});
    let batch = |n: usize| json!({"jobs": vec![job(); n]});
    let post = async |queue: &str, key: &str, body: Value| {
        let path = format!("/v1/queues/{queue}/jobs/batch");
        server.post(&path, key, body).await
    };
    let mut ids = Vec::new();
    let full = loop {
        let answer = post("mail", &key, batch(1)).await;
        if answer.status != 201 {
            break answer;
        }
        ids.push(answer.expect(201)["jobs"][0]["id"].as_i64().unwrap());
        assert!(ids.len() < 20, "the quota is never reached");
    };
    // A job counts about 1,000 bytes and 512 more.
    assert!((12..=13).contains(&ids.len()), "{}", ids.len());
    assert_eq!(full.status, 429);
    assert_eq!(full.header("retry-after"), "5");
    let problem = full.expect_problem("quota_exceeded", "");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("exceed its maximum of 20000"), "{detail}");
    // Other keys are not affected, and an administrator is not limited.
    post("other", &other, batch(5)).await.expect(201);
    post("mail", &server.admin, batch(1)).await.expect(201);
    for id in ids {
        let path = format!("/v1/jobs/{id}/cancel");
        server.post(&path, &key, Value::Null).await.expect(200);
    }
    let room = eventually(Duration::from_secs(60), || async {
        post("mail", &key, batch(1)).await.status == 201
    });
    assert!(room.await, "ended jobs release their bytes");
}

#[tokio::test]
async fn open_jobs_of_a_worker_key_are_limited_by_bytes_on_sqlite() {
    open_jobs_of_a_worker_key_are_limited_by_bytes(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn open_jobs_of_a_worker_key_are_limited_by_bytes_on_postgres() {
    open_jobs_of_a_worker_key_are_limited_by_bytes(BackendKind::Postgres).await;
}

/// Progress used to count nothing: a key with few jobs could store any number of bytes.
async fn progress_counts_towards_the_quota_of_a_worker_key(kind: BackendKind) {
    let options = ServerOptions {
        key_max_open_bytes: 20_000,
        ..ServerOptions::default()
    };
    let server = TestServer::on_with_options(kind, options).await;
    let scope = KeyScope::Worker {
        queues: vec!["mail".to_owned()],
    };
    let key = server.key(scope).await;
    let jobs = json!({"jobs": vec![json!({"kind": "send"}); 10]});
    let enqueued = server.post("/v1/queues/mail/jobs/batch", &key, jobs).await;
    enqueued.expect(201);
    let claim = json!({"worker": "w", "max": 10});
    let claimed = server.post("/v1/queues/mail/claim", &key, claim).await;
    let claimed = claimed.expect(200)["jobs"].as_array().unwrap().clone();
    assert_eq!(claimed.len(), 10);
    // Random digits, which a store cannot compress much.
    let progress = (0..400_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string());
    let progress: String = progress.collect();
    let mut reported = 0;
    for job in &claimed {
        let report =
            json!({"worker": "w", "id": job["id"], "token": job["token"], "progress": progress});
        let answer = server.post("/v1/jobs/progress", &key, report).await;
        match answer.status {
            200 => reported += 1,
            _ => drop(answer.expect_problem("quota_exceeded", "")),
        }
    }
    // Ten jobs count 5,120 bytes, a report about 3,800.
    assert!((3..=5).contains(&reported), "{reported}");
    let queues = ["mail".to_owned()];
    let open = server.store.queue_open_bytes(&queues, u64::MAX).await;
    let open = open.unwrap();
    assert!(open > 5_200 + reported * 1_500, "{open}");
    assert!(open <= 22_500, "{open}");
}

#[tokio::test]
async fn progress_counts_towards_the_quota_of_a_worker_key_on_sqlite() {
    progress_counts_towards_the_quota_of_a_worker_key(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn progress_counts_towards_the_quota_of_a_worker_key_on_postgres() {
    progress_counts_towards_the_quota_of_a_worker_key(BackendKind::Postgres).await;
}
