//! A database outage: the engine reports it as unavailable, and the node workers resume by themselves.

use crate::on;
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::{Graph, Node, NodeKind};
use leasehold_engine::{Error, StartOutcome};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend, postgres};
use leasehold_testkit::{FaultProxy, TestPostgres, eventually};
use serde_json::json;
use std::time::Duration;

fn delay(milliseconds: u64) -> Graph {
    Graph {
        nodes: vec![Node::new("pause", NodeKind::Delay { milliseconds })],
        edges: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_and_runner_resume_after_a_database_outage() {
    let server = postgres::server_of(TestPostgres::shared().url());
    let proxy = FaultProxy::to(server).await;
    let options = BackendOptions {
        connections: 10,
        proxy: Some(proxy.address()),
        ..BackendOptions::default()
    };
    let backend = TestBackend::with(BackendKind::Postgres, options).await;
    let g = on(backend.store.clone(), backend);
    let first = g.start(delay(10), json!({})).await;
    g.expect_completed(&first).await;
    let second = g.admit(delay(10), json!({}), None).await;
    let timeout = Some(Duration::from_millis(100));
    let late = g.admit(delay(3_600_000), json!({}), timeout).await;

    proxy.drop_responses();
    // The request may have arrived, so the start may have happened.
    let outcome = g.engine.start(&second).await;
    let reached = matches!(outcome, StartOutcome::Unavailable { reached: true, .. });
    assert!(reached, "{outcome:?}");
    let seen = g.engine.describe(second.execution).await;
    assert!(matches!(seen, Err(Error::Unavailable(_))), "{seen:?}");
    let health = g.engine.health().await;
    assert!(matches!(health, Err(Error::Unavailable(_))), "{health:?}");

    proxy.pass();
    let is_up = eventually(g.timeout, async || g.engine.health().await.is_ok());
    assert!(is_up.await, "the engine did not reconnect to the database");
    for start in [&second, &late] {
        let outcome = g.engine.start(start).await;
        let runs = matches!(
            outcome,
            StartOutcome::Started | StartOutcome::AlreadyStarted { .. }
        );
        assert!(runs, "{outcome:?}");
    }
    g.expect_completed(&second).await;
    assert_eq!(g.wait_ended(&late).await.0, ExecutionEnd::TimedOut);
}
