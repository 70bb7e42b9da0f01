//! Unknown starts: the execution keeps its slot, and the same start is repeated until its outcome is known.

use crate::dispatch_env::{DispatchEnv, Setup, until};
use crate::faulty_engine::Fault;
use crate::faulty_store::StoreFault;
use crate::fixtures::cycle;
use crate::logs;
use leasehold_core::{ExecutionStatus, RequestStatus};
use leasehold_testbed::BackendKind;
use leasehold_testkit::{FaultProxy, TestTemporal};
use std::time::Duration;
use tracing::Level;

const EXECUTION_REMOVE: &str = include_str!("../sql/execution_remove.sql");

scenarios! {
    both: execution_is_reused_after_an_unknown_start, an_unknown_start_needs_no_second_slot,
        answer_of_a_start_is_lost_on_the_way, dispatched_could_not_be_written,
        answer_of_writing_dispatched_is_lost;
    postgres: execution_is_missing_at_the_retry;
}

async fn execution_is_reused_after_an_unknown_start(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::AnswerLost]);
    let dispatcher = env.dispatcher();
    assert_eq!(cycle(&dispatcher).await.released, 1);
    let request = env.get(&workspace, id).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!((request.attempt_count, request.dispatch_failures), (1, 0));
    let execution = request.execution.unwrap();
    let kept = env
        .store
        .execution_get(workspace.workspace, execution)
        .await;
    assert_eq!(kept.unwrap().unwrap().status, ExecutionStatus::Running);
    assert_eq!(env.in_use(&workspace).await, 1);
    let named = format!("request={id}");
    logs::assert_once(Level::WARN, &["outcome of the start unknown", &named]);
    // Not before its backoff has passed.
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let request = env.get(&workspace, id).await;
    assert_eq!(request.status, RequestStatus::Dispatched);
    assert_eq!(request.execution, Some(execution));
    assert_eq!(env.engine.starts_of(execution), 2);
    env.assert_one_run_each(vec![execution]).await;
}

async fn an_unknown_start_needs_no_second_slot(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let ids = env.enqueue(&workspace, 2).await;
    env.engine.inject(ids[0], &vec![Fault::CallLost; 3]);
    let dispatcher = env.dispatcher();
    for attempts in 1..=3 {
        assert_eq!(cycle(&dispatcher).await.released, 1);
        assert_eq!(env.get(&workspace, ids[0]).await.attempt_count, attempts);
        assert_eq!(env.in_use(&workspace).await, 1);
        assert_eq!(env.status(&workspace, ids[1]).await, RequestStatus::Pending);
        env.pass_backoffs();
    }
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_eq!(
        env.status(&workspace, ids[0]).await,
        RequestStatus::Dispatched
    );
    assert_eq!(env.get(&workspace, ids[0]).await.dispatch_failures, 0);
}

async fn answer_of_a_start_is_lost_on_the_way(on: BackendKind) {
    let proxy = FaultProxy::to(TestTemporal::shared().address()).await;
    let setup = Setup {
        manual_clock: true,
        temporal: Some(proxy.address()),
        call_timeout: Some(Duration::from_secs(5)),
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let dispatcher = env.dispatcher();
    until("the engine is connected", async || {
        leasehold_engine::Engine::health(&*env.engine).await.is_ok()
    })
    .await;
    proxy.hold_responses();
    assert_eq!(cycle(&dispatcher).await.released, 1);
    let execution = env.execution(&workspace, id).await;
    assert_eq!(env.in_use(&workspace).await, 1);
    proxy.cut();
    proxy.pass();
    until("the start is repeated", async || {
        env.pass_backoffs();
        cycle(&dispatcher).await.dispatched == 1
    })
    .await;
    assert_eq!(env.execution(&workspace, id).await, execution);
    env.assert_one_run_each(vec![execution]).await;
}

async fn execution_is_missing_at_the_retry() {
    let env = DispatchEnv::with_manual_clock(BackendKind::Postgres).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::CallLost]);
    let dispatcher = env.dispatcher();
    cycle(&dispatcher).await;
    let before = env.execution(&workspace, id).await;
    let client = env.sql_client().await;
    let removed = client.execute(EXECUTION_REMOVE, &[&before.0]).await;
    assert_eq!(removed.unwrap(), 1);
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let after = env.execution(&workspace, id).await;
    assert_ne!(after, before);
    assert_eq!(env.in_use(&workspace).await, 1);
    let named = format!("request={id}");
    let gone = format!("execution={before}");
    logs::assert_once(
        Level::WARN,
        &["Execution not found for retry", &named, &gone],
    );
    crate::assert_event("Execution not found for retry");
    env.assert_one_run_each(vec![after]).await;
}

async fn dispatched_could_not_be_written(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(3).await;
    let ids = env.enqueue(&workspace, 3).await;
    let faults = [StoreFault::CallLost, StoreFault::CallLost];
    env.faults.inject("request_dispatched", &faults);
    let dispatcher = env.dispatcher();
    let stop = tokio_util::sync::CancellationToken::new();
    // The cycle does not end before all outcomes are written.
    assert!(dispatcher.run_once(&stop).await.is_ok());
    logs::assert_once(
        Level::ERROR,
        &["dispatcher failed to write outcomes of starts"],
    );
    let mut executions = Vec::new();
    for id in ids {
        let request = env.get(&workspace, id).await;
        assert_eq!(request.status, RequestStatus::Dispatched);
        assert_eq!(request.attempt_count, 0);
        executions.extend(request.execution);
    }
    assert_eq!(env.engine.calls().starts.len(), 3);
    env.assert_one_run_each(executions).await;
}

async fn answer_of_writing_dispatched_is_lost(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.faults
        .inject("request_dispatched", &[StoreFault::AnswerLost]);
    let dispatcher = env.dispatcher();
    let stop = tokio_util::sync::CancellationToken::new();
    assert!(dispatcher.run_once(&stop).await.is_ok());
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    assert_eq!(env.path(&workspace, id).await.len(), 3);
    assert_eq!(logs::count(Level::WARN, &["claim lost"]), 0);
}
