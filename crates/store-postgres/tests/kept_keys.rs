//! Idempotency keys of pruned requests, under races with pruning and in the SQL function.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{ExecutionEnd, RequestId};
use leasehold_store::fresh_id;
use leasehold_store::request::{Enqueued, EnqueuedRequest, Idempotency, NewRequest};
use leasehold_store_conformance::factory::new_request;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_testkit::{TestDatabase, eventually};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use support::raw::connect;
use tokio_postgres::Client;

const PRUNE: &str = include_str!("sql/prune_completed.sql");
const ENQUEUE: &str = include_str!("sql/enqueue_window.sql");
const LOCK_WAITS: &str = include_str!("sql/lock_waits.sql");

/// A store whose only request is completed and holds the key `k` for ten years.
async fn completed() -> (Fixture, TestDatabase, TestWorkspace, NewRequest) {
    let database = support::database().await;
    let clock = clock();
    let store = support::store(&database, clock.clone());
    let f = Fixture::new(Arc::new(store), clock);
    let workspace = f.workspace(5).await;
    let new = NewRequest {
        idempotency: Some(Idempotency {
            key: "k".into(),
            window: Some(Duration::from_secs(3650 * 24 * 3600)),
        }),
        ..new_request(&workspace)
    };
    f.enqueue_one(&workspace, new.clone()).await;
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    (f, database, workspace, new)
}

async fn wait_for_blocked(client: &Client, sessions: i64) {
    let blocked = eventually(Duration::from_secs(60), async || {
        let row = client.query_one(LOCK_WAITS, &[]).await.unwrap();
        row.get::<_, i64>("waiting") >= sessions
    });
    assert!(
        blocked.await,
        "the enqueue did not wait for the pruned request"
    );
}

async fn enqueue_by_sql(
    client: &Client,
    workspace: &TestWorkspace,
    params: &Value,
) -> Result<RequestId, String> {
    let (workspace, definition) = (workspace.workspace.0, workspace.definition.0);
    let outcome = client
        .query_one(ENQUEUE, &[&workspace, &definition, params, &"k"])
        .await;
    outcome
        .map(|row| RequestId(row.get("id")))
        .map_err(|error| error.as_db_error().unwrap().code().code().to_owned())
}

#[tokio::test]
async fn enqueue_that_waits_for_pruning_finds_the_kept_key() {
    for (end, inserted) in [("COMMIT", false), ("ROLLBACK", false)] {
        let (f, database, workspace, old) = completed().await;
        let pruner = connect(&database).await;
        pruner.batch_execute("BEGIN").await.unwrap();
        assert_eq!(
            pruner.query_one(PRUNE, &[]).await.unwrap().get::<_, i64>(0),
            1
        );
        let again = NewRequest {
            id: fresh_id(),
            ..old.clone()
        };
        let (store, id) = (f.store.clone(), workspace.workspace);
        let enqueueing = tokio::spawn(async move {
            let call = leasehold_store::request::Enqueue {
                workspace: id,
                by: "test".into(),
                requests: vec![again],
            };
            store.request_enqueue(&call).await.unwrap()
        });
        wait_for_blocked(&connect(&database).await, 1).await;
        pruner.batch_execute(end).await.unwrap();
        let held = EnqueuedRequest {
            id: old.id,
            inserted,
        };
        assert_eq!(
            enqueueing.await.unwrap(),
            Enqueued::All(vec![held]),
            "{end}"
        );
    }
}

#[tokio::test]
async fn sql_function_that_waits_for_pruning_fails_and_finds_the_kept_key_when_retried() {
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let (_f, database, workspace, old) = completed().await;
        let params: Value = old.params.read().unwrap();
        let pruner = connect(&database).await;
        pruner.batch_execute("BEGIN").await.unwrap();
        pruner.query_one(PRUNE, &[]).await.unwrap();
        let caller = connect(&database).await;
        let begin = format!("BEGIN ISOLATION LEVEL {isolation}");
        caller.batch_execute(&begin).await.unwrap();
        let watcher = connect(&database).await;
        let (first, ()) = tokio::join!(enqueue_by_sql(&caller, &workspace, &params), async {
            wait_for_blocked(&watcher, 1).await;
            pruner.batch_execute("COMMIT").await.unwrap();
        });
        assert_eq!(first, Err("40001".to_owned()), "{isolation}");
        caller.batch_execute("ROLLBACK").await.unwrap();
        let second = enqueue_by_sql(&caller, &workspace, &params).await;
        assert_eq!(second, Ok(old.id), "{isolation}");
    }
}

#[tokio::test]
async fn sql_function_returns_the_pruned_request_or_a_conflict() {
    let (_f, database, workspace, old) = completed().await;
    let client = connect(&database).await;
    client.query_one(PRUNE, &[]).await.unwrap();
    let params: Value = old.params.read().unwrap();
    let same = enqueue_by_sql(&client, &workspace, &params).await;
    assert_eq!(same, Ok(old.id));
    let other = enqueue_by_sql(&client, &workspace, &json!({"other": 1})).await;
    assert_eq!(other, Err("23505".to_owned()));
}
