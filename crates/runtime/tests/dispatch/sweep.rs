//! The full sweep: finds ends that the reconciler missed, and distinguishes executions the engine lost from starts it never received.

use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{DescribeFault, Fault, barrier};
use crate::fixtures::{cycle, full_sweep_options, parallel, round};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_engine::{Description, Engine};
use leasehold_runtime::{
    Dispatcher, EngineComparison, FullSweep, FullSweepOptions, compare_engine,
};
use leasehold_service::Service;
use leasehold_store::lock::LockRequest;
use leasehold_testbed::{BackendKind, TestWorkspace};
use leasehold_testkit::TestTemporal;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

scenarios! {
    both: full_sweep_finds_ends_the_reconciler_missed, execution_lost_by_the_engine_fails_after_two_passes,
        unknown_start_missing_in_the_engine_is_not_failed,
        claimed_start_missing_in_the_engine_is_not_failed, only_one_instance_sweeps,
        start_that_arrives_during_a_sweep_is_not_lost, one_failed_describe_does_not_block_other_executions,
        engine_that_knows_no_execution_does_not_fail_them_as_lost, sweep_gives_up_nothing_after_a_change_of_namespace,
        new_starts_prove_nothing_about_executions_from_before_the_record;
}

async fn full_sweep_finds_ends_the_reconciler_missed(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(3).await;
    let ids = env.enqueue(&workspace, 3).await;
    cycle(&env.dispatcher()).await;
    let execution = env.execution(&workspace, ids[1]).await;
    env.engine.terminate(execution, "stop").await.unwrap();
    round(&env.full_sweep(Duration::from_secs(60))).await;
    assert_eq!(env.status(&workspace, ids[1]).await, RequestStatus::Failed);
    for id in [ids[0], ids[2]] {
        assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    }
    assert_eq!(env.in_use(&workspace).await, 2);
}

async fn execution_lost_by_the_engine_fails_after_two_passes(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    let execution = env.execution(&workspace, id).await;
    operator(&["delete", "--yes"], execution);
    until("Temporal has deleted it", async || {
        env.engine.describe(execution).await == Ok(Description::NotFound)
    })
    .await;
    let full_sweep = env.full_sweep(Duration::from_millis(1));
    round(&full_sweep).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    until("it has failed as lost", async || {
        round(&full_sweep).await;
        env.status(&workspace, id).await == RequestStatus::Failed
    })
    .await;
    let request = env.get(&workspace, id).await;
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::EngineLost.into())
    );
    assert_eq!(env.in_use(&workspace).await, 0);
    let named = format!("request={id}");
    logs::assert_once(
        Level::ERROR,
        &["engine no longer knows the execution", &named],
    );
}

/// Runs three passes of a full sweep that fails missing executions at once.
async fn sweep_hard(env: &DispatchEnv) {
    let full_sweep = env.full_sweep(Duration::ZERO);
    for _ in 0..6 {
        full_sweep.run_once().await.unwrap();
    }
    assert!(env.faults.calls("execution_list_active") >= 4);
}

async fn unknown_start_missing_in_the_engine_is_not_failed(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::CallLost]);
    let dispatcher = env.dispatcher();
    cycle(&dispatcher).await;
    let before = env.get(&workspace, id).await;
    sweep_hard(&env).await;
    assert_eq!(env.get(&workspace, id).await, before);
    assert_eq!(env.in_use(&workspace).await, 1);
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn claimed_start_missing_in_the_engine_is_not_failed(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let (_stop, running) = crate::fixtures::begin_cycle(env.dispatcher());
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    sweep_hard(&env).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Claimed);
    assert_eq!(env.in_use(&workspace).await, 1);
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
}

async fn only_one_instance_sweeps(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let lock = LockRequest {
        name: "sweepOpenExecutions".to_owned(),
        owner: "another instance".to_owned(),
        at_most_for: crate::fixtures::NEVER,
    };
    env.store.lock_acquire(&lock).await.unwrap();
    round(&env.full_sweep(Duration::ZERO)).await;
    assert_eq!(env.faults.calls("execution_list_active"), 0);
}

async fn start_that_arrives_during_a_sweep_is_not_lost(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::CallLost]);
    let dispatcher = env.dispatcher();
    cycle(&dispatcher).await;
    let full_sweep = Arc::new(env.full_sweep(Duration::ZERO));
    for _ in 0..4 {
        full_sweep.run_once().await.unwrap();
    }
    let hold = barrier();
    let execution = env.execution(&workspace, id).await;
    env.engine
        .inject_describe(execution, DescribeFault::WaitsAfter(hold.clone()));
    let before = env.engine.descriptions();
    let looking = tokio::spawn({
        let full_sweep = full_sweep.clone();
        async move {
            for _ in 0..4 {
                full_sweep.run_once().await.unwrap();
            }
        }
    });
    until("the engine answered that it does not know it", async || {
        env.engine.descriptions() > before
    })
    .await;
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    hold.add_permits(1_000);
    looking.await.unwrap();
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    assert_eq!(env.in_use(&workspace).await, 1);
}

