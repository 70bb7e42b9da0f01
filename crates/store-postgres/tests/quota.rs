//! Quotas in PostgreSQL: the SQL function enforces them without waiting for other transactions, and the figures can be recomputed.

use crate::{explain, support};

use leasehold_core::limits::REQUEST_OVERHEAD_BYTES;
use leasehold_core::{ExecutionEnd, Usage, WorkspaceId};
use leasehold_store::definition::{NewVersion, Publisher};
use leasehold_store::fresh_id;
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store_conformance::graph_factory::graph;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_testbed::binding;
use leasehold_testkit::{TestDatabase, eventually};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use support::raw::{connect, rejected_by};
use tokio_postgres::{Client, Row};

const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const ENQUEUE_KEY: &str = include_str!("sql/enqueue_key.sql");
const WITH_OPTIONS: &str = include_str!("sql/enqueue_with_options.sql");
const ALIVE: &str = include_str!("sql/instance_alive.sql");
const LONG_AGO: &str = include_str!("sql/fold_long_ago.sql");
const LOCK_TURN: &str = include_str!("sql/turn_lock.sql");
const EXPLAIN: &str = include_str!("sql/enqueue_explain.sql");
const REBUILD: &str = include_str!("sql/rebuild.sql");
const BEGIN: &str = include_str!("sql/begin_without_waiting.sql");

const TIMEOUT: Duration = Duration::from_secs(60);

async fn fixture() -> (Fixture, TestDatabase) {
    let database = support::database().await;
    let clock = clock();
    let store = support::store(&database, clock.clone());
    (Fixture::new(Arc::new(store), clock), database)
}

/// A workspace with these limits.
async fn limited(f: &Fixture, pending: Option<u64>, bytes: Option<u64>) -> TestWorkspace {
    let workspace = f.workspace(100).await;
    let change = WorkspaceChange {
        max_pending_override: Some(pending),
        max_open_bytes_override: Some(bytes),
        ..WorkspaceChange::default()
    };
    f.change(workspace.workspace, change).await;
    workspace
}

async fn enqueue(
    client: &Client,
    workspace: &TestWorkspace,
    params: Value,
) -> Result<Row, tokio_postgres::Error> {
    let ids = (workspace.workspace.0, workspace.definition.0);
    client.query_one(ENQUEUE, &[&ids.0, &ids.1, &params]).await
}

/// Folds now, or lets the last fold be long ago.
async fn fold(f: &Fixture, client: &Client, long_ago: bool) {
    f.store.request_promote_due().await.unwrap();
    if long_ago {
        client.execute(LONG_AGO, &[]).await.unwrap();
    }
}

async fn used(f: &Fixture, workspace: WorkspaceId) -> Usage {
    let quota = f.store.workspace_quota(workspace).await.unwrap();
    quota.unwrap().used
}

#[tokio::test]
async fn sql_function_refuses_what_exceeds_a_quota() {
    let (f, database) = fixture().await;
    let client = connect(&database).await;
    let params = json!("x".repeat(998));
    let one = 1_000 + REQUEST_OVERHEAD_BYTES;
    for long_ago in [false, true] {
        let few = limited(&f, Some(2), None).await;
        let small = limited(&f, None, Some(2 * one + 10)).await;
        for (workspace, constraint) in [
            (&few, "workspace_max_pending"),
            (&small, "workspace_max_open_bytes"),
        ] {
            for _ in 0..2 {
                enqueue(&client, workspace, params.clone()).await.unwrap();
            }
            // The figure may be a second old; after that the unfolded events count.
            match long_ago {
                false => fold(&f, &client, false).await,
                true => drop(client.execute(LONG_AGO, &[]).await.unwrap()),
            }
            let refused = enqueue(&client, workspace, params.clone()).await;
            let error = refused.as_ref().unwrap_err().as_db_error().unwrap();
            assert_eq!(error.code().code(), "53400", "{error:?}");
            assert!(error.hint().unwrap().contains("leasehold workspace set"));
            assert_eq!(rejected_by(refused), constraint);
            let expected = Usage {
                requests: 2,
                bytes: 2 * one,
            };
            assert_eq!(used(&f, workspace.workspace).await, expected);
        }
        // Another workspace is not affected.
        let other = f.workspace(1).await;
        enqueue(&client, &other, params.clone()).await.unwrap();
    }
}

