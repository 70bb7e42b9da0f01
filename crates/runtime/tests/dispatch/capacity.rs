//! A workspace at its limit: what waits, waits unharmed, and goes on when a slot is free.

use crate::cast::{cycle, parallel, round};
use crate::dispatch_env::{DispatchEnv, until};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::RequestStatus;
use leasehold_testbed::BackendKind;
use tracing::Level;

scenarios! {
    both: at_capacity_waits_uncounted_and_goes_on_when_a_slot_is_free, parallel_dispatchers_never_exceed_the_limit;
}

async fn at_capacity_waits_uncounted_and_goes_on_when_a_slot_is_free(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(2).await;
    let ids = scene.enqueue(&site, 5).await;
    let dispatcher = scene.dispatcher();
    assert_eq!(cycle(&dispatcher).await.dispatched, 2);
    let workspace = format!("workspace={}", site.workspace);
    let said = ["Workspace at capacity", &workspace, "active=2", "limit=2"];
    logs::assert_once(Level::INFO, &said);
    crate::assert_event("Workspace at capacity");
    for _ in 0..5 {
        assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    }
    for id in &ids[2..] {
        let request = scene.get(&site, *id).await;
        assert_eq!(request.status, RequestStatus::Pending);
        assert_eq!((request.attempt_count, request.dispatch_failures), (0, 0));
    }
    operator(&["terminate"], scene.execution(&site, ids[0]).await);
    let follower = scene.follower();
    until("the slot is free", async || {
        round(&follower).await;
        scene.in_use(&site).await == 1
    })
    .await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_eq!(scene.status(&site, ids[2]).await, RequestStatus::Dispatched);
    assert_eq!(scene.status(&site, ids[3]).await, RequestStatus::Pending);
    // It is full again, which is summed up in a minute.
    logs::assert_once(Level::INFO, &["Workspace at capacity", &workspace]);
}

async fn parallel_dispatchers_never_exceed_the_limit(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(3).await;
    let ids = scene.enqueue(&site, 20).await;
    let first = scene.dispatcher_with(parallel("first"));
    let second = scene.dispatcher_with(parallel("second"));
    let (one, two) = tokio::join!(cycle(&first), cycle(&second));
    assert_eq!(one.dispatched + two.dispatched, 3);
    assert_eq!(scene.in_use(&site).await, 3);
    let mut executions = Vec::new();
    for id in ids {
        executions.extend(scene.get(&site, id).await.execution);
    }
    scene.assert_one_run_each(executions).await;
}
