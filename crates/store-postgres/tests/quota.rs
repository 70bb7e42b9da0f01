//! Quotas in PostgreSQL: the SQL function enforces them without waiting for other transactions, and the figures can be recomputed.

use crate::support;

use leasehold_core::limits::REQUEST_OVERHEAD_BYTES;
use leasehold_core::{ExecutionEnd, Usage, WorkspaceId};
use leasehold_store::definition::{NewVersion, Publisher};
use leasehold_store::fresh_id;
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store_conformance::graph_factory::graph;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_testbed::binding;
use leasehold_testkit::TestDatabase;
use serde_json::{Value, json};
use std::sync::Arc;
use support::raw::{connect, rejected_by};
use tokio_postgres::{Client, Row};

const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const ENQUEUE_KEY: &str = include_str!("sql/enqueue_key.sql");
const WITH_OPTIONS: &str = include_str!("sql/enqueue_with_options.sql");
const ALIVE: &str = include_str!("sql/instance_alive.sql");
const REBUILD: &str = include_str!("sql/rebuild.sql");
const BEGIN: &str = include_str!("sql/begin_without_waiting.sql");

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
    for alive in [false, true] {
        if alive {
            client.execute(ALIVE, &[]).await.unwrap();
        }
        let few = limited(&f, Some(2), None).await;
        let small = limited(&f, None, Some(2 * one + 10)).await;
        for (workspace, constraint) in [
            (&few, "workspace_max_pending"),
            (&small, "workspace_max_open_bytes"),
        ] {
            for _ in 0..2 {
                enqueue(&client, workspace, params.clone()).await.unwrap();
            }
            // With a server the folded figure counts; without one the unfolded events do.
            if alive {
                f.store.request_promote_due().await.unwrap();
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
    for alive in [false, true] {
        if alive {
            client.execute(ALIVE, &[]).await.unwrap();
        }
        let workspace = limited(&f, Some(3), None).await;
        let other = limited(&f, Some(1), None).await;
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
    first.execute(ALIVE, &[]).await.unwrap();
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

#[tokio::test]
async fn held_key_is_answered_while_the_quota_is_used_up() {
    let (f, database) = fixture().await;
    let client = connect(&database).await;
    let one = 1 + REQUEST_OVERHEAD_BYTES;
    for alive in [false, true] {
        if alive {
            client.execute(ALIVE, &[]).await.unwrap();
        }
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
            f.store.request_promote_due().await.unwrap();
            assert_eq!(keyed("k").await.unwrap(), first, "{alive} {constraint}");
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
