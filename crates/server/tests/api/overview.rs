//! The overview of the whole server, cached for concurrent callers.

use axum::http::Method;
use leasehold_core::JsonText;
use leasehold_core::job::JobClaim;
use leasehold_core::why::EngineFacts;
use leasehold_ops as ops;
use leasehold_store::job::NewJob;
use leasehold_store::queue::QueueChange;
use leasehold_testbed::{BackendKind, TestServer};
use leasehold_testkit::eventually;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Long enough for a slow machine.
const TIMEOUT: Duration = Duration::from_secs(120);

async fn overview(server: &TestServer) -> Value {
    server.get("/v1/overview", &server.admin).await.expect(200)
}

async fn overview_has_engine_requests_workspaces_and_queues(on: BackendKind) {
    let server = TestServer::on(on).await;
    let (busy, idle) = (server.workspace(3).await, server.workspace(1).await);
    server.enqueue_running(&busy).await;
    let requests = busy.path("/requests");
    let made = server.post(&requests, &busy.key, busy.order()).await;
    made.expect(201);
    let gone = server.workspace(1).await;
    let gone = gone.path("");
    let deleted = server.call(Method::DELETE, &gone, &server.admin, Value::Null);
    assert_eq!(deleted.await.status, 204);
    let limit = QueueChange {
        limit: Some(Some(4)),
        ..QueueChange::default()
    };
    server
        .store
        .queue_update("mail", &limit, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    let jobs = vec![NewJob::new("mail", "send", JsonText::default()); 3];
    ops::job::enqueue(&*server.store, &jobs).await.unwrap();
    let claim = JobClaim {
        queue: "mail".to_owned(),
        worker: "w".to_owned(),
        max: 1,
        lease: None,
    };
    server.store.job_claim(&claim).await.unwrap();

    let shown = overview(&server).await;
    assert!(shown["at"].is_string());
    assert_eq!(shown["engine"], json!({"name": "test", "state": "well"}));
    assert_eq!(shown["workspaces"], 2);
    assert_eq!(
        (
            &shown["requests"]["dispatched"],
            &shown["requests"]["pending"]
        ),
        (&json!(1), &json!(1))
    );
    let busiest = shown["busiest"].as_array().unwrap();
    let ids: Vec<&Value> = busiest.iter().map(|w| &w["workspace"]["id"]).collect();
    assert_eq!(ids, [&json!(busy.workspace), &json!(idle.workspace)]);
    let mut alone = server.get(&busy.path(""), &busy.key).await.expect(200);
    let open_bytes = alone.as_object_mut().unwrap().remove("open_bytes");
    assert!(open_bytes.unwrap().as_u64() > Some(2_000));
    assert_eq!(busiest[0], alone, "as the workspace itself is shown");
    let queue = json!({"name": "mail", "limit": 4, "paused": false, "waiting": 2, "more_waiting": false, "running": 1});
    assert_eq!(shown["queues"], json!([queue]));
}

#[tokio::test]
async fn overview_has_engine_requests_workspaces_and_queues_on_sqlite() {
    overview_has_engine_requests_workspaces_and_queues(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn overview_has_engine_requests_workspaces_and_queues_on_postgres() {
    overview_has_engine_requests_workspaces_and_queues(BackendKind::Postgres).await;
}

#[tokio::test]
async fn empty_server_has_an_empty_overview() {
    let server = TestServer::new().await;
    let shown = overview(&server).await;
    assert_eq!(
        (&shown["workspaces"], &shown["requests"]["pending"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(
        (&shown["busiest"], &shown["queues"]),
        (&json!([]), &json!([]))
    );
}

#[tokio::test]
async fn engine_health_is_not_cached() {
    let server = TestServer::new().await;
    let down = EngineFacts::Down {
        error: "no answer".to_owned(),
    };
    for (facts, shown) in [
        (
            EngineFacts::Healthy,
            json!({"name": "test", "state": "well"}),
        ),
        (
            down,
            json!({"name": "test", "state": "down", "error": "no answer"}),
        ),
        (
            EngineFacts::NotDispatchedHere,
            json!({"name": "test", "state": "not_dispatched_here"}),
        ),
        (
            EngineFacts::Missing,
            json!({"name": "test", "state": "none"}),
        ),
    ] {
        server.engine.set_facts(facts);
        assert_eq!(overview(&server).await["engine"], shown);
    }
}

#[tokio::test]
async fn overview_is_refreshed_after_a_second() {
    let server = TestServer::new().await;
    assert_eq!(overview(&server).await["workspaces"], 0);
    server.workspace(1).await;
    let new = || async { overview(&server).await["workspaces"] == 1 };
    assert!(eventually(TIMEOUT, new).await);
}

#[tokio::test]
async fn concurrent_calls_share_one_read_of_the_store() {
    let server = TestServer::new().await;
    let began = Instant::now();
    let reads = (0..200).map(|_| overview(&server));
    let shown = futures::future::join_all(reads).await;
    let moments: BTreeSet<&str> = shown.iter().map(|o| o["at"].as_str().unwrap()).collect();
    let most = 1 + began.elapsed().as_secs();
    assert!(
        moments.len() as u64 <= most,
        "the store was read {} times, expected at most {most}",
        moments.len()
    );
}