#[tokio::test]
async fn rows_of_the_own_transaction_count_until_a_savepoint_takes_them_back() {
    let (f, database) = fixture().await;
    let client = connect(&database).await;
    for long_ago in [false, true] {
        let workspace = limited(&f, Some(3), None).await;
        let other = limited(&f, Some(1), None).await;
        fold(&f, &client, long_ago).await;
        let run = async |text: &str| client.batch_execute(text).await.unwrap();
        let add = async |to: &TestWorkspace| enqueue(&client, to, json!(1)).await;
        run("BEGIN").await;
        add(&workspace).await.unwrap();
        add(&other).await.unwrap();
        add(&workspace).await.unwrap();
        run("SAVEPOINT a").await;
        add(&workspace).await.unwrap();
        run("ROLLBACK TO a").await;
        add(&workspace).await.unwrap();
        for full in [&workspace, &other] {
            run("SAVEPOINT b").await;
            assert_eq!(rejected_by(add(full).await), "workspace_max_pending");
            run("ROLLBACK TO b").await;
        }
        run("COMMIT").await;
        assert_eq!(used(&f, workspace.workspace).await.requests, 3);
        assert_eq!(used(&f, other.workspace).await.requests, 1);
        // A new transaction begins with the committed rows only.
        f.drain(10).await;
        f.store.request_promote_due().await.unwrap();
        add(&workspace).await.unwrap();
    }
}

/// Two open transactions see neither each other's rows nor each other's locks: what is in flight bounds the overshoot.
#[tokio::test]
async fn open_transactions_do_not_wait_and_exceed_the_quota_by_what_is_in_flight() {
    let (f, database) = fixture().await;
    let workspace = limited(&f, Some(3), None).await;
    let (first, second) = (connect(&database).await, connect(&database).await);
    for client in [&first, &second] {
        client.batch_execute(BEGIN).await.unwrap();
        for _ in 0..2 {
            enqueue(client, &workspace, json!(1)).await.unwrap();
        }
    }
    assert_eq!(f.drain(10).await.requests, [], "the claim does not wait");
    for client in [&first, &second] {
        client.batch_execute("COMMIT").await.unwrap();
    }
    f.store.request_promote_due().await.unwrap();
    assert_eq!(used(&f, workspace.workspace).await.requests, 4);
    let refused = enqueue(&first, &workspace, json!(1)).await;
    assert_eq!(rejected_by(refused), "workspace_max_pending");
}

/// No dispatcher claims, and the server's folder waits longer and longer while nothing happens: nothing is folded when the calls begin.
#[tokio::test]
async fn single_transactions_stop_at_the_quota_after_an_idle_time() {
    let (f, database) = fixture().await;
    let workspace = limited(&f, Some(5), None).await;
    let clients = [connect(&database).await, connect(&database).await];
    clients[0].execute(ALIVE, &[]).await.unwrap();
    fold(&f, &clients[0], true).await;
    for turn in 0..5 {
        let client = &clients[turn % 2];
        enqueue(client, &workspace, json!(1)).await.unwrap();
    }
    for client in &clients {
        let refused = enqueue(client, &workspace, json!(1)).await;
        assert_eq!(rejected_by(refused), "workspace_max_pending");
    }
    // What others commit during a long transaction counts for its next calls.
    let other = limited(&f, Some(4), None).await;
    clients[0].batch_execute("BEGIN").await.unwrap();
    enqueue(&clients[0], &other, json!(1)).await.unwrap();
    for _ in 0..3 {
        enqueue(&clients[1], &other, json!(1)).await.unwrap();
    }
    let refused = eventually(TIMEOUT, async || {
        clients[0].batch_execute("SAVEPOINT a").await.unwrap();
        let added = enqueue(&clients[0], &other, json!(1)).await;
        clients[0].batch_execute("ROLLBACK TO a").await.unwrap();
        added.is_err_and(|error| error.code().is_some_and(|code| code.code() == "53400"))
    });
    assert!(
        refused.await,
        "the transaction does not see what others added"
    );
}

/// A fold does not wait for the row of a workspace, so its changes stay unfolded while the row is locked.
#[tokio::test]
async fn requests_count_while_the_row_of_their_workspace_is_locked() {
    let (f, database) = fixture().await;
    let workspace = limited(&f, Some(2), None).await;
    let (client, locker) = (connect(&database).await, connect(&database).await);
    client.execute(ALIVE, &[]).await.unwrap();
    locker.batch_execute("BEGIN").await.unwrap();
    let locked = locker.query(LOCK_TURN, &[&workspace.workspace.0]).await;
    assert_eq!(locked.unwrap().len(), 1);
    for _ in 0..2 {
        enqueue(&client, &workspace, json!(1)).await.unwrap();
    }
    fold(&f, &client, false).await;
    let refused = enqueue(&client, &workspace, json!(1)).await;
    assert_eq!(rejected_by(refused), "workspace_max_pending");
}

