//! The claim: an empty queue, a lost database, concurrent claims.

use crate::dispatch_env::{DispatchEnv, Setup, postgres_address, until};
use crate::faulty_store::StoreFault;
use crate::fixtures::{cycle, options, parallel, round};
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
    postgres: database_lost_at_the_claim, locked_rows_are_skipped;
}

async fn empty_queue(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    env.workspace(1).await;
    let logged = || [Level::INFO, Level::WARN, Level::ERROR].map(|level| logs::count(level, &[]));
    let before = logged();
    let done = cycle(&env.dispatcher()).await;
    assert_eq!((done.batches, done.dispatched), (vec![], 0));
    assert_eq!(env.engine.calls().starts, []);
    assert_eq!(logged(), before, "{}", logs::all());
}

async fn claim_fails(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.faults.inject("request_claim", &[StoreFault::CallLost]);
    let dispatcher = env.dispatcher();
    let error = dispatcher.run_once(&CancellationToken::new()).await;
    let Err(Error::Store(error)) = error else {
        panic!("it failed: {error:?}");
    };
    assert!(matches!(error.kind, ErrorKind::Unavailable(_)));
    let request = env.get(&workspace, id).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!(request.attempt_count, 0);
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn answer_of_a_claim_is_lost(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.faults
        .inject("request_claim", &[StoreFault::AnswerLost]);
    let dispatcher = env.dispatcher();
    let lost = dispatcher.run_once(&CancellationToken::new()).await;
    assert!(lost.is_err());
    // The request is claimed without the dispatcher knowing: its lease is not renewed and expires.
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Claimed);
    assert_eq!(cycle(&dispatcher).await.dispatched, 0);
    env.pass_backoffs();
    round(&env.recoverer()).await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let execution = env.execution(&workspace, id).await;
    env.assert_one_run_each(vec![execution]).await;
}

async fn database_lost_at_the_claim() {
    let proxy = FaultProxy::to(&postgres_address()).await;
    let setup = Setup {
        postgres: Some(proxy.address()),
        ..Setup::default()
    };
    let env = DispatchEnv::with(BackendKind::Postgres, setup).await;
    let workspace = env.workspace(3).await;
    let running = env.run(options("dispatcher"));
    until("the dispatcher has the lock and sleeps", async || {
        env.faults.calls("notification_arm") > 0
    })
    .await;
    proxy.drop_requests();
    // Enqueued by another process, since this one has no connection.
    let ids = crate::dispatch_env::enqueue(&*env.other_process(), &workspace, 3, |_| {}).await;
    env.store
        .notify(leasehold_store::notification::Notification::Work)
        .await
        .ok();
    // A claim settles first, so either of the two can be what failed.
    let expected = ["dispatcher failed to complete a round", "request_"];
    until("the failure is logged", async || {
        logs::count(Level::ERROR, &expected) == 1
    })
    .await;
    proxy.pass();
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
    for id in ids {
        let request = env.get(&workspace, id).await;
        assert_eq!((request.attempt_count, request.dispatch_failures), (0, 0));
    }
    running.stop().await;
}

async fn parallel_dispatchers_start_each_request_once(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let mut requests = Vec::new();
    for _ in 0..3 {
        let workspace = env.workspace(100).await;
        let ids = env.enqueue(&workspace, 30).await;
        requests.extend(ids.into_iter().map(|id| (workspace, id)));
    }
    let first = env.dispatcher_with(parallel("first"));
    let second = env.dispatcher_with(parallel("second"));
    let (one, two) = tokio::join!(cycle(&first), cycle(&second));
    assert_eq!(one.dispatched + two.dispatched, 90);
    let mut executions = Vec::new();
    for (workspace, id) in requests {
        executions.push(env.execution(&workspace, id).await);
    }
    let mut starts = HashMap::new();
    for execution in env.engine.calls().starts {
        *starts.entry(execution).or_insert(0) += 1;
    }
    assert!(starts.values().all(|times| *times == 1));
    env.assert_one_run_each(executions).await;
}

async fn locked_rows_are_skipped() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(10).await;
    let ids = env.enqueue(&workspace, 3).await;
    let mut client = env.sql_client().await;
    let transaction = client.transaction().await.unwrap();
    transaction
        .execute(REQUEST_LOCK, &[&ids[1].0])
        .await
        .unwrap();
    let dispatcher = env.dispatcher();
    assert_eq!(cycle(&dispatcher).await.dispatched, 2);
    assert_eq!(env.status(&workspace, ids[1]).await, RequestStatus::Pending);
    assert_eq!(cycle(&dispatcher).await.dispatched, 0);
    transaction.commit().await.unwrap();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}
