//! A stop under load: jobs claimed for callers that did not receive them are returned before the server ends.

use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::Page;
use leasehold_store::job::{JobFilter, NewJob};
use leasehold_testbed::{BackendKind, TestServer};
use leasehold_testkit::{HttpConnection, eventually};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// Number of repetitions: the race under test is short.
const ROUNDS: usize = 8;
const WAITING: usize = 20;

/// Claims with a long poll and returns the ids of the jobs received.
async fn claim_with_long_poll(address: SocketAddr, key: String, number: usize) -> Vec<JobId> {
    let body = format!(r#"{{"worker": "w{number}", "wait_ms": 60000, "lease_ms": 600000}}"#);
    let Ok(mut connection) = HttpConnection::open(address).await else {
        return Vec::new();
    };
    let claim = connection.call("POST", "/v1/queues/q/claim", &key, Some(body.as_bytes()));
    let Ok(answer) = claim.await else {
        return Vec::new();
    };
    let claimed: Value = serde_json::from_slice(&answer.body).unwrap();
    let jobs = claimed["jobs"].as_array().unwrap();
    jobs.iter()
        .map(|job| JobId(job["id"].as_i64().unwrap()))
        .collect()
}

async fn undelivered_jobs_are_returned_at_stop(on: BackendKind) {
    for _ in 0..ROUNDS {
        let server = TestServer::on(on).await;
        let (address, serving) = server.serve(None).await;
        let waiting: Vec<_> = (0..WAITING)
            .map(|number| tokio::spawn(claim_with_long_poll(address, server.admin.clone(), number)))
            .collect();
        let all_wait = async || server.state.waiting_claims() == WAITING;
        assert!(eventually(Duration::from_secs(120), all_wait).await);
        let store = server.store.clone();
        let enqueueing = tokio::spawn(async move {
            for _ in 0..WAITING {
                let job = NewJob::new("q", "k", JsonText::default());
                store.job_enqueue(&[job]).await.unwrap();
            }
        });
        let some_got_one = async || server.state.waiting_claims() < WAITING - 2;
        assert!(eventually(Duration::from_secs(120), some_got_one).await);
        server.stop.cancel();
        assert_eq!(serving.await.unwrap().cut, 0);
        let filter = JobFilter {
            queue: None,
            status: Some(JobStatus::Running),
        };
        let running = server.store.job_list(&filter, Page::first(1000)).await;
        let running: BTreeSet<JobId> = running.unwrap().iter().map(|job| job.id).collect();
        let mut received = BTreeSet::new();
        for claim in waiting {
            received.extend(claim.await.unwrap());
        }
        assert_eq!(running, received);
        enqueueing.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undelivered_jobs_are_returned_at_stop_on_sqlite() {
    undelivered_jobs_are_returned_at_stop(BackendKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undelivered_jobs_are_returned_at_stop_on_postgres() {
    undelivered_jobs_are_returned_at_stop(BackendKind::Postgres).await;
}
