//! SIGTERM under load, and while a dependency hangs.

use crate::blocking;
use crate::database::{self, server_of};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use leasehold_testkit::{FaultProxy, Process};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Requests that wait under load.
const WAITING: u64 = 2_000;
/// `dispatch.drain_timeout` in these tests.
const DRAIN: Duration = Duration::from_secs(5);
/// Extra time to release locks and exit on a slow machine; a call of a hanging Temporal takes longer.
const MORE: Duration = Duration::from_secs(90);

fn program(store: &str, temporal: &str, namespace: &str) -> Program {
    Program::new(store, temporal, namespace)
        .patient()
        .set("dispatch.drain_timeout", "5s")
        .set("log.level", program::VERBOSE)
}

/// Keeps requests waiting until the process has ended, so that it stops under load however late the signal arrives.
async fn load(workspace: Arc<OrderWorkspace>, ended: CancellationToken) {
    while !ended.is_cancelled() {
        workspace
            .until("room for more load", |counts| {
                counts.pending < WAITING || ended.is_cancelled()
            })
            .await;
        workspace.enqueue_many(500, &json!({"do": "wait"})).await;
    }
}

/// Asserts a successful exit in time.
fn assert_stops_in_time(serve: &mut Process) {
    serve.terminate();
    let status = blocking(|| serve.wait(DRAIN + MORE));
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_under_load_leaves_no_claim() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    // A busy Temporal server answers the last starts late; this test is about claims, not about the limit.
    let mut serve = program(database.url(), namespace.address(), &namespace.name)
        .set("dispatch.drain_timeout", "60s")
        .start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 100_000).await;
    let workspace = Arc::new(workspace);
    let ended = CancellationToken::new();
    let load = tokio::spawn(load(Arc::clone(&workspace), ended.clone()));
    workspace
        .until("some dispatched", |counts| counts.dispatched >= 50)
        .await;
    serve.terminate();
    let status = blocking(|| serve.wait(Duration::from_secs(60) + MORE));
    assert!(status.success(), "{status}");
    ended.cancel();
    load.await.unwrap();
    let counts = workspace.counts().await;
    assert_eq!(counts.claimed, 0, "{counts:?}");
    assert_eq!(counts.failed, 0, "{counts:?}");
    assert!(counts.pending > 0, "there was no load: {counts:?}");
    // An unknown start keeps its slot, so a request returned to PENDING may hold one too.
    let slots = workspace.slots().await;
    let requests = workspace.all().await;
    let with_execution = requests
        .iter()
        .filter(|request| request.execution.is_some());
    assert_eq!(slots.in_use as usize, with_execution.count(), "{slots:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_in_time_while_temporal_hangs() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let proxy = FaultProxy::to(namespace.address()).await;
    let mut serve = program(database.url(), &proxy.address(), &namespace.name).start();
    program::wait_for_lines(&serve, program::LOCK_ACQUIRED, 1).await;
    program::wait_for_lines(&serve, program::CONNECTED, 1).await;
    proxy.hold_responses();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    workspace.enqueue_many(3, &json!({"do": "wait"})).await;
    program::wait_for_lines(&serve, "Dispatching queue item", 3).await;
    assert_stops_in_time(&mut serve);
    // Unknown starts keep their slots and are repeated.
    let counts = workspace.counts().await;
    assert_eq!(counts.failed + counts.dispatched, 0, "{counts:?}");
    assert_eq!(workspace.slots().await.in_use, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_in_time_while_postgresql_hangs() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let server = server_of(database.url());
    let proxy = FaultProxy::to(server).await;
    let url = database.url().replace(server, &proxy.address());
    let mut serve = program(&url, namespace.address(), &namespace.name).start();
    program::wait_for_lines(&serve, program::LOCK_ACQUIRED, 1).await;
    proxy.hold_responses();
    let workspace = OrderWorkspace::new(database::store(database.url()), 10).await;
    workspace.enqueue_many(3, &json!({"do": "wait"})).await;
    proxy.wait_for_held_responses(1).await;
    assert_stops_in_time(&mut serve);
}
