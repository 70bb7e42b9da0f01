//! What wakes a dispatcher that never polls, and what polling finds where nothing wakes it.

use crate::cast::{options, round};
use crate::dispatch_env::{DispatchEnv, Setup, enqueue, until};
use leasehold_core::{RequestStatus, Timestamp};
use leasehold_runtime::DispatcherOptions;
use leasehold_testbed::BackendKind;
use std::time::Duration;

scenarios! {
    both: a_new_request_wakes_it, a_time_that_comes_wakes_it, a_raised_limit_wakes_it, a_freed_slot_wakes_it,
        a_workspace_that_goes_on_wakes_it;
    postgres: a_request_of_another_process_wakes_it, a_time_that_comes_is_kept_without_notifications, without_notifications_the_poll_finds_it;
}

/// Waits until a dispatcher has nothing to do and sleeps.
async fn asleep(scene: &DispatchEnv) {
    until("it sleeps", async || scene.faults.calls("wake_arm") > 0).await;
}

async fn a_new_request_wakes_it(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(9).await;
    let running = scene.run(options("dispatcher"));
    asleep(&scene).await;
    for _ in 0..3 {
        let id = scene.enqueue_one(&site).await;
        scene
            .until_all(&site, &[id], RequestStatus::Dispatched)
            .await;
    }
    running.stop().await;
}

async fn a_time_that_comes_wakes_it(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let running = scene.run(options("dispatcher"));
    asleep(&scene).await;
    let at = Timestamp::now() + Duration::from_millis(700);
    let ids = scene
        .enqueue_with(&site, 1, |new| new.run_at = Some(at))
        .await;
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
    let request = scene.get(&site, ids[0]).await;
    assert!(request.claimed_at.unwrap() >= request.run_at);
    running.stop().await;
}

async fn a_time_that_comes_is_kept_without_notifications() {
    let setup = Setup {
        deaf: true,
        ..Setup::default()
    };
    let scene = DispatchEnv::with(BackendKind::Postgres, setup).await;
    let site = scene.site(1).await;
    let at = Timestamp::now() + Duration::from_millis(700);
    let ids = scene
        .enqueue_with(&site, 1, |new| new.run_at = Some(at))
        .await;
    // It never polls, so only the time itself can tell it.
    let running = scene.run(options("dispatcher"));
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
    running.stop().await;
}

async fn a_raised_limit_wakes_it(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let ids = scene.enqueue(&site, 3).await;
    let running = scene.run(options("dispatcher"));
    scene
        .until_all(&site, &ids[..1], RequestStatus::Dispatched)
        .await;
    asleep(&scene).await;
    scene.set_limit(&site, 2).await;
    scene
        .until_all(&site, &ids[..2], RequestStatus::Dispatched)
        .await;
    assert_eq!(scene.status(&site, ids[2]).await, RequestStatus::Pending);
    running.stop().await;
}

async fn a_workspace_that_goes_on_wakes_it(on: BackendKind) {
    use leasehold_store::workspace::WorkspaceChange;
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let pause = async |paused| {
        let change = WorkspaceChange {
            paused: Some(paused),
            ..WorkspaceChange::default()
        };
        let changed = scene.store.workspace_update(site.workspace, &change).await;
        assert!(changed.unwrap().is_some());
    };
    pause(true).await;
    let id = scene.enqueue_one(&site).await;
    let running = scene.run(options("dispatcher"));
    asleep(&scene).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Pending);
    pause(false).await;
    scene
        .until_all(&site, &[id], RequestStatus::Dispatched)
        .await;
    running.stop().await;
}

async fn a_freed_slot_wakes_it(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let ids = scene.enqueue(&site, 2).await;
    let running = scene.run(options("dispatcher"));
    scene
        .until_all(&site, &ids[..1], RequestStatus::Dispatched)
        .await;
    asleep(&scene).await;
    scene.temporal.complete_next().await;
    let follower = scene.follower();
    until("the next one is started", async || {
        round(&follower).await;
        scene.status(&site, ids[1]).await == RequestStatus::Dispatched
    })
    .await;
    assert_eq!(scene.status(&site, ids[0]).await, RequestStatus::Completed);
    running.stop().await;
}

async fn a_request_of_another_process_wakes_it() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(9).await;
    let running = scene.run(options("dispatcher"));
    asleep(&scene).await;
    let other = scene.other_process();
    for _ in 0..3 {
        let ids = enqueue(&*other, &site, 1, |_| {}).await;
        scene
            .until_all(&site, &ids, RequestStatus::Dispatched)
            .await;
    }
    running.stop().await;
}

async fn without_notifications_the_poll_finds_it() {
    let setup = Setup {
        deaf: true,
        ..Setup::default()
    };
    let scene = DispatchEnv::with(BackendKind::Postgres, setup).await;
    let site = scene.site(9).await;
    let running = scene.run(DispatcherOptions {
        poll_interval: Duration::from_millis(200),
        ..options("dispatcher")
    });
    asleep(&scene).await;
    let ids = enqueue(&*scene.other_process(), &site, 3, |_| {}).await;
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
    running.stop().await;
}
