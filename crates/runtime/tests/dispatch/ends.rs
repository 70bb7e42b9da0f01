//! Ends that arrive before DISPATCHED was written: the request passes through every status it missed, once.

use crate::cast::{begin_cycle, cycle, round};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::temporal::operator;
use leasehold_core::RequestStatus::{Claimed, Completed, Dispatched, Failed, Pending};
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_testbed::BackendKind;

scenarios! {
    both: it_ends_while_claimed, it_ends_while_its_start_is_unknown, a_repeated_start_finds_it_ended;
}

async fn it_ends_while_claimed(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene.engine.inject(id, &[Fault::WaitsAfter(hold.clone())]);
    let (_stop, running) = begin_cycle(scene.dispatcher());
    until("Temporal has it", async || {
        scene.temporal.runs().await.len() == 1
    })
    .await;
    operator(&["terminate"], scene.execution(&site, id).await);
    let follower = scene.follower();
    until("its end is found", async || {
        round(&follower).await;
        scene.status(&site, id).await == RequestStatus::Failed
    })
    .await;
    let ended = scene.get(&site, id).await;
    assert_eq!(ended.failure_reason, Some(FailureReason::Terminated));
    assert_eq!(scene.in_use(&site).await, 0);
    let path = scene.path(&site, id).await;
    assert_eq!(path, [Pending, Claimed, Dispatched, Failed]);
    // The dispatcher comes late, is told so, and changes nothing.
    hold.add_permits(1);
    let late = running.await.unwrap();
    assert_eq!((late.dispatched, late.lost), (1, 0));
    assert_eq!(scene.get(&site, id).await, ended);
    assert_eq!(scene.path(&site, id).await.len(), 4);
}

async fn it_ends_while_its_start_is_unknown(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::AnswerLost]);
    let dispatcher = scene.dispatcher();
    cycle(&dispatcher).await;
    assert_eq!(scene.status(&site, id).await, Pending);
    scene.temporal.complete_next().await;
    let follower = scene.follower();
    until("its end is found", async || {
        round(&follower).await;
        scene.status(&site, id).await == Completed
    })
    .await;
    let path = scene.path(&site, id).await;
    let missed = [Claimed, Dispatched, Completed];
    assert_eq!(path, [&[Pending, Claimed, Pending][..], &missed].concat());
    assert_eq!(scene.in_use(&site).await, 0);
    // Nothing of it is left to start.
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
}

async fn a_repeated_start_finds_it_ended(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::AnswerLost]);
    let dispatcher = scene.dispatcher();
    cycle(&dispatcher).await;
    scene.temporal.complete_next().await;
    scene.wait_out();
    cycle(&dispatcher).await;
    assert_eq!(scene.status(&site, id).await, Completed);
    assert_eq!(scene.in_use(&site).await, 0);
    let path = scene.path(&site, id).await;
    let again = [Claimed, Dispatched, Completed];
    assert_eq!(path, [&[Pending, Claimed, Pending][..], &again].concat());
    let execution = scene.execution(&site, id).await;
    scene.assert_one_run_each(vec![execution]).await;
}
