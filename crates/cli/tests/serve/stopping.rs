//! SIGTERM at bad moments: under load, and when a server that is waited for says nothing.

use crate::blocking;
use crate::database::{self, server_of};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use leasehold_testkit::{FaultProxy, Process};
use serde_json::json;
use std::time::Duration;

/// `dispatch.drain_timeout`, set so in these tests.
const DRAIN: Duration = Duration::from_secs(5);
/// What is allowed on top, to give back locks and to end.
const MORE: Duration = Duration::from_secs(10);

fn program(store: &str, temporal: &str, namespace: &str) -> Program {
    Program::new(store, temporal, namespace)
        .set("dispatch.drain_timeout", "5s")
        .set("log.level", program::TELLING)
}

/// Its end comes in time, and is a good one.
fn ends_in_time(serve: &mut Process) {
    serve.terminate();
    let status = blocking(|| serve.wait(DRAIN + MORE));
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_under_load_it_leaves_no_claim_behind() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let mut serve = program(database.url(), namespace.address(), &namespace.name).start();
    let site = OrderWorkspace::new(database::store(database.url()), 100_000).await;
    for _ in 0..4 {
        site.enqueue_many(1000, &json!({"do": "wait"})).await;
    }
    site.until("some dispatched", |counts| counts.dispatched >= 50)
        .await;
    ends_in_time(&mut serve);
    let counts = site.counts().await;
    assert_eq!(counts.claimed, 0, "{counts:?}");
    assert_eq!(counts.failed, 0, "{counts:?}");
    assert!(counts.pending > 0, "there was no load: {counts:?}");
    let slots = site.slots().await;
    assert_eq!(u64::from(slots.in_use), counts.dispatched, "{slots:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_while_temporal_hangs_it_ends_in_time() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let proxy = FaultProxy::to(namespace.address()).await;
    let mut serve = program(database.url(), &proxy.address(), &namespace.name).start();
    program::said(&serve, program::WORKS, 1).await;
    program::said(&serve, program::CONNECTED, 1).await;
    proxy.hold_answers();
    let site = OrderWorkspace::new(database::store(database.url()), 10).await;
    site.enqueue_many(3, &json!({"do": "wait"})).await;
    program::said(&serve, "Dispatching queue item", 3).await;
    ends_in_time(&mut serve);
    // Nobody knows whether they were started, so they keep their slots and are asked for again.
    let counts = site.counts().await;
    assert_eq!(counts.failed + counts.dispatched, 0, "{counts:?}");
    assert_eq!(site.slots().await.in_use, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_while_postgresql_hangs_it_ends_in_time() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let server = server_of(database.url());
    let proxy = FaultProxy::to(server).await;
    let url = database.url().replace(server, &proxy.address());
    let mut serve = program(&url, namespace.address(), &namespace.name).start();
    program::said(&serve, program::WORKS, 1).await;
    proxy.hold_answers();
    let site = OrderWorkspace::new(database::store(database.url()), 10).await;
    site.enqueue_many(3, &json!({"do": "wait"})).await;
    proxy.held_answers(1).await;
    ends_in_time(&mut serve);
}
