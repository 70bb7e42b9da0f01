//! Starts that nobody knows about: the execution and its slot stay, and the same start is repeated until it is certain.

use crate::cast::cycle;
use crate::dispatch_env::{DispatchEnv, Setup};
use crate::faulty_engine::Fault;
use crate::faulty_store::Outage;
use crate::logs;
use leasehold_core::{ExecutionStatus, RequestStatus};
use leasehold_testbed::BackendKind;
use leasehold_testkit::{FaultProxy, TestTemporal};
use std::time::Duration;
use tracing::Level;

const EXECUTION_REMOVE: &str = include_str!("../sql/execution_remove.sql");

scenarios! {
    both: execution_is_used_again_after_an_unknown_start, an_unknown_start_needs_no_second_slot,
        answer_of_a_start_is_lost_on_the_way, dispatched_could_not_be_written,
        answer_of_writing_dispatched_is_lost;
    postgres: execution_is_missing_at_the_retry;
}

async fn execution_is_used_again_after_an_unknown_start(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::AnswerLost]);
    let dispatcher = scene.dispatcher();
    assert_eq!(cycle(&dispatcher).await.released, 1);
    let request = scene.get(&site, id).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!((request.attempt_count, request.dispatch_failures), (1, 0));
    let execution = request.execution.unwrap();
    let kept = scene.store.execution_get(site.workspace, execution).await;
    assert_eq!(kept.unwrap().unwrap().status, ExecutionStatus::Running);
    assert_eq!(scene.in_use(&site).await, 1);
    let named = format!("request={id}");
    logs::assert_once(Level::WARN, &["nobody knows whether", &named]);
    // Not before its backoff has passed.
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let request = scene.get(&site, id).await;
    assert_eq!(request.status, RequestStatus::Dispatched);
    assert_eq!(request.execution, Some(execution));
    assert_eq!(scene.engine.starts_of(execution), 2);
    scene.assert_one_run_each(vec![execution]).await;
}

async fn an_unknown_start_needs_no_second_slot(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let ids = scene.enqueue(&site, 2).await;
    scene.engine.inject(ids[0], &vec![Fault::CallLost; 3]);
    let dispatcher = scene.dispatcher();
    for attempts in 1..=3 {
        assert_eq!(cycle(&dispatcher).await.released, 1);
        assert_eq!(scene.get(&site, ids[0]).await.attempt_count, attempts);
        assert_eq!(scene.in_use(&site).await, 1);
        assert_eq!(scene.status(&site, ids[1]).await, RequestStatus::Pending);
        scene.wait_out();
    }
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_eq!(scene.status(&site, ids[0]).await, RequestStatus::Dispatched);
    assert_eq!(scene.get(&site, ids[0]).await.dispatch_failures, 0);
}

async fn answer_of_a_start_is_lost_on_the_way(on: BackendKind) {
    let proxy = FaultProxy::to(TestTemporal::shared().address()).await;
    let setup = Setup {
        own_clock: true,
        temporal: Some(proxy.address()),
        call_timeout: Some(Duration::from_millis(700)),
        ..Setup::default()
    };
    let scene = DispatchEnv::with(on, setup).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let dispatcher = scene.dispatcher();
    leasehold_engine::Engine::health(&*scene.engine)
        .await
        .unwrap();
    proxy.hold_answers();
    assert_eq!(cycle(&dispatcher).await.released, 1);
    let execution = scene.execution(&site, id).await;
    assert_eq!(scene.in_use(&site).await, 1);
    proxy.cut();
    proxy.pass();
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_eq!(scene.execution(&site, id).await, execution);
    scene.assert_one_run_each(vec![execution]).await;
}

async fn execution_is_missing_at_the_retry() {
    let scene = DispatchEnv::still(BackendKind::Postgres).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::CallLost]);
    let dispatcher = scene.dispatcher();
    cycle(&dispatcher).await;
    let before = scene.execution(&site, id).await;
    let hand = scene.by_hand().await;
    let removed = hand.execute(EXECUTION_REMOVE, &[&before.0]).await;
    assert_eq!(removed.unwrap(), 1);
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let after = scene.execution(&site, id).await;
    assert_ne!(after, before);
    assert_eq!(scene.in_use(&site).await, 1);
    let named = format!("request={id}");
    let gone = format!("execution={before}");
    logs::assert_once(
        Level::WARN,
        &["Execution not found for retry", &named, &gone],
    );
    crate::assert_event("Execution not found for retry");
    scene.assert_one_run_each(vec![after]).await;
}

async fn dispatched_could_not_be_written(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(3).await;
    let ids = scene.enqueue(&site, 3).await;
    let outages = [Outage::CallLost, Outage::CallLost];
    scene.faults.inject("request_dispatched", &outages);
    let dispatcher = scene.dispatcher();
    let stop = tokio_util::sync::CancellationToken::new();
    // It does not end before all is written.
    assert!(dispatcher.run_once(&stop).await.is_ok());
    logs::assert_once(Level::ERROR, &["writing down starts cannot do its work"]);
    let mut executions = Vec::new();
    for id in ids {
        let request = scene.get(&site, id).await;
        assert_eq!(request.status, RequestStatus::Dispatched);
        assert_eq!(request.attempt_count, 0);
        executions.extend(request.execution);
    }
    assert_eq!(scene.engine.calls().starts.len(), 3);
    scene.assert_one_run_each(executions).await;
}

async fn answer_of_writing_dispatched_is_lost(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene
        .faults
        .inject("request_dispatched", &[Outage::AnswerLost]);
    let dispatcher = scene.dispatcher();
    let stop = tokio_util::sync::CancellationToken::new();
    assert!(dispatcher.run_once(&stop).await.is_ok());
    assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    assert_eq!(scene.path(&site, id).await.len(), 3);
    assert_eq!(logs::count(Level::WARN, &["claim lost"]), 0);
}
