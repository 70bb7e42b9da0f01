//! One bad item in a batch: the others are started and written regardless.

use crate::dispatch_env::DispatchEnv;
use crate::faulty_engine::Fault;
use crate::fixtures::{cycle, options};
use crate::logs;
use leasehold_core::{RequestId, RequestStatus};
use leasehold_runtime::DispatcherOptions;
use leasehold_testbed::{BackendKind, TestWorkspace};
use std::time::Duration;
use tracing::Level;

const POISON_ADD: &str = include_str!("../sql/poison_add.sql");
const POISON_REMOVE: &str = include_str!("../sql/poison_remove.sql");
/// The priority of requests that the constraint rejects.
const POISONED: i16 = 13;

scenarios! {
    both: panicking_item_does_not_affect_others, hanging_item_does_not_affect_others,
        rejected_item_does_not_affect_others;
    postgres: item_that_cannot_be_written_does_not_affect_others;
}

/// Enqueues five requests; returns four of them and the third.
async fn five(env: &DispatchEnv) -> (TestWorkspace, Vec<RequestId>, RequestId) {
    let workspace = env.workspace(10).await;
    let mut ids = env.enqueue(&workspace, 5).await;
    let bad = ids.remove(2);
    (workspace, ids, bad)
}

async fn assert_all_started(env: &DispatchEnv, workspace: &TestWorkspace, ids: &[RequestId]) {
    for id in ids {
        assert_eq!(env.status(workspace, *id).await, RequestStatus::Dispatched);
    }
}

async fn panicking_item_does_not_affect_others(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let (workspace, others, bad) = five(&env).await;
    env.engine.inject(bad, &[Fault::Panics]);
    let dispatcher = env.dispatcher();
    let done = cycle(&dispatcher).await;
    assert_eq!((done.dispatched, done.released), (4, 1));
    assert_all_started(&env, &workspace, &others).await;
    // The outcome of a panicked start is unknown.
    let request = env.get(&workspace, bad).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!((request.attempt_count, request.dispatch_failures), (1, 0));
    assert!(request.execution.is_some());
    let named = format!("request={bad}");
    logs::assert_once(Level::ERROR, &["Error processing queue item", &named]);
    crate::assert_event("Error processing queue item");
    assert_eq!(logs::count(Level::WARN, &[&named]), 0, "it is logged once");
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn hanging_item_does_not_affect_others(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let (workspace, others, bad) = five(&env).await;
    env.engine.inject(bad, &[Fault::Hangs]);
    let dispatcher = env.dispatcher_with(DispatcherOptions {
        start_timeout: Duration::from_secs(10),
        ..options("dispatcher")
    });
    let done = cycle(&dispatcher).await;
    assert_eq!((done.dispatched, done.released), (4, 1));
    assert_all_started(&env, &workspace, &others).await;
    let request = env.get(&workspace, bad).await;
    assert!(request.last_error.unwrap().contains("no answer within"));
    assert!(request.execution.is_some());
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn rejected_item_does_not_affect_others(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let (workspace, others, bad) = five(&env).await;
    env.engine.inject(bad, &[Fault::Refused]);
    let done = cycle(&env.dispatcher()).await;
    assert_eq!((done.dispatched, done.released), (4, 1));
    assert_all_started(&env, &workspace, &others).await;
    assert_eq!(env.get(&workspace, bad).await.dispatch_failures, 1);
    assert_eq!(env.in_use(&workspace).await, 4);
}

/// A batch that the database rejects is written row by row.
async fn item_that_cannot_be_written_does_not_affect_others() {
    let env = DispatchEnv::with_manual_clock(BackendKind::Postgres).await;
    let workspace = env.workspace(10).await;
    let bad = env
        .enqueue_with(&workspace, 1, |new| new.priority = POISONED)
        .await[0];
    let others = env.enqueue(&workspace, 4).await;
    let client = env.sql_client().await;
    client.batch_execute(POISON_ADD).await.unwrap();
    let dispatcher = env.dispatcher();
    let done = cycle(&dispatcher).await;
    assert_eq!((done.dispatched, done.lost), (4, 1));
    assert_all_started(&env, &workspace, &others).await;
    // It runs and keeps its claim until the lease expires.
    assert_eq!(env.status(&workspace, bad).await, RequestStatus::Claimed);
    let named = format!("request={bad}");
    logs::assert_once(Level::ERROR, &["Error processing queue item", &named]);
    // The dispatcher is not blocked by it.
    let next = env.enqueue_one(&workspace).await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_all_started(&env, &workspace, &[next]).await;
    client.batch_execute(POISON_REMOVE).await.unwrap();
    env.pass_backoffs();
    crate::fixtures::round(&env.recoverer()).await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let execution = env.execution(&workspace, bad).await;
    assert_eq!(env.engine.starts_of(execution), 2);
    let mut executions = vec![execution];
    for id in others.into_iter().chain([next]) {
        executions.push(env.execution(&workspace, id).await);
    }
    env.assert_one_run_each(executions).await;
}
