//! Cancelling requests that run, that are being started, and whose start is unknown.

use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::fixtures::{begin_cycle, cycle, round};
use leasehold_core::{ExecutionEnd, FailureReason, RequestId, RequestStatus};
use leasehold_engine::{Description, Engine, StartOutcome};
use leasehold_runtime::Reconciler;
use leasehold_store::request::Cancelled;
use leasehold_testbed::{BackendKind, TestWorkspace};
use std::time::Duration;

scenarios! {
    both: cancel_is_delivered_once_and_force_terminates, cancel_of_a_claimed_request_is_delivered_after_its_start,
        workflow_accepts_its_cancellation, cancelled_unknown_start_is_started_and_terminated,
        cancelled_start_that_never_arrived_is_started_and_terminated, cancel_on_a_task_queue_without_workers,
        cancel_is_repeated_after_continue_as_new;
}

/// Reconciles until the request failed as cancelled and its slot is free.
async fn assert_cancelled(
    env: &DispatchEnv,
    reconciler: &Reconciler,
    workspace: &TestWorkspace,
    id: RequestId,
) {
    until("the request has failed", async || {
        round(reconciler).await;
        env.status(workspace, id).await == RequestStatus::Failed
    })
    .await;
    let request = env.get(workspace, id).await;
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::Cancelled.into())
    );
    assert_eq!(env.in_use(workspace).await, 0);
}

async fn cancel_is_delivered_once_and_force_terminates(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    let execution = env.execution(&workspace, id).await;
    let cancelled = env.cancel(&workspace, id, false).await;
    assert_eq!(cancelled, Cancelled::Running(execution));
    let canceller = env.canceller();
    for _ in 0..3 {
        round(&canceller).await;
    }
    assert_eq!(env.engine.calls().cancels, 1);
    // The cancellation was only delivered: the workflow runs until it reacts.
    let open = env.engine.describe(execution).await;
    assert_eq!(open, Ok(Description::Open));
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    env.cancel(&workspace, id, true).await;
    for _ in 0..3 {
        round(&canceller).await;
    }
    assert_eq!(env.engine.calls().terminations, 1);
    assert_cancelled(&env, &env.reconciler(), &workspace, id).await;
}

async fn workflow_accepts_its_cancellation(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    env.cancel(&workspace, id, false).await;
    round(&env.canceller()).await;
    env.temporal.cancel_next().await;
    assert_cancelled(&env, &env.reconciler(), &workspace, id).await;
}

async fn cancel_of_a_claimed_request_is_delivered_after_its_start(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let (_stop, running) = begin_cycle(env.dispatcher());
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    let execution = env.execution(&workspace, id).await;
    let cancelled = env.cancel(&workspace, id, true).await;
    assert_eq!(cancelled, Cancelled::Requested(execution));
    let canceller = env.canceller();
    round(&canceller).await;
    assert_eq!(env.engine.calls().terminations, 0);
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
    round(&canceller).await;
    assert_eq!(env.engine.calls().terminations, 1);
    assert_cancelled(&env, &env.reconciler(), &workspace, id).await;
}

async fn give_up(on: BackendKind, fault: Fault) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[fault]);
    let dispatcher = env.dispatcher();
    cycle(&dispatcher).await;
    let execution = env.execution(&workspace, id).await;
    let cancelled = env.cancel(&workspace, id, false).await;
    assert_eq!(cancelled, Cancelled::Requested(execution));
    assert_eq!(env.in_use(&workspace).await, 1);
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.failed, 1);
    let request = env.get(&workspace, id).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::Cancelled.into())
    );
    assert_eq!(env.in_use(&workspace).await, 0);
    // A dispatcher that stalled right before its call sends the start only now.
    let late = env.engine.last_start(execution);
    assert_eq!(
        env.engine.start(&late).await,
        StartOutcome::AlreadyStarted { ended: true }
    );
    let seen = env.engine.describe(execution).await.unwrap();
    assert!(matches!(
        seen,
        Description::Ended {
            end: ExecutionEnd::Terminated,
            ..
        }
    ));
    env.assert_one_run_each(vec![execution]).await;
    assert_eq!(env.get(&workspace, id).await, request);
}

async fn cancelled_unknown_start_is_started_and_terminated(on: BackendKind) {
    give_up(on, Fault::AnswerLost).await;
}

async fn cancelled_start_that_never_arrived_is_started_and_terminated(on: BackendKind) {
    give_up(on, Fault::CallLost).await;
}

async fn cancel_on_a_task_queue_without_workers(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    // Temporal accepts a start without a worker, so the request is dispatched and waits there.
    let request = env.get(&workspace, id).await;
    assert_eq!(
        (request.status, request.dispatch_failures),
        (RequestStatus::Dispatched.into(), 0)
    );
    let execution = request.execution.unwrap();
    assert_eq!(env.engine.pollers(&env.body()).await, Ok(Some(0)));
    env.cancel(&workspace, id, false).await;
    round(&env.canceller()).await;
    let reconciler = env.reconciler();
    round(&reconciler).await;
    // No worker reacts to the cancellation.
    let open = env.engine.describe(execution).await;
    assert_eq!(open, Ok(Description::Open));
    assert_eq!(env.in_use(&workspace).await, 1);
    env.cancel(&workspace, id, true).await;
    round(&env.canceller()).await;
    assert_cancelled(&env, &reconciler, &workspace, id).await;
    let left = env.store.request_cancel_list(10).await.unwrap();
    assert_eq!(left, []);
}

async fn cancel_is_repeated_after_continue_as_new(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    cycle(&env.dispatcher()).await;
    let workflow = format!("execution-{}", env.execution(&workspace, id).await);
    let canceller = env.canceller();
    env.cancel(&workspace, id, false).await;
    round(&canceller).await;
    assert!(env.temporal.is_cancel_requested(&workflow).await);
    // The workflow ignores the request, and so does its next run.
    let full_sweep = env.full_sweep(Duration::from_secs(60));
    for _ in 0..2 {
        env.temporal.continue_next().await;
        round(&canceller).await;
        assert!(!env.temporal.is_cancel_requested(&workflow).await);
        until("the sweep has it sent again", async || {
            round(&full_sweep).await;
            round(&canceller).await;
            env.temporal.is_cancel_requested(&workflow).await
        })
        .await;
    }
    // A caller repeats it, without waiting for the sweep.
    env.temporal.continue_next().await;
    env.cancel(&workspace, id, false).await;
    round(&canceller).await;
    assert!(env.temporal.is_cancel_requested(&workflow).await);
    env.temporal.cancel_next().await;
    assert_cancelled(&env, &env.reconciler(), &workspace, id).await;
}
