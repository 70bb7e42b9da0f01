//! The database goes away and comes back: what the engine says meanwhile, and that what works on nodes goes on by itself.

use crate::on;
use leasehold_core::ExecutionEnd;
use leasehold_core::graph::{Graph, Node, NodeKind};
use leasehold_engine::{Error, StartOutcome};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend, postgres};
use leasehold_testkit::{FaultProxy, TestPostgres, eventually};
use serde_json::json;
use std::time::Duration;

fn pause(milliseconds: u64) -> Graph {
    Graph {
        nodes: vec![Node::new("pause", NodeKind::Delay { milliseconds })],
        edges: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_away_is_found_again() {
    let server = postgres::server_of(TestPostgres::shared().url());
    let proxy = FaultProxy::to(server).await;
    let options = BackendOptions {
        connections: 10,
        connect_timeout: Duration::from_secs(1),
        proxy: Some(proxy.address()),
        ..BackendOptions::default()
    };
    let backend = TestBackend::with(BackendKind::Postgres, options).await;
    let g = on(backend.store.clone(), backend);
    let first = g.start(pause(10), json!({})).await;
    g.completed(&first).await;
    let second = g.admit(pause(10), json!({}), None).await;
    let timeout = Some(Duration::from_millis(100));
    let late = g.admit(pause(3_600_000), json!({}), timeout).await;

    proxy.drop_answers();
    // What was sent may have arrived: the start is not known not to have happened.
    let outcome = g.engine.start(&second).await;
    let reached = matches!(outcome, StartOutcome::Unavailable { reached: true, .. });
    assert!(reached, "{outcome:?}");
    let seen = g.engine.describe(second.execution).await;
    assert!(matches!(seen, Err(Error::Unavailable(_))), "{seen:?}");
    let health = g.engine.health().await;
    assert!(matches!(health, Err(Error::Unavailable(_))), "{health:?}");

    proxy.pass();
    let well = eventually(g.patience, async || g.engine.health().await.is_ok());
    assert!(well.await, "the engine does not find the database again");
    for start in [&second, &late] {
        let outcome = g.engine.start(start).await;
        let runs = matches!(
            outcome,
            StartOutcome::Started | StartOutcome::AlreadyStarted { .. }
        );
        assert!(runs, "{outcome:?}");
    }
    g.completed(&second).await;
    assert_eq!(g.ended(&late).await.0, ExecutionEnd::TimedOut);
}