async fn one_failed_describe_does_not_block_other_executions(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(3).await;
    let ids = env.enqueue(&workspace, 3).await;
    cycle(&env.dispatcher()).await;
    let first = env.execution(&workspace, ids[0]).await;
    env.engine
        .inject_describe(first, DescribeFault::Unavailable);
    let full_sweep = env.full_sweep(Duration::from_secs(60));
    assert!(full_sweep.run_once().await.is_err(), "it returns the error");
    let last = env.execution(&workspace, ids[2]).await;
    env.engine.terminate(last, "stop").await.unwrap();
    until("the others are swept", async || {
        let _ = full_sweep.run_once().await;
        env.status(&workspace, ids[2]).await == RequestStatus::Failed
    })
    .await;
    assert_eq!(
        env.status(&workspace, ids[0]).await,
        RequestStatus::Dispatched
    );
}

async fn engine_that_knows_no_execution_does_not_fail_them_as_lost(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    let execution = env.execution(&workspace, id).await;
    operator(&["delete", "--yes"], execution);
    until("Temporal has deleted it", async || {
        env.engine.describe(execution).await == Ok(Description::NotFound)
    })
    .await;
    let full_sweep = env.careful_full_sweep();
    until("the error is logged", async || {
        full_sweep.run_once().await.unwrap();
        logs::count(Level::ERROR, &["knows none of the open executions"]) > 0
    })
    .await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    assert_eq!(env.in_use(&workspace).await, 1);
}

/// Starts a request in another engine, which then knows an open execution.
async fn start_in(env: &DispatchEnv, engine: &Arc<dyn Engine>, workspace: &TestWorkspace) {
    let id = env.enqueue_one(workspace).await;
    let (store, breaker) = (env.store.clone(), env.breaker.clone());
    let options = parallel("other");
    cycle(&Dispatcher::new(store, engine.clone(), breaker, options)).await;
    let execution = env.execution(workspace, id).await;
    assert_eq!(engine.describe(execution).await, Ok(Description::Open));
}

/// Sweeps with this engine for three passes, and asserts that all these requests keep their slots.
async fn assert_nothing_is_lost(
    env: &DispatchEnv,
    engine: Arc<dyn Engine>,
    lost_at_most: usize,
    (workspace, ids): (&TestWorkspace, &[RequestId]),
    logged: &str,
) {
    let options = FullSweepOptions {
        lost_at_most,
        ..full_sweep_options(Duration::ZERO)
    };
    let full_sweep = FullSweep::new(env.store.clone(), engine, "full sweep", options);
    for _ in 0..6 {
        full_sweep.run_once().await.unwrap();
    }
    assert!(logs::count(Level::ERROR, &[logged]) > 0, "{}", logs::all());
    for id in ids {
        assert_eq!(env.status(workspace, *id).await, RequestStatus::Dispatched);
    }
}

async fn sweep_gives_up_nothing_after_a_change_of_namespace(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(4).await;
    let identity = env.engine.identity().await.unwrap();
    env.store.engine_record(&identity).await.unwrap();
    let ids = env.enqueue(&workspace, 3).await;
    cycle(&env.dispatcher()).await;
    let other = env.engine_in(&TestTemporal::shared().fresh_namespace());
    let found = compare_engine(&*env.store, &*other).await.unwrap();
    assert!(matches!(found, EngineComparison::Other(_)), "{found:?}");
    start_in(&env, &other, &workspace).await;
    let logged = "engine is not the recorded one";
    assert_nothing_is_lost(&env, other, 100, (&workspace, &ids), logged).await;
    assert_eq!(env.in_use(&workspace).await, 4);
}

/// As after an upgrade from a version that recorded no engine, with other settings.
async fn new_starts_prove_nothing_about_executions_from_before_the_record(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(4).await;
    let ids = env.enqueue(&workspace, 3).await;
    cycle(&env.dispatcher()).await;
    env.advance(Duration::from_secs(1));
    let other = env.engine_in(&TestTemporal::shared().fresh_namespace());
    let found = compare_engine(&*env.store, &*other).await.unwrap();
    assert_eq!(found, EngineComparison::Same);
    start_in(&env, &other, &workspace).await;
    let logged = "knows none of the open executions";
    assert_nothing_is_lost(&env, other, 0, (&workspace, &ids), logged).await;
    assert_eq!(env.in_use(&workspace).await, 4);
}
