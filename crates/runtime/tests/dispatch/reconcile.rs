//! The reconciler: reads ends from the engine's list and describes each execution before it frees a slot.

use crate::WAIT_TIMEOUT;
use crate::dispatch_env::{DispatchEnv, until};
use crate::fixtures::{NEVER, cycle, parallel, reconciler_options, round};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_engine::Engine;
use leasehold_runtime::{Reconciler, ReconcilerOptions};
use leasehold_service::Service;
use leasehold_store::notification::Notification;
use leasehold_testbed::{BackendKind, TestWorkspace};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tracing::Level;

const POISON_ADD: &str = include_str!("../sql/poison_add.sql");
const REQUEST_LOCK: &str = include_str!("../sql/request_lock.sql");

scenarios! {
    both: completion_is_noticed, failure_is_noticed_with_its_error, workflow_terminated_by_an_operator_frees_its_slot,
        a_workflow_that_continues_as_new_has_not_ended, reconciler_continues_after_an_engine_outage,
        failed_wide_round_prunes_its_memory, reconciler_pauses_between_woken_rounds;
    postgres: unwritable_end_does_not_block_other_ends, end_of_a_locked_request_does_not_hold_up_the_list;
}

/// Dispatches a request in a workspace with one slot.
async fn dispatched(env: &DispatchEnv) -> (TestWorkspace, RequestId) {
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher_with(parallel("dispatcher"))).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    (workspace, id)
}

async fn until_it_is(
    env: &DispatchEnv,
    reconciler: &Reconciler,
    (workspace, id): (&TestWorkspace, RequestId),
    status: RequestStatus,
) {
    until("the reconciler finds its end", async || {
        round(reconciler).await;
        env.status(workspace, id).await == status
    })
    .await;
    assert_eq!(env.in_use(workspace).await, 0);
}

async fn completion_is_noticed(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let (workspace, id) = dispatched(&env).await;
    let reconciler = env.reconciler();
    round(&reconciler).await;
    assert_eq!(env.in_use(&workspace).await, 1);
    env.temporal.complete_next().await;
    until_it_is(
        &env,
        &reconciler,
        (&workspace, id),
        RequestStatus::Completed,
    )
    .await;
    let named = format!("request={id}");
    logs::assert_once(Level::INFO, &["execution ended", &named]);
}

async fn failure_is_noticed_with_its_error(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let (workspace, id) = dispatched(&env).await;
    env.temporal.fail_next("no such \0 card").await;
    until_it_is(
        &env,
        &env.reconciler(),
        (&workspace, id),
        RequestStatus::Failed,
    )
    .await;
    let request = env.get(&workspace, id).await;
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::ExecutionFailed.into())
    );
    assert_eq!(request.last_error.as_deref(), Some("no such  card"));
}

async fn workflow_terminated_by_an_operator_frees_its_slot(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let (workspace, id) = dispatched(&env).await;
    operator(&["terminate"], env.execution(&workspace, id).await);
    until_it_is(
        &env,
        &env.reconciler(),
        (&workspace, id),
        RequestStatus::Failed,
    )
    .await;
    let request = env.get(&workspace, id).await;
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::Terminated.into())
    );
}

async fn a_workflow_that_continues_as_new_has_not_ended(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let (workspace, id) = dispatched(&env).await;
    env.temporal.continue_next().await;
    // A later end is noticed, so the reconciler has checked the first run too.
    let (other, marker) = dispatched(&env).await;
    operator(&["terminate"], env.execution(&other, marker).await);
    let reconciler = env.reconciler();
    until_it_is(&env, &reconciler, (&other, marker), RequestStatus::Failed).await;
    round(&env.full_sweep(Duration::ZERO)).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    assert_eq!(env.in_use(&workspace).await, 1);
    // The marker was terminated and has no task, so the next task belongs to the new run.
    let (workflow_id, _) = env.temporal.complete_next().await;
    let execution = env.execution(&workspace, id).await;
    assert_eq!(workflow_id, format!("execution-{execution}"));
    until_it_is(
        &env,
        &reconciler,
        (&workspace, id),
        RequestStatus::Completed,
    )
    .await;
}

