//! A database outage: the engine reports it as unavailable, and the node workers resume by themselves.

use crate::on;
use leasehold_core::graph::{Graph, Node, NodeKind};
use leasehold_core::{ExecutionEnd, VersionBody};
use leasehold_engine::{Engine, Error, StartOutcome};
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions};
use leasehold_store::{LayeredStore, Result, StoreCall, StoreLayer, fresh_id};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend, postgres};
use leasehold_testkit::{FaultProxy, TestPostgres, eventually};
use serde_json::json;
use std::sync::Arc;
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

/// A layer in front of a store that never answers.
struct Silent;

impl StoreLayer for Silent {
    type Observer = ();

    fn observer(&self) -> &() {
        &()
    }

    async fn call<T: Send>(
        &self,
        _: StoreCall,
        _: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        std::future::pending().await
    }
}

/// The server counts a read that it gave up until the store has answered. An engine that ended the read would end the count.
#[tokio::test]
async fn reads_of_nodes_last_as_long_as_the_store_works_on_them() {
    let backend = TestBackend::new(BackendKind::SqliteMemory).await;
    let silent = LayeredStore::new(backend.store.clone(), Silent);
    let options = EmbeddedOptions {
        call_timeout: Duration::from_millis(20),
        ..EmbeddedOptions::new("test")
    };
    let engine = EmbeddedEngine::new(Arc::new(silent), options);
    let (execution, body) = (fresh_id(), VersionBody::Graph(delay(1)));
    let described = engine.describe(execution).await;
    assert!(
        matches!(described, Err(Error::Unavailable(_))),
        "it has a timeout"
    );
    let longer = Duration::from_millis(200);
    let nodes = tokio::time::timeout(longer, engine.nodes(execution, &body));
    assert!(nodes.await.is_err());
    let output = tokio::time::timeout(longer, engine.output(execution, &body, 0));
    assert!(output.await.is_err());
}
