//! Executions that end before DISPATCHED was written: the request passes through every status it missed, once.

use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::fixtures::{begin_cycle, cycle, round};
use crate::temporal::operator;
use leasehold_core::RequestStatus::{Claimed, Completed, Dispatched, Failed, Pending};
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_testbed::BackendKind;

scenarios! {
    both: execution_ends_while_its_request_is_claimed, execution_ends_while_its_start_is_unknown, repeated_start_finds_the_execution_ended;
}

async fn execution_ends_while_its_request_is_claimed(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.engine.inject(id, &[Fault::WaitsAfter(hold.clone())]);
    let (_stop, running) = begin_cycle(env.dispatcher());
    until("Temporal has started it", async || {
        env.temporal.runs().await.len() == 1
    })
    .await;
    operator(&["terminate"], env.execution(&workspace, id).await);
    let reconciler = env.reconciler();
    until("its end is found", async || {
        round(&reconciler).await;
        env.status(&workspace, id).await == RequestStatus::Failed
    })
    .await;
    let ended = env.get(&workspace, id).await;
    assert_eq!(ended.failure_reason, Some(FailureReason::Terminated.into()));
    assert_eq!(env.in_use(&workspace).await, 0);
    let path = env.path(&workspace, id).await;
    assert_eq!(path, [Pending, Claimed, Dispatched, Failed]);
    // The late dispatcher gets `AlreadyFinished` and changes nothing.
    hold.add_permits(1);
    let late = running.await.unwrap();
    assert_eq!((late.dispatched, late.lost), (1, 0));
    assert_eq!(env.get(&workspace, id).await, ended);
    assert_eq!(env.path(&workspace, id).await.len(), 4);
}

async fn execution_ends_while_its_start_is_unknown(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::AnswerLost]);
    let dispatcher = env.dispatcher();
    cycle(&dispatcher).await;
    assert_eq!(env.status(&workspace, id).await, Pending);
    env.temporal.complete_next().await;
    let reconciler = env.reconciler();
    until("its end is found", async || {
        round(&reconciler).await;
        env.status(&workspace, id).await == Completed
    })
    .await;
    let path = env.path(&workspace, id).await;
    let missed = [Claimed, Dispatched, Completed];
    assert_eq!(path, [&[Pending, Claimed, Pending][..], &missed].concat());
    assert_eq!(env.in_use(&workspace).await, 0);
    // Nothing is left to start.
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
}

async fn repeated_start_finds_the_execution_ended(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::AnswerLost]);
    let dispatcher = env.dispatcher();
    cycle(&dispatcher).await;
    env.temporal.complete_next().await;
    env.pass_backoffs();
    cycle(&dispatcher).await;
    assert_eq!(env.status(&workspace, id).await, Completed);
    assert_eq!(env.in_use(&workspace).await, 0);
    let path = env.path(&workspace, id).await;
    let again = [Claimed, Dispatched, Completed];
    assert_eq!(path, [&[Pending, Claimed, Pending][..], &again].concat());
    let execution = env.execution(&workspace, id).await;
    env.assert_one_run_each(vec![execution]).await;
}
