//! Stopping in order: nothing more is claimed, what was not sent is given back, what was sent is waited for, the lock is free.

use crate::cast::{NEVER, begin_cycle, options};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use leasehold_core::RequestStatus;
use leasehold_runtime::DispatcherOptions;
use leasehold_testbed::BackendKind;
use std::time::Duration;

scenarios! {
    both: stop_gives_back_what_was_not_sent_and_waits_for_what_was, stop_waits_no_longer_than_it_may,
        nothing_is_claimed_after_stop;
    postgres: stop_frees_the_lock_for_whoever_stands_by;
}

/// One start at a time, so that the rest of a batch waits its turn.
fn one_by_one() -> DispatcherOptions {
    DispatcherOptions {
        concurrency: 1,
        ..options("dispatcher")
    }
}

async fn stop_gives_back_what_was_not_sent_and_waits_for_what_was(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(9).await;
    let ids = scene.enqueue(&site, 5).await;
    let hold = barrier();
    scene
        .engine
        .inject_all(Some(Fault::WaitsBefore(hold.clone())));
    let running = scene.run(one_by_one());
    until("a start is under way", async || {
        scene.engine.calls().starts.len() == 1
    })
    .await;
    scene.until_all(&site, &ids, RequestStatus::Claimed).await;
    running.ask_to_stop();
    scene
        .until_all(&site, &ids[1..], RequestStatus::Pending)
        .await;
    for id in &ids[1..] {
        let request = scene.get(&site, *id).await;
        assert_eq!((request.execution, request.dispatch_failures), (None, 0));
    }
    assert_eq!(scene.in_use(&site).await, 1);
    assert!(!running.is_over());
    hold.add_permits(1);
    running.stop().await;
    assert_eq!(scene.status(&site, ids[0]).await, RequestStatus::Dispatched);
    assert_eq!(scene.engine.calls().starts.len(), 1);
}

async fn stop_waits_no_longer_than_it_may(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::Hangs]);
    let running = scene.run(DispatcherOptions {
        drain_timeout: Duration::from_millis(200),
        start_timeout: NEVER,
        ..options("dispatcher")
    });
    until("a start is under way", async || {
        scene.engine.calls().starts.len() == 1
    })
    .await;
    running.stop().await;
    // Nobody knows what became of it: its lease ends and recovery takes it.
    assert_eq!(scene.status(&site, id).await, RequestStatus::Claimed);
}

async fn nothing_is_claimed_after_stop(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let (stop, running) = begin_cycle(scene.dispatcher());
    stop.cancel();
    let done = running.await.unwrap();
    let request = scene.get(&site, id).await;
    match request.status {
        // Its claim was under way already.
        RequestStatus::Pending => assert_eq!((done.dispatched, request.execution), (0, None)),
        status => assert_eq!((done.dispatched, status), (1, RequestStatus::Dispatched)),
    }
    assert_eq!(scene.in_use(&site).await, u32::from(done.dispatched == 1));
}

async fn stop_frees_the_lock_for_whoever_stands_by() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(1).await;
    let first = scene.run(options("first"));
    until("the first has the lock", async || {
        scene.faults.calls("wake_arm") > 0
    })
    .await;
    // Its next try lies far in the future: only being told that the lock is free can bring it there.
    let second = scene.run(DispatcherOptions {
        lock_retry: NEVER,
        ..options("second")
    });
    first.stop().await;
    let id = scene.enqueue_one(&site).await;
    scene
        .until_all(&site, &[id], RequestStatus::Dispatched)
        .await;
    let events = scene.store.request_timeline(site.workspace, id).await;
    assert_eq!(events.unwrap()[1].by, "second");
    second.stop().await;
}
