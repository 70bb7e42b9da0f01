//! All services together, as an instance runs them.

use crate::WAIT_TIMEOUT;
use crate::crash::{crash, run_doomed};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::Fault;
use crate::fixtures::{cycle, parallel, round};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_testbed::BackendKind;
use leasehold_testkit::TestTemporal;
use std::time::Duration;
use tracing::Level;

scenarios! {
    both: requests_run_to_their_end_within_the_limit, instance_without_dispatch_recovers_and_reconciles,
        a_stopped_instance_holds_no_lock, nothing_starts_in_another_engine_than_the_recorded_one,
        nothing_starts_before_the_engine_is_compared;
}

async fn requests_run_to_their_end_within_the_limit(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(2).await;
    let ids = env.enqueue(&workspace, 6).await;
    let runtime = env.runtime(|_| {});
    for _ in 0..ids.len() {
        assert!(env.in_use(&workspace).await <= 2);
        env.temporal.complete_next().await;
    }
    env.until_all(&workspace, &ids, RequestStatus::Completed)
        .await;
    assert_eq!(env.in_use(&workspace).await, 0);
    runtime.stop().await;
}

async fn instance_without_dispatch_recovers_and_reconciles(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(9).await;
    let ids = env.enqueue(&workspace, 2).await;
    env.engine.inject(ids[1], &[Fault::Hangs]);
    let dead = run_doomed(&env, parallel("dead"));
    env.until_all(&workspace, &ids[..1], RequestStatus::Dispatched)
        .await;
    env.until_all(&workspace, &ids[1..], RequestStatus::Claimed)
        .await;
    crash(&env, dead).await;
    let waiting = env.enqueue_one(&workspace).await;
    env.pass_backoffs();
    operator(&["terminate"], env.execution(&workspace, ids[0]).await);
    let starts = env.engine.calls().starts.len();
    let runtime = env.runtime(|options| options.dispatch = false);
    env.until_all(&workspace, &ids[..1], RequestStatus::Failed)
        .await;
    env.until_all(&workspace, &ids[1..], RequestStatus::Pending)
        .await;
    let ended = env.get(&workspace, ids[0]).await;
    assert_eq!(ended.failure_reason, Some(FailureReason::Terminated.into()));
    assert_eq!(
        env.status(&workspace, waiting).await,
        RequestStatus::Pending
    );
    assert_eq!(env.engine.calls().starts.len(), starts);
    runtime.stop().await;
    round(&env.recoverer()).await;
    assert_eq!(cycle(&env.dispatcher()).await.dispatched, 2);
}

async fn a_stopped_instance_holds_no_lock(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let runtime = env.runtime(|options| {
        options.recoverer.interval = Duration::from_secs(1);
    });
    let held = async || {
        let locks = env.store.lock_list().await.unwrap();
        let now = leasehold_core::Timestamp::now();
        locks.into_iter().filter(|lock| lock.until > now).count()
    };
    until("it holds its locks", async || held().await >= 3).await;
    runtime.stop().await;
    assert_eq!(held().await, 0);
}

async fn nothing_starts_in_another_engine_than_the_recorded_one(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(2).await;
    let running = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher_with(parallel("before"))).await;
    let other = env.engine_in(&TestTemporal::shared().fresh_namespace());
    let other = other.identity().await.unwrap();
    env.store.engine_record(&other).await.unwrap();
    let waiting = env.enqueue_one(&workspace).await;
    let runtime = env.runtime(|_| {});
    let refused = tokio::time::timeout(WAIT_TIMEOUT, runtime.engine_refused());
    let reason = refused.await.unwrap();
    assert!(reason.contains(&other.to_string()), "{reason}");
    runtime.stop().await;
    assert_eq!(
        env.status(&workspace, waiting).await,
        RequestStatus::Pending
    );
    assert_eq!(
        env.status(&workspace, running).await,
        RequestStatus::Dispatched
    );
    let recorded = env.store.engine_recorded().await.unwrap();
    assert_eq!(recorded.map(|recorded| recorded.identity), Some(other));
}

async fn nothing_starts_before_the_engine_is_compared(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    env.engine.hide_identity(true);
    let runtime = env.runtime(|_| {});
    let id = env.enqueue_one(&workspace).await;
    until("the comparison has failed", async || {
        logs::count(Level::ERROR, &["engine checker failed"]) > 0
    })
    .await;
    assert_eq!(runtime.circuit_breaker().allowance(), 0);
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
    env.engine.hide_identity(false);
    env.until_all(&workspace, &[id], RequestStatus::Dispatched)
        .await;
    assert!(env.store.engine_recorded().await.unwrap().is_some());
    runtime.stop().await;
}
