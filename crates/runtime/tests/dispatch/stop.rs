//! Graceful stop: nothing more is claimed, unsent requests return to the queue, sent ones are waited for, the lock is released.

use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::fixtures::{NEVER, begin_cycle, options};
use leasehold_core::RequestStatus;
use leasehold_runtime::DispatcherOptions;
use leasehold_testbed::BackendKind;
use std::time::Duration;

scenarios! {
    both: stop_returns_unsent_requests_and_waits_for_sent_ones, stop_waits_at_most_the_drain_timeout,
        nothing_is_claimed_after_stop;
    postgres: stop_releases_the_lock_to_a_standby_dispatcher;
}

/// Returns options with one start at a time, so that the rest of a batch is queued.
fn one_by_one() -> DispatcherOptions {
    DispatcherOptions {
        concurrency: 1,
        drain_timeout: NEVER,
        ..options("dispatcher")
    }
}

async fn stop_returns_unsent_requests_and_waits_for_sent_ones(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(9).await;
    let ids = env.enqueue(&workspace, 5).await;
    let hold = barrier();
    env.engine
        .inject_all(Some(Fault::WaitsBefore(hold.clone())));
    let running = env.run(one_by_one());
    until("a start is in flight", async || {
        env.engine.calls().starts.len() == 1
    })
    .await;
    env.until_all(&workspace, &ids, RequestStatus::Claimed)
        .await;
    running.request_stop();
    env.until_all(&workspace, &ids[1..], RequestStatus::Pending)
        .await;
    for id in &ids[1..] {
        let request = env.get(&workspace, *id).await;
        assert_eq!((request.execution, request.dispatch_failures), (None, 0));
    }
    assert_eq!(env.in_use(&workspace).await, 1);
    assert!(!running.is_finished());
    hold.add_permits(1);
    running.stop().await;
    assert_eq!(
        env.status(&workspace, ids[0]).await,
        RequestStatus::Dispatched
    );
    assert_eq!(env.engine.calls().starts.len(), 1);
}

async fn stop_waits_at_most_the_drain_timeout(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::Hangs]);
    let running = env.run(DispatcherOptions {
        drain_timeout: Duration::from_millis(200),
        start_timeout: NEVER,
        ..options("dispatcher")
    });
    until("a start is in flight", async || {
        env.engine.calls().starts.len() == 1
    })
    .await;
    running.stop().await;
    // The outcome is unknown: its lease expires and the recoverer takes it.
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Claimed);
}

async fn nothing_is_claimed_after_stop(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let (stop, running) = begin_cycle(env.dispatcher());
    stop.cancel();
    let done = running.await.unwrap();
    let request = env.get(&workspace, id).await;
    match request.status.known().unwrap() {
        // The claim was already in flight.
        RequestStatus::Pending => assert_eq!((done.dispatched, request.execution), (0, None)),
        status => assert_eq!((done.dispatched, status), (1, RequestStatus::Dispatched)),
    }
    assert_eq!(
        env.in_use(&workspace).await,
        u32::from(done.dispatched == 1)
    );
}

async fn stop_releases_the_lock_to_a_standby_dispatcher() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(1).await;
    let first = env.run(options("first"));
    until("the first has the lock", async || {
        env.faults.calls("notification_arm") > 0
    })
    .await;
    // Its next attempt is far in the future: only the notification of the free lock can trigger it.
    let second = env.run(DispatcherOptions {
        lock_retry: NEVER,
        ..options("second")
    });
    first.stop().await;
    let id = env.enqueue_one(&workspace).await;
    env.until_all(&workspace, &[id], RequestStatus::Dispatched)
        .await;
    let events = env.store.request_timeline(workspace.workspace, id).await;
    assert_eq!(events.unwrap()[1].by, "second");
    second.stop().await;
}
