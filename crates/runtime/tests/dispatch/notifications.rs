//! Notifications that wake a dispatcher that never polls, and polling without notifications.

use crate::dispatch_env::{DispatchEnv, Setup, enqueue, until};
use crate::fixtures::{options, round};
use leasehold_core::{RequestStatus, Timestamp};
use leasehold_runtime::DispatcherOptions;
use leasehold_testbed::BackendKind;
use std::time::Duration;

scenarios! {
    both: new_request_notifies_the_dispatcher, due_run_at_wakes_the_dispatcher, raised_limit_notifies_the_dispatcher, freed_slot_notifies_the_dispatcher,
        resumed_workspace_notifies_the_dispatcher;
    postgres: request_of_another_process_notifies_the_dispatcher, due_run_at_is_dispatched_without_notifications, poll_finds_requests_without_notifications;
}

/// Waits until the dispatcher sleeps with notifications armed.
async fn until_asleep(env: &DispatchEnv) {
    until("the dispatcher sleeps", async || {
        env.faults.calls("notification_arm") > 0
    })
    .await;
}

async fn new_request_notifies_the_dispatcher(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(9).await;
    let running = env.run(options("dispatcher"));
    until_asleep(&env).await;
    for _ in 0..3 {
        let id = env.enqueue_one(&workspace).await;
        env.until_all(&workspace, &[id], RequestStatus::Dispatched)
            .await;
    }
    running.stop().await;
}

async fn due_run_at_wakes_the_dispatcher(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let running = env.run(options("dispatcher"));
    until_asleep(&env).await;
    let at = Timestamp::now() + Duration::from_millis(700);
    let ids = env
        .enqueue_with(&workspace, 1, |new| new.run_at = Some(at))
        .await;
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
    let request = env.get(&workspace, ids[0]).await;
    assert!(request.claimed_at.unwrap() >= request.run_at);
    running.stop().await;
}

async fn due_run_at_is_dispatched_without_notifications() {
    let setup = Setup {
        no_notifications: true,
        ..Setup::default()
    };
    let env = DispatchEnv::with(BackendKind::Postgres, setup).await;
    let workspace = env.workspace(1).await;
    let at = Timestamp::now() + Duration::from_millis(700);
    let ids = env
        .enqueue_with(&workspace, 1, |new| new.run_at = Some(at))
        .await;
    // It never polls, so only the timer can wake it.
    let running = env.run(options("dispatcher"));
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
    running.stop().await;
}

async fn raised_limit_notifies_the_dispatcher(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let ids = env.enqueue(&workspace, 3).await;
    let running = env.run(options("dispatcher"));
    env.until_all(&workspace, &ids[..1], RequestStatus::Dispatched)
        .await;
    until_asleep(&env).await;
    env.set_limit(&workspace, 2).await;
    env.until_all(&workspace, &ids[..2], RequestStatus::Dispatched)
        .await;
    assert_eq!(env.status(&workspace, ids[2]).await, RequestStatus::Pending);
    running.stop().await;
}

async fn resumed_workspace_notifies_the_dispatcher(on: BackendKind) {
    use leasehold_store::workspace::WorkspaceChange;
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let pause = async |paused| {
        let change = WorkspaceChange {
            paused: Some(paused),
            ..WorkspaceChange::default()
        };
        let changed = env
            .store
            .workspace_update(workspace.workspace, &change, &leasehold_store::Actor::Local)
            .await;
        assert!(changed.unwrap().is_some());
    };
    pause(true).await;
    let id = env.enqueue_one(&workspace).await;
    let running = env.run(options("dispatcher"));
    until_asleep(&env).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
    pause(false).await;
    env.until_all(&workspace, &[id], RequestStatus::Dispatched)
        .await;
    running.stop().await;
}

async fn freed_slot_notifies_the_dispatcher(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let ids = env.enqueue(&workspace, 2).await;
    let running = env.run(options("dispatcher"));
    env.until_all(&workspace, &ids[..1], RequestStatus::Dispatched)
        .await;
    until_asleep(&env).await;
    env.temporal.complete_next().await;
    let reconciler = env.reconciler();
    until("the next one is started", async || {
        round(&reconciler).await;
        env.status(&workspace, ids[1]).await == RequestStatus::Dispatched
    })
    .await;
    assert_eq!(
        env.status(&workspace, ids[0]).await,
        RequestStatus::Completed
    );
    running.stop().await;
}

async fn request_of_another_process_notifies_the_dispatcher() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(9).await;
    let running = env.run(options("dispatcher"));
    until_asleep(&env).await;
    let other = env.other_process();
    for _ in 0..3 {
        let ids = enqueue(&*other, &workspace, 1, |_| {}).await;
        env.until_all(&workspace, &ids, RequestStatus::Dispatched)
            .await;
    }
    running.stop().await;
}

async fn poll_finds_requests_without_notifications() {
    let setup = Setup {
        no_notifications: true,
        ..Setup::default()
    };
    let env = DispatchEnv::with(BackendKind::Postgres, setup).await;
    let workspace = env.workspace(9).await;
    let running = env.run(DispatcherOptions {
        poll_interval: Duration::from_millis(200),
        ..options("dispatcher")
    });
    until_asleep(&env).await;
    let ids = enqueue(&*env.other_process(), &workspace, 3, |_| {}).await;
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
    running.stop().await;
}
