//! One bad item in a batch: whatever it does, the others are started and written down.

use crate::cast::{cycle, options};
use crate::dispatch_env::DispatchEnv;
use crate::faulty_engine::Fault;
use crate::logs;
use leasehold_core::{RequestId, RequestStatus};
use leasehold_runtime::DispatcherOptions;
use leasehold_testbed::{BackendKind, TestWorkspace};
use std::time::Duration;
use tracing::Level;

const POISON_ADD: &str = include_str!("../sql/poison_add.sql");
const POISON_REMOVE: &str = include_str!("../sql/poison_remove.sql");
/// The priority of the request that the database refuses to take further.
const POISONED: i16 = 13;

scenarios! {
    both: an_item_that_panics_beside_items_that_do_not, an_item_that_hangs_beside_items_that_do_not,
        an_item_that_is_refused_beside_items_that_are_not;
    postgres: an_item_that_rolls_back_beside_items_that_must_not;
}

/// Five requests, and the third of them.
async fn five(scene: &DispatchEnv) -> (TestWorkspace, Vec<RequestId>, RequestId) {
    let site = scene.site(10).await;
    let mut ids = scene.enqueue(&site, 5).await;
    let bad = ids.remove(2);
    (site, ids, bad)
}

async fn assert_all_started(scene: &DispatchEnv, site: &TestWorkspace, ids: &[RequestId]) {
    for id in ids {
        assert_eq!(scene.status(site, *id).await, RequestStatus::Dispatched);
    }
}

async fn an_item_that_panics_beside_items_that_do_not(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let (site, others, bad) = five(&scene).await;
    scene.engine.inject(bad, &[Fault::Panics]);
    let dispatcher = scene.dispatcher();
    let done = cycle(&dispatcher).await;
    assert_eq!((done.dispatched, done.released), (4, 1));
    assert_all_started(&scene, &site, &others).await;
    // Nobody knows how far it came before it panicked.
    let request = scene.get(&site, bad).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!((request.attempt_count, request.dispatch_failures), (1, 0));
    assert!(request.execution.is_some());
    let named = format!("request={bad}");
    logs::assert_once(Level::ERROR, &["Error processing queue item", &named]);
    crate::assert_event("Error processing queue item");
    assert_eq!(logs::count(Level::WARN, &[&named]), 0, "it is said once");
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn an_item_that_hangs_beside_items_that_do_not(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let (site, others, bad) = five(&scene).await;
    scene.engine.inject(bad, &[Fault::Hangs]);
    let dispatcher = scene.dispatcher_with(DispatcherOptions {
        start_timeout: Duration::from_millis(500),
        ..options("dispatcher")
    });
    let done = cycle(&dispatcher).await;
    assert_eq!((done.dispatched, done.released), (4, 1));
    assert_all_started(&scene, &site, &others).await;
    let request = scene.get(&site, bad).await;
    assert!(request.last_error.unwrap().contains("no answer within"));
    assert!(request.execution.is_some());
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn an_item_that_is_refused_beside_items_that_are_not(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let (site, others, bad) = five(&scene).await;
    scene.engine.inject(bad, &[Fault::Refused]);
    let done = cycle(&scene.dispatcher()).await;
    assert_eq!((done.dispatched, done.released), (4, 1));
    assert_all_started(&scene, &site, &others).await;
    assert_eq!(scene.get(&site, bad).await.dispatch_failures, 1);
    assert_eq!(scene.in_use(&site).await, 4);
}

/// What is written for many at once is written for each alone where the database refuses one of them.
async fn an_item_that_rolls_back_beside_items_that_must_not() {
    let scene = DispatchEnv::still(BackendKind::Postgres).await;
    let site = scene.site(10).await;
    let bad = scene
        .enqueue_with(&site, 1, |new| new.priority = POISONED)
        .await[0];
    let others = scene.enqueue(&site, 4).await;
    let hand = scene.by_hand().await;
    hand.batch_execute(POISON_ADD).await.unwrap();
    let dispatcher = scene.dispatcher();
    let done = cycle(&dispatcher).await;
    assert_eq!((done.dispatched, done.lost), (4, 1));
    assert_all_started(&scene, &site, &others).await;
    // It runs, and holds its claim until that ends.
    assert_eq!(scene.status(&site, bad).await, RequestStatus::Claimed);
    let named = format!("request={bad}");
    logs::assert_once(Level::ERROR, &["Error processing queue item", &named]);
    // The dispatcher is not held up by it.
    let next = scene.enqueue_one(&site).await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_all_started(&scene, &site, &[next]).await;
    hand.batch_execute(POISON_REMOVE).await.unwrap();
    scene.wait_out();
    crate::cast::round(&scene.recoverer()).await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let execution = scene.execution(&site, bad).await;
    assert_eq!(scene.engine.starts_of(execution), 2);
    let mut executions = vec![execution];
    for id in others.into_iter().chain([next]) {
        executions.push(scene.execution(&site, id).await);
    }
    scene.assert_one_run_each(executions).await;
}
