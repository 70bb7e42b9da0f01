//! Ends that the engine tells of: seen from its list, proven one by one, and nothing freed for less.

use crate::cast::{cycle, parallel, round};
use crate::dispatch_env::{DispatchEnv, until};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::{FailureReason, RequestId, RequestStatus};
use leasehold_engine::Engine;
use leasehold_runtime::Follower;
use leasehold_testbed::{BackendKind, TestWorkspace};
use tracing::Level;

const POISON_ADD: &str = include_str!("../sql/poison_add.sql");

scenarios! {
    both: completion_is_seen, failure_is_seen_with_what_went_wrong, a_workflow_terminated_by_hand_frees_its_slot,
        a_workflow_that_continues_as_new_has_not_ended, following_goes_on_after_its_engine_was_away;
    postgres: an_end_that_cannot_be_written_beside_ends_that_can;
}

/// A dispatched request in a workspace of one slot.
async fn dispatched(scene: &DispatchEnv) -> (TestWorkspace, RequestId) {
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher_with(parallel("dispatcher"))).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    (site, id)
}

async fn until_it_is(
    scene: &DispatchEnv,
    follower: &Follower,
    (site, id): (&TestWorkspace, RequestId),
    status: RequestStatus,
) {
    until("following finds its end", async || {
        round(follower).await;
        scene.status(site, id).await == status
    })
    .await;
    assert_eq!(scene.in_use(site).await, 0);
}

async fn completion_is_seen(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let (site, id) = dispatched(&scene).await;
    let follower = scene.follower();
    round(&follower).await;
    assert_eq!(scene.in_use(&site).await, 1);
    scene.temporal.complete_next().await;
    until_it_is(&scene, &follower, (&site, id), RequestStatus::Completed).await;
    let named = format!("request={id}");
    logs::assert_once(Level::INFO, &["execution ended", &named]);
}

async fn failure_is_seen_with_what_went_wrong(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let (site, id) = dispatched(&scene).await;
    scene.temporal.fail_next("no such \0 card").await;
    until_it_is(
        &scene,
        &scene.follower(),
        (&site, id),
        RequestStatus::Failed,
    )
    .await;
    let request = scene.get(&site, id).await;
    assert_eq!(request.failure_reason, Some(FailureReason::ExecutionFailed));
    assert_eq!(request.last_error.as_deref(), Some("no such  card"));
}

async fn a_workflow_terminated_by_hand_frees_its_slot(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let (site, id) = dispatched(&scene).await;
    operator(&["terminate"], scene.execution(&site, id).await);
    until_it_is(
        &scene,
        &scene.follower(),
        (&site, id),
        RequestStatus::Failed,
    )
    .await;
    let request = scene.get(&site, id).await;
    assert_eq!(request.failure_reason, Some(FailureReason::Terminated));
}

async fn a_workflow_that_continues_as_new_has_not_ended(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let (site, id) = dispatched(&scene).await;
    scene.temporal.continue_next().await;
    // What ended after it is seen, so its own first run was looked at.
    let (other, marker) = dispatched(&scene).await;
    operator(&["terminate"], scene.execution(&other, marker).await);
    let follower = scene.follower();
    until_it_is(&scene, &follower, (&other, marker), RequestStatus::Failed).await;
    round(&scene.sweeper(std::time::Duration::ZERO)).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    assert_eq!(scene.in_use(&site).await, 1);
    // The marker's task may come first: it is gone, so the next one is the new run's.
    let (workflow_id, _) = scene.temporal.complete_next().await;
    let execution = scene.execution(&site, id).await;
    assert_eq!(workflow_id, format!("execution-{execution}"));
    until_it_is(&scene, &follower, (&site, id), RequestStatus::Completed).await;
}

async fn following_goes_on_after_its_engine_was_away(on: BackendKind) {
    use crate::dispatch_env::Setup;
    use leasehold_service::Service;
    use leasehold_testkit::{FaultProxy, TestTemporal};
    let proxy = FaultProxy::to(TestTemporal::shared().address()).await;
    let setup = Setup {
        temporal: Some(proxy.address()),
        ..Setup::default()
    };
    let scene = DispatchEnv::with(on, setup).await;
    let (site, id) = dispatched(&scene).await;
    let follower = scene.follower();
    round(&follower).await;
    proxy.refuse();
    proxy.cut();
    operator(&["terminate"], scene.execution(&site, id).await);
    assert!(follower.run_once().await.is_err());
    assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    proxy.accept_again();
    until("the engine is back", async || {
        scene.engine.health().await.is_ok()
    })
    .await;
    until_it_is(&scene, &follower, (&site, id), RequestStatus::Failed).await;
}

async fn an_end_that_cannot_be_written_beside_ends_that_can() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(5).await;
    let bad = scene.enqueue_with(&site, 1, |new| new.priority = 13).await[0];
    let good = scene.enqueue(&site, 2).await;
    cycle(&scene.dispatcher()).await;
    let hand = scene.by_hand().await;
    let poison = POISON_ADD.replace("'CLAIMED'", "'CLAIMED', 'DISPATCHED'");
    hand.batch_execute(&poison).await.unwrap();
    for id in [bad, good[0], good[1]] {
        let execution = scene.execution(&site, id).await;
        scene.engine.terminate(execution, "stop").await.unwrap();
    }
    let sweeper = scene.sweeper(std::time::Duration::from_secs(60));
    until("the good ones have ended", async || {
        round(&sweeper).await;
        scene.status(&site, good[0]).await == RequestStatus::Failed
            && scene.status(&site, good[1]).await == RequestStatus::Failed
    })
    .await;
    assert_eq!(scene.status(&site, bad).await, RequestStatus::Dispatched);
    assert_eq!(scene.in_use(&site).await, 1);
    let counts = scene.store.request_counts(site.workspace).await.unwrap();
    assert_eq!((counts.failed, counts.dispatched), (2, 1));
}
