//! Drift in the database of a running server is detected and repaired within one interval.

use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{TIMEOUT, database};
use leasehold_core::RequestStatus;
use leasehold_testkit::{HttpConnection, eventually};
use serde_json::json;
use std::future::ready;
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;

/// An execution that ended longer ago is drift.
const GRACE: Duration = Duration::from_secs(11);
const TRIGGERS_OFF: &str = include_str!("sql/drift_triggers_off.sql");
const FULL: &str = include_str!("sql/drift_full.sql");
const REQUEST_BACK: &str = include_str!("sql/drift_request_back.sql");
const EXECUTION_BACK: &str = include_str!("sql/drift_execution_back.sql");

/// The `repaired` counter of this kind.
async fn repaired(program: &Program, kind: &str) -> f64 {
    let read = |name: &str| std::fs::read_to_string(program.file(name)).unwrap();
    let (url, key) = (
        read("leasehold-data/address"),
        read("leasehold-data/admin.key"),
    );
    let server = url.strip_prefix("http://").unwrap().trim_end();
    let mut connection = HttpConnection::open(server.parse().unwrap()).await.unwrap();
    let answer = connection.call("GET", "/metrics", key.trim(), None).await;
    let text = answer.unwrap().text();
    let series = format!("leasehold_capacity_drift_repaired_total{{kind=\"{kind}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&series));
    line.unwrap_or_else(|| panic!("no {series}in:\n{text}"))
        .parse()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn running_server_repairs_drift() {
    let (database, namespace) = (database::fresh().await, Namespace::fresh());
    let program = Program::new(database.url(), namespace.address(), &namespace.name)
        .quick()
        .set("drift.interval", "500ms")
        .set("sweep.interval", "500ms");
    let mut serve = program.start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 1).await;
    let (sql, connection) = tokio_postgres::connect(&database.url_in("leasehold"), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    sql.batch_execute(TRIGGERS_OFF).await.unwrap();

    // A workspace marked as full without executions would never be served.
    assert_eq!(repaired(&program, "slot_without_execution").await, 0.0);
    let full = sql.execute(FULL, &[&workspace.workspace.0]).await;
    assert_eq!(full.unwrap(), 1);
    let repaired_slot = eventually(TIMEOUT, async || {
        repaired(&program, "slot_without_execution").await >= 1.0
    });
    assert!(repaired_slot.await, "{}", serve.log());

    // Ended in Temporal, and reset to DISPATCHED here.
    let id = workspace.enqueue(json!({})).await;
    let is = async |status| {
        let request = workspace.store.request_get(workspace.workspace, id).await;
        request.unwrap().unwrap().status == status
    };
    let dispatched = eventually(TIMEOUT, async || is(RequestStatus::Dispatched).await);
    assert!(dispatched.await, "{}", serve.log());
    let request = workspace
        .store
        .request_get(workspace.workspace, id)
        .await
        .unwrap();
    let execution = request.unwrap().execution.unwrap();
    namespace.terminate(execution, "stop");
    let ended = Instant::now();
    let failed = eventually(TIMEOUT, async || is(RequestStatus::Failed).await);
    assert!(failed.await, "{}", serve.log());
    let before = repaired(&program, "ended_in_engine").await;
    // Older than the grace period.
    let old = eventually(TIMEOUT, || ready(ended.elapsed() > GRACE));
    assert!(old.await);
    assert_eq!(sql.execute(REQUEST_BACK, &[&id.0]).await.unwrap(), 1);
    let back = sql.execute(EXECUTION_BACK, &[&execution.0]).await;
    assert_eq!(back.unwrap(), 1);
    let late = eventually(TIMEOUT, async || {
        repaired(&program, "ended_in_engine").await > before
    });
    assert!(late.await, "{}", serve.log());
    let failed = eventually(TIMEOUT, async || is(RequestStatus::Failed).await);
    assert!(failed.await, "{}", serve.log());
    program::stop(&mut serve);
}