/// Prints what a call costs, and after requests that no fold has seen.
#[tokio::test]
async fn call_reads_few_buffers_after_a_fold() {
    let (f, database) = fixture().await;
    let client = connect(&database).await;
    client.execute(ALIVE, &[]).await.unwrap();
    let workspace = f.workspace(1).await;
    let ids = (workspace.workspace.0, workspace.definition.0);
    let cost = async || {
        let answer = client.query_one(EXPLAIN, &[&ids.0, &ids.1]).await.unwrap();
        explain::read(&answer.get(0)).buffers
    };
    // The first calls of a connection also read the catalog.
    for _ in 0..7 {
        cost().await;
    }
    fold(&f, &client, false).await;
    let fresh = cost().await;
    // A call also looks for the rows of each transaction of the server that was open at the fold. Other tests have such transactions; none is seldom.
    let mut idle = u64::MAX;
    for _ in 0..50 {
        fold(&f, &client, false).await;
        fold(&f, &client, true).await;
        idle = idle.min(cost().await);
    }
    println!("buffers of a call: {fresh} after a fold, {idle} long after it");
    for _ in 0..500 {
        enqueue(&client, &workspace, json!(1)).await.unwrap();
    }
    let unfolded = cost().await;
    fold(&f, &client, false).await;
    let folded = cost().await;
    println!("after 500 more: {unfolded} while they are unfolded, {folded} after a fold");
    assert!(folded <= fresh + 10, "{fresh} {folded}");
    assert!(idle <= fresh + 10, "{fresh} {idle}");
}

#[tokio::test]
async fn held_key_is_answered_while_the_quota_is_used_up() {
    let (f, database) = fixture().await;
    let client = connect(&database).await;
    let one = 1 + REQUEST_OVERHEAD_BYTES;
    for long_ago in [false, true] {
        let few = limited(&f, Some(1), None).await;
        let small = limited(&f, None, Some(one)).await;
        for (workspace, constraint) in [
            (&few, "workspace_max_pending"),
            (&small, "workspace_max_open_bytes"),
        ] {
            let keyed = async |key: &str| {
                let ids = (workspace.workspace.0, workspace.definition.0);
                let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                    [&ids.0, &ids.1, &json!(1), &key];
                let row = client.query_one(ENQUEUE_KEY, &params).await;
                row.map(|row| row.get::<_, uuid::Uuid>("id"))
            };
            let first = keyed("k").await.unwrap();
            fold(&f, &client, long_ago).await;
            assert_eq!(keyed("k").await.unwrap(), first, "{long_ago} {constraint}");
            assert_eq!(rejected_by(keyed("other").await), constraint);
        }
    }
}

#[tokio::test]
async fn version_with_a_schema_needs_the_option_schema_checked() {
    let (f, database) = fixture().await;
    let workspace = f.workspace(1).await;
    let version = NewVersion {
        id: fresh_id(),
        workspace: workspace.workspace,
        definition: workspace.definition,
        body: binding(),
        params_schema: Some(json!({"type": "object"})),
        execution_timeout: None,
        publisher: Publisher::Administrator,
    };
    let by = leasehold_store::Actor::Local;
    f.store.version_publish(&version, &by).await.unwrap();
    let client = connect(&database).await;
    let with = async |options: Option<Value>| {
        let ids = (workspace.workspace.0, workspace.definition.0);
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&ids.0, &ids.1, &options];
        client.query_one(WITH_OPTIONS, &params).await
    };
    for refused in [
        None,
        Some(json!({})),
        Some(json!({"schema_checked": false})),
    ] {
        assert_eq!(rejected_by(with(refused).await), "0A000");
    }
    let invalid = Some(json!({"schema_checked": "yes"}));
    assert_eq!(rejected_by(with(invalid).await), "22023");
    with(Some(json!({"schema_checked": true}))).await.unwrap();
    assert_eq!(used(&f, workspace.workspace).await.requests, 1);
}

/// The figure is the sum over the open requests, so a rebuild, for example after a restored dump, finds the same.
#[tokio::test]
async fn rebuild_recomputes_the_same_figures() {
    let (f, database) = fixture().await;
    let client = connect(&database).await;
    let plain = f.workspace(3).await;
    let graphs = f
        .graph_workspace(2, graph(&["a", "b"], &[("a", "b")]))
        .await;
    for n in 1..8 {
        let params = json!("x".repeat(n * 100));
        enqueue(&client, &plain, params).await.unwrap();
    }
    let claimed = f.claim(10).await.requests;
    f.finish(claimed[0].execution, ExecutionEnd::Failed).await;
    f.enqueue_started(&graphs).await;
    f.complete_node("a", json!("y".repeat(30_000))).await;
    let figures = async || {
        let graphs = used(&f, graphs.workspace).await;
        (used(&f, plain.workspace).await, graphs)
    };
    let before = figures().await;
    assert!(before.1.bytes > 30_000, "{before:?}");
    client.batch_execute(REBUILD).await.unwrap();
    assert_eq!(figures().await, before);
    f.complete_node("b", json!(1)).await;
    assert_eq!(used(&f, graphs.workspace).await, Usage::default());
}
