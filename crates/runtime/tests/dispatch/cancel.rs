//! Cancelling what runs, what is being started, and what nobody knows to run.

use crate::cast::{begin_cycle, cycle, round};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use leasehold_core::{ExecutionEnd, FailureReason, RequestId, RequestStatus};
use leasehold_engine::{Description, Engine, StartOutcome};
use leasehold_runtime::Follower;
use leasehold_store::request::Cancelled;
use leasehold_testbed::{BackendKind, TestWorkspace};

scenarios! {
    both: cancel_of_what_runs_is_delivered_once_and_force_ends_it, cancel_while_claimed_is_carried_out_when_the_start_is_known,
        a_workflow_that_agrees_to_be_cancelled, an_unknown_start_is_given_up_by_starting_and_ending_it,
        a_start_that_never_arrived_is_given_up_the_same_way, a_task_queue_that_nobody_serves;
}

/// Follows until the request failed as cancelled and its slot is free.
async fn assert_cancelled(
    scene: &DispatchEnv,
    follower: &Follower,
    site: &TestWorkspace,
    id: RequestId,
) {
    until("it has ended", async || {
        round(follower).await;
        scene.status(site, id).await == RequestStatus::Failed
    })
    .await;
    let request = scene.get(site, id).await;
    assert_eq!(request.failure_reason, Some(FailureReason::Cancelled));
    assert_eq!(scene.in_use(site).await, 0);
}

async fn cancel_of_what_runs_is_delivered_once_and_force_ends_it(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    let execution = scene.execution(&site, id).await;
    let asked = scene.cancel(&site, id, false).await;
    assert_eq!(asked, Cancelled::Running(execution));
    let canceller = scene.canceller();
    for _ in 0..3 {
        round(&canceller).await;
    }
    assert_eq!(scene.engine.calls().cancels, 1);
    // Asking is all that was done: it runs until it listens.
    let open = scene.engine.describe(execution).await;
    assert_eq!(open, Ok(Description::Open));
    assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    scene.cancel(&site, id, true).await;
    for _ in 0..3 {
        round(&canceller).await;
    }
    assert_eq!(scene.engine.calls().terminations, 1);
    assert_cancelled(&scene, &scene.follower(), &site, id).await;
}

async fn a_workflow_that_agrees_to_be_cancelled(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    scene.cancel(&site, id, false).await;
    round(&scene.canceller()).await;
    scene.temporal.cancel_next().await;
    assert_cancelled(&scene, &scene.follower(), &site, id).await;
}

async fn cancel_while_claimed_is_carried_out_when_the_start_is_known(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let (_stop, running) = begin_cycle(scene.dispatcher());
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    let execution = scene.execution(&site, id).await;
    let asked = scene.cancel(&site, id, true).await;
    assert_eq!(asked, Cancelled::Wished(execution));
    let canceller = scene.canceller();
    round(&canceller).await;
    assert_eq!(scene.engine.calls().terminations, 0);
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
    round(&canceller).await;
    assert_eq!(scene.engine.calls().terminations, 1);
    assert_cancelled(&scene, &scene.follower(), &site, id).await;
}

async fn give_up(on: BackendKind, fault: Fault) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[fault]);
    let dispatcher = scene.dispatcher();
    cycle(&dispatcher).await;
    let execution = scene.execution(&site, id).await;
    let asked = scene.cancel(&site, id, false).await;
    assert_eq!(asked, Cancelled::Wished(execution));
    assert_eq!(scene.in_use(&site).await, 1);
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.failed, 1);
    let request = scene.get(&site, id).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(request.failure_reason, Some(FailureReason::Cancelled));
    assert_eq!(scene.in_use(&site).await, 0);
    // A dispatcher that was stopped right before its call, and continues only now.
    let late = scene.engine.last_start(execution);
    assert_eq!(
        scene.engine.start(&late).await,
        StartOutcome::AlreadyStarted { ended: true }
    );
    let seen = scene.engine.describe(execution).await.unwrap();
    assert!(matches!(
        seen,
        Description::Ended {
            end: ExecutionEnd::Terminated,
            ..
        }
    ));
    scene.assert_one_run_each(vec![execution]).await;
    assert_eq!(scene.get(&site, id).await, request);
}

async fn an_unknown_start_is_given_up_by_starting_and_ending_it(on: BackendKind) {
    give_up(on, Fault::AnswerLost).await;
}

async fn a_start_that_never_arrived_is_given_up_the_same_way(on: BackendKind) {
    give_up(on, Fault::CallLost).await;
}

async fn a_task_queue_that_nobody_serves(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    // Temporal takes it without a worker, and so do we: it is not refused, it waits there.
    let request = scene.get(&site, id).await;
    assert_eq!(
        (request.status, request.dispatch_failures),
        (RequestStatus::Dispatched, 0)
    );
    let execution = request.execution.unwrap();
    assert_eq!(scene.engine.pollers(&scene.body()).await, Ok(Some(0)));
    scene.cancel(&site, id, false).await;
    round(&scene.canceller()).await;
    let follower = scene.follower();
    round(&follower).await;
    // Nobody is there to hear it.
    let open = scene.engine.describe(execution).await;
    assert_eq!(open, Ok(Description::Open));
    assert_eq!(scene.in_use(&site).await, 1);
    scene.cancel(&site, id, true).await;
    round(&scene.canceller()).await;
    assert_cancelled(&scene, &follower, &site, id).await;
    let left = scene.store.request_cancel_list(10).await.unwrap();
    assert_eq!(left, []);
}
