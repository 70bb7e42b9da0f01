//! The overview: what goes on in the whole server, read once for all who look at the same time.

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
const PATIENCE: Duration = Duration::from_secs(30);

async fn overview(ground: &TestServer) -> Value {
    ground.get("/v1/overview", &ground.admin).await.expect(200)
}

async fn says_what_goes_on(on: BackendKind) {
    let ground = TestServer::on(on).await;
    let (busy, idle) = (ground.workspace(3).await, ground.workspace(1).await);
    ground.running(&busy).await;
    let requests = busy.path("/requests");
    let made = ground.post(&requests, &busy.key, busy.order()).await;
    made.expect(201);
    let gone = ground.workspace(1).await;
    let gone = gone.path("");
    let deleted = ground.call(Method::DELETE, &gone, &ground.admin, Value::Null);
    assert_eq!(deleted.await.status, 204);
    let limit = QueueChange {
        limit: Some(Some(4)),
        ..QueueChange::default()
    };
    ground.store.queue_update("mail", &limit).await.unwrap();
    let jobs = vec![NewJob::new("mail", "send", JsonText::default()); 3];
    ops::job::enqueue(&*ground.store, &jobs).await.unwrap();
    let claim = JobClaim {
        queue: "mail".to_owned(),
        worker: "w".to_owned(),
        max: 1,
        lease: None,
    };
    ground.store.job_claim(&claim).await.unwrap();

    let shown = overview(&ground).await;
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
    let alone = ground.get(&busy.path(""), &busy.key).await.expect(200);
    assert_eq!(busiest[0], alone, "as the workspace itself is shown");
    let queue = json!({"name": "mail", "limit": 4, "paused": false, "waiting": 2, "more_waiting": false, "running": 1});
    assert_eq!(shown["queues"], json!([queue]));
}

#[tokio::test]
async fn it_says_what_goes_on_on_sqlite() {
    says_what_goes_on(BackendKind::Sqlite).await;
}

#[tokio::test]
async fn it_says_what_goes_on_on_postgres() {
    says_what_goes_on(BackendKind::Postgres).await;
}

#[tokio::test]
async fn an_empty_server_has_an_empty_overview() {
    let ground = TestServer::new().await;
    let shown = overview(&ground).await;
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
async fn it_says_how_the_engine_is_at_once() {
    let ground = TestServer::new().await;
    let down = EngineFacts::Down {
        error: "no answer".to_owned(),
    };
    for (facts, shown) in [
        (EngineFacts::Well, json!({"name": "test", "state": "well"})),
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
        ground.engine.set_facts(facts);
        assert_eq!(overview(&ground).await["engine"], shown);
    }
}

#[tokio::test]
async fn what_it_says_is_soon_no_longer_the_old() {
    let ground = TestServer::new().await;
    assert_eq!(overview(&ground).await["workspaces"], 0);
    ground.workspace(1).await;
    let new = || async { overview(&ground).await["workspaces"] == 1 };
    assert!(eventually(PATIENCE, new).await);
}

#[tokio::test]
async fn the_store_is_asked_once_a_second_however_many_look() {
    let ground = TestServer::new().await;
    let began = Instant::now();
    let looks = (0..200).map(|_| overview(&ground));
    let shown = futures::future::join_all(looks).await;
    let moments: BTreeSet<&str> = shown.iter().map(|o| o["at"].as_str().unwrap()).collect();
    let most = 1 + began.elapsed().as_secs();
    assert!(
        moments.len() as u64 <= most,
        "asked {} times, {most} are enough",
        moments.len()
    );
}
