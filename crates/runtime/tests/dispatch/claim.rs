//! The claim: nothing to claim, the database away, claims that meet each other.

use crate::cast::{cycle, options, parallel, round};
use crate::dispatch_env::{DispatchEnv, Setup, postgres_address, until};
use crate::faulty_store::Outage;
use crate::logs;
use leasehold_core::RequestStatus;
use leasehold_runtime::Error;
use leasehold_store::ErrorKind;
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;
use tracing::Level;

const REQUEST_LOCK: &str = include_str!("../sql/request_lock.sql");

scenarios! {
    both: empty_queue, claim_fails, answer_of_a_claim_is_lost, parallel_dispatchers_start_each_request_once;
    postgres: database_lost_at_the_claim, rows_that_somebody_has_locked_are_skipped;
}

async fn empty_queue(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    scene.site(1).await;
    let done = cycle(&scene.dispatcher()).await;
    assert_eq!((done.batches, done.dispatched), (vec![], 0));
    assert_eq!(scene.engine.calls().starts, []);
    for level in [Level::INFO, Level::WARN, Level::ERROR] {
        assert_eq!(logs::count(level, &[]), 0, "{}", logs::all());
    }
}

async fn claim_fails(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.faults.inject("request_claim", &[Outage::CallLost]);
    let dispatcher = scene.dispatcher();
    let error = dispatcher.run_once(&CancellationToken::new()).await;
    let Err(Error::Store(error)) = error else {
        panic!("it failed: {error:?}");
    };
    assert!(matches!(error.kind, ErrorKind::Unavailable(_)));
    let request = scene.get(&site, id).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!(request.attempt_count, 0);
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn answer_of_a_claim_is_lost(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.faults.inject("request_claim", &[Outage::AnswerLost]);
    let dispatcher = scene.dispatcher();
    let lost = dispatcher.run_once(&CancellationToken::new()).await;
    assert!(lost.is_err());
    // Claimed, and nobody knows: its lease is not renewed and runs out.
    assert_eq!(scene.status(&site, id).await, RequestStatus::Claimed);
    assert_eq!(cycle(&dispatcher).await.dispatched, 0);
    scene.wait_out();
    round(&scene.recoverer()).await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let execution = scene.execution(&site, id).await;
    scene.assert_one_run_each(vec![execution]).await;
}

async fn database_lost_at_the_claim() {
    let proxy = FaultProxy::to(&postgres_address()).await;
    let setup = Setup {
        postgres: Some(proxy.address()),
        ..Setup::default()
    };
    let scene = DispatchEnv::with(BackendKind::Postgres, setup).await;
    let site = scene.site(3).await;
    let running = scene.run(options("dispatcher"));
    until("it has the lock and sleeps", async || {
        scene.faults.calls("wake_arm") > 0
    })
    .await;
    proxy.drop_requests();
    // Sent by another process, since ours has no connection.
    let ids = crate::dispatch_env::enqueue(&*scene.other_process(), &site, 3, |_| {}).await;
    scene
        .store
        .wake_ring(leasehold_store::wake::Wake::Work)
        .await
        .ok();
    // A claim settles first, so either of the two can be what failed.
    let said = ["dispatcher cannot do its work", "request_"];
    until("it says so", async || logs::count(Level::ERROR, &said) == 1).await;
    proxy.pass();
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
    for id in ids {
        let request = scene.get(&site, id).await;
        assert_eq!((request.attempt_count, request.dispatch_failures), (0, 0));
    }
    running.stop().await;
}

async fn parallel_dispatchers_start_each_request_once(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        let site = scene.site(100).await;
        let ids = scene.enqueue(&site, 30).await;
        asked.extend(ids.into_iter().map(|id| (site, id)));
    }
    let first = scene.dispatcher_with(parallel("first"));
    let second = scene.dispatcher_with(parallel("second"));
    let (one, two) = tokio::join!(cycle(&first), cycle(&second));
    assert_eq!(one.dispatched + two.dispatched, 90);
    let mut executions = Vec::new();
    for (site, id) in asked {
        executions.push(scene.execution(&site, id).await);
    }
    let mut starts = HashMap::new();
    for execution in scene.engine.calls().starts {
        *starts.entry(execution).or_insert(0) += 1;
    }
    assert!(starts.values().all(|times| *times == 1));
    scene.assert_one_run_each(executions).await;
}

async fn rows_that_somebody_has_locked_are_skipped() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(10).await;
    let ids = scene.enqueue(&site, 3).await;
    let mut hand = scene.by_hand().await;
    let transaction = hand.transaction().await.unwrap();
    transaction
        .execute(REQUEST_LOCK, &[&ids[1].0])
        .await
        .unwrap();
    let dispatcher = scene.dispatcher();
    assert_eq!(cycle(&dispatcher).await.dispatched, 2);
    assert_eq!(scene.status(&site, ids[1]).await, RequestStatus::Pending);
    assert_eq!(cycle(&dispatcher).await.dispatched, 0);
    transaction.commit().await.unwrap();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}
