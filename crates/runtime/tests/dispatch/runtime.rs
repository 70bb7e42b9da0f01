//! All services together, as an instance runs them.

use crate::cast::{cycle, parallel, round};
use crate::crash::{crash, run_doomed};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::Fault;
use crate::temporal::operator;
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_testbed::BackendKind;
use std::time::Duration;

scenarios! {
    both: requests_run_to_their_end_within_the_limit, an_instance_that_does_not_dispatch_recovers_and_follows,
        a_stopped_instance_holds_no_lock;
}

async fn requests_run_to_their_end_within_the_limit(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(2).await;
    let ids = scene.enqueue(&site, 6).await;
    let runtime = scene.runtime(|_| {});
    for _ in 0..ids.len() {
        assert!(scene.in_use(&site).await <= 2);
        scene.temporal.complete_next().await;
    }
    scene.until_all(&site, &ids, RequestStatus::Completed).await;
    assert_eq!(scene.in_use(&site).await, 0);
    runtime.stop().await;
}

async fn an_instance_that_does_not_dispatch_recovers_and_follows(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(9).await;
    let ids = scene.enqueue(&site, 2).await;
    scene.engine.inject(ids[1], &[Fault::Hangs]);
    let dead = run_doomed(&scene, parallel("dead"));
    scene
        .until_all(&site, &ids[..1], RequestStatus::Dispatched)
        .await;
    scene
        .until_all(&site, &ids[1..], RequestStatus::Claimed)
        .await;
    crash(&scene, dead).await;
    let waiting = scene.enqueue_one(&site).await;
    scene.wait_out();
    operator(&["terminate"], scene.execution(&site, ids[0]).await);
    let starts = scene.engine.calls().starts.len();
    let runtime = scene.runtime(|options| options.dispatch = false);
    scene
        .until_all(&site, &ids[..1], RequestStatus::Failed)
        .await;
    scene
        .until_all(&site, &ids[1..], RequestStatus::Pending)
        .await;
    let ended = scene.get(&site, ids[0]).await;
    assert_eq!(ended.failure_reason, Some(FailureReason::Terminated));
    assert_eq!(scene.status(&site, waiting).await, RequestStatus::Pending);
    assert_eq!(scene.engine.calls().starts.len(), starts);
    runtime.stop().await;
    round(&scene.recoverer()).await;
    assert_eq!(cycle(&scene.dispatcher()).await.dispatched, 2);
}

async fn a_stopped_instance_holds_no_lock(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let runtime = scene.runtime(|options| {
        options.recoverer.interval = Duration::from_secs(1);
    });
    let held = async || {
        let locks = scene.store.lock_list().await.unwrap();
        let now = leasehold_core::Timestamp::now();
        locks.into_iter().filter(|lock| lock.until > now).count()
    };
    until("it holds what it needs", async || held().await >= 3).await;
    runtime.stop().await;
    assert_eq!(held().await, 0);
}