async fn reconciler_continues_after_an_engine_outage(on: BackendKind) {
    use crate::dispatch_env::Setup;
    use leasehold_testkit::{FaultProxy, TestTemporal};
    let proxy = FaultProxy::to(TestTemporal::shared().address()).await;
    let setup = Setup {
        temporal: Some(proxy.address()),
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let (workspace, id) = dispatched(&env).await;
    let reconciler = env.reconciler();
    round(&reconciler).await;
    proxy.refuse();
    proxy.cut();
    operator(&["terminate"], env.execution(&workspace, id).await);
    assert!(reconciler.run_once().await.is_err());
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    proxy.accept_again();
    until("the engine is back", async || {
        env.engine.health().await.is_ok()
    })
    .await;
    until_it_is(&env, &reconciler, (&workspace, id), RequestStatus::Failed).await;
}

async fn unwritable_end_does_not_block_other_ends() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(5).await;
    let bad = env
        .enqueue_with(&workspace, 1, |new| new.priority = 13)
        .await[0];
    let good = env.enqueue(&workspace, 2).await;
    cycle(&env.dispatcher()).await;
    let client = env.sql_client().await;
    let poison = POISON_ADD.replace("'CLAIMED'", "'CLAIMED', 'DISPATCHED'");
    client.batch_execute(&poison).await.unwrap();
    for id in [bad, good[0], good[1]] {
        let execution = env.execution(&workspace, id).await;
        env.engine.terminate(execution, "stop").await.unwrap();
    }
    let full_sweep = env.full_sweep(Duration::from_secs(60));
    until("the good ones have ended", async || {
        round(&full_sweep).await;
        env.status(&workspace, good[0]).await == RequestStatus::Failed
            && env.status(&workspace, good[1]).await == RequestStatus::Failed
    })
    .await;
    assert_eq!(env.status(&workspace, bad).await, RequestStatus::Dispatched);
    assert_eq!(env.in_use(&workspace).await, 1);
    let counts = env.store.request_counts(workspace.workspace).await.unwrap();
    assert_eq!((counts.failed, counts.dispatched), (2, 1));
}

/// The reconciler goes on in the engine's list: a row that stays locked for hours must not make it read hours again each second.
async fn end_of_a_locked_request_does_not_hold_up_the_list() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let (first, locked) = dispatched(&env).await;
    let operator = env.sql_client().await;
    operator.batch_execute("BEGIN").await.unwrap();
    operator
        .query_one(REQUEST_LOCK, &[&locked.0])
        .await
        .unwrap();
    let reconciler = env.reconciler();
    let execution = env.execution(&first, locked).await;
    env.engine.terminate(execution, "stop").await.unwrap();
    let mut since = None;
    for _ in 0..2 {
        let (workspace, id) = dispatched(&env).await;
        let execution = env.execution(&workspace, id).await;
        env.engine.terminate(execution, "stop").await.unwrap();
        until_it_is(&env, &reconciler, (&workspace, id), RequestStatus::Failed).await;
        round(&reconciler).await;
        let now = env.engine.listed_since();
        assert!(now > since, "{now:?}, before {since:?}");
        since = now;
    }
    assert_eq!(env.status(&first, locked).await, RequestStatus::Dispatched);
    operator.batch_execute("ROLLBACK").await.unwrap();
    round(&reconciler).await;
    assert_eq!(env.status(&first, locked).await, RequestStatus::Failed);
}

/// The memory of finished executions is seen in the store: the reconciler reads those that it has forgotten.
async fn failed_wide_round_prunes_its_memory(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let (workspace, id) = dispatched(&env).await;
    let reconciler = env.reconciler_with(ReconcilerOptions {
        wide_interval: Duration::ZERO,
        wide_overlap: Duration::ZERO,
        ..reconciler_options()
    });
    operator(&["terminate"], env.execution(&workspace, id).await);
    until_it_is(&env, &reconciler, (&workspace, id), RequestStatus::Failed).await;
    env.engine.fail_second_pages();
    for _ in 0..3 {
        let before = env.faults.calls("execution_list_running");
        assert!(reconciler.run_once().await.is_err());
        let after = env.faults.calls("execution_list_running");
        assert!(after > before, "a failed wide round forgot nothing");
    }
}

async fn reconciler_pauses_between_woken_rounds(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let (workspace, id) = dispatched(&env).await;
    let reconciler = env.reconciler_with(ReconcilerOptions {
        interval: NEVER,
        ..reconciler_options()
    });
    let stop = CancellationToken::new();
    let waking = async {
        let begun = Instant::now();
        while env.engine.lists() < 12 {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "woken rounds do not run");
            env.store.notify(Notification::Ended).await.unwrap();
            tokio::task::yield_now().await;
        }
        let elapsed = begun.elapsed();
        operator(&["terminate"], env.execution(&workspace, id).await);
        until("a woken round finds the end", async || {
            env.store.notify(Notification::Ended).await.unwrap();
            env.status(&workspace, id).await == RequestStatus::Failed
        })
        .await;
        stop.cancel();
        elapsed
    };
    let (elapsed, ()) = tokio::join!(waking, leasehold_service::run(&reconciler, &stop, || {}));
    // The first list sets the position, the second is the first round: ten pauses follow.
    assert!(elapsed >= 10 * Duration::from_millis(200), "{elapsed:?}");
}
