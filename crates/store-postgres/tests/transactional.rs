//! Enqueueing inside the caller's transaction, with the SQL function.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{RequestId, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::request::{Enqueue, Enqueued, Idempotency, NewRequest};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_testkit::TestDatabase;
use serde_json::{Value, json};
use std::sync::Arc;
use support::raw::connect;
use tokio_postgres::Client;
use uuid::Uuid;

const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const ENQUEUE_KEY: &str = include_str!("sql/enqueue_key.sql");

async fn fixture() -> (Fixture, TestDatabase) {
    let database = support::database().await;
    let clock = clock();
    let store = support::store(&database, clock.clone());
    (Fixture::new(Arc::new(store), clock), database)
}

async fn enqueue(client: &Client, workspace: &TestWorkspace, params: Value) -> RequestId {
    let row = client
        .query_one(
            ENQUEUE,
            &[&workspace.workspace.0, &workspace.definition.0, &params],
        )
        .await
        .unwrap();
    RequestId(row.get("id"))
}

async fn with_key(
    client: &Client,
    workspace: &TestWorkspace,
    key: &str,
    params: Value,
) -> Result<RequestId, String> {
    let answer = client
        .query_one(
            ENQUEUE_KEY,
            &[
                &workspace.workspace.0,
                &workspace.definition.0,
                &params,
                &key,
            ],
        )
        .await;
    answer
        .map(|row| RequestId(row.get("id")))
        .map_err(|error| error.as_db_error().unwrap().code().code().to_owned())
}

#[tokio::test]
async fn rolled_back_request_is_never_enqueued_and_committed_one_is_claimed() {
    let (fixture, database) = fixture().await;
    let workspace = fixture.workspace(5).await;
    let client = connect(&database).await;
    client.batch_execute("BEGIN").await.unwrap();
    enqueue(&client, &workspace, json!({"n": 1})).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    client.batch_execute("BEGIN").await.unwrap();
    let kept = enqueue(&client, &workspace, json!({"n": 2})).await;
    assert_eq!(
        fixture.drain(10).await.requests,
        [],
        "nothing before the commit"
    );
    client.batch_execute("COMMIT").await.unwrap();
    let claimed = fixture.drain(10).await.requests;
    assert_eq!(claimed.iter().map(|r| r.id).collect::<Vec<_>>(), [kept]);
    assert_eq!(claimed[0].params.as_str(), r#"{"n": 2}"#);
}

#[tokio::test]
async fn sql_function_creates_the_same_request_as_the_store() {
    let (fixture, database) = fixture().await;
    let workspace = fixture.workspace(5).await;
    let client = connect(&database).await;
    let params = json!({"order": 1, "lines": [1, 2]});
    let by_sql = enqueue(&client, &workspace, params.clone()).await;
    let new = NewRequest::new(fresh_id(), workspace.definition, params);
    let by_store = new.id;
    let call = Enqueue {
        workspace: workspace.workspace,
        requests: vec![new],
        by: "sql".into(),
    };
    fixture.store.request_enqueue(&call).await.unwrap();
    let mut pair = Vec::new();
    for id in [by_sql, by_store] {
        let mut request = fixture
            .store
            .request_get(workspace.workspace, id)
            .await
            .unwrap()
            .unwrap();
        let mut events = fixture
            .store
            .request_timeline(workspace.workspace, id)
            .await
            .unwrap();
        request.id = by_store;
        // PostgreSQL prints JSON with spaces, so the function counts a few bytes more.
        assert!((1_049..=1_053).contains(&request.bytes));
        request.bytes = 0;
        request.run_at = fixture.clock.now();
        request.created_at = fixture.clock.now();
        for event in &mut events {
            event.request = by_store;
            event.at = fixture.clock.now();
        }
        assert_eq!(request.status, RequestStatus::Pending);
        pair.push((request, events));
    }
    assert_eq!(pair[0], pair[1]);
    assert_eq!(
        fixture
            .store
            .request_counts(workspace.workspace)
            .await
            .unwrap()
            .pending,
        2
    );
}

/// Must hold however long the transactions stay open.
#[tokio::test]
async fn ten_open_transactions_block_neither_each_other_nor_claims() {
    let (fixture, database) = fixture().await;
    let workspace = fixture.workspace(100).await;
    let committed = fixture.enqueue(&workspace, 20).await;
    let mut open = Vec::new();
    for n in 0..10 {
        let client = connect(&database).await;
        client
            .batch_execute(include_str!("sql/begin_without_waiting.sql"))
            .await
            .unwrap();
        for _ in 0..5 {
            enqueue(&client, &workspace, json!({"n": n})).await;
        }
        open.push(client);
    }
    let claimed = fixture.drain(7).await.requests;
    assert_eq!(claimed.iter().map(|r| r.id).collect::<Vec<_>>(), committed);
    let more = fixture.enqueue(&workspace, 3).await;
    assert_eq!(fixture.drain(7).await.requests.len(), more.len());
    assert_eq!(
        fixture
            .store
            .request_counts(workspace.workspace)
            .await
            .unwrap()
            .pending,
        0
    );
    for (n, client) in open.iter().enumerate() {
        let end = if n % 2 == 0 { "COMMIT" } else { "ROLLBACK" };
        client.batch_execute(end).await.unwrap();
    }
    assert_eq!(
        fixture
            .store
            .request_counts(workspace.workspace)
            .await
            .unwrap()
            .pending,
        25
    );
    assert_eq!(fixture.drain(100).await.requests.len(), 25);
}

#[tokio::test]
async fn idempotency_key_is_shared_with_the_store() {
    let (fixture, database) = fixture().await;
    let workspace = fixture.workspace(5).await;
    let client = connect(&database).await;
    let first = with_key(&client, &workspace, "k", json!({"n": 1}))
        .await
        .unwrap();
    assert_eq!(
        with_key(&client, &workspace, "k", json!({"n": 1.0})).await,
        Ok(first)
    );
    assert_eq!(
        with_key(&client, &workspace, "k", json!({"n": 2})).await,
        Err("23505".into())
    );
    let mut new = NewRequest::new(fresh_id(), workspace.definition, json!({"n": 1}));
    new.idempotency = Some(Idempotency {
        key: "k".into(),
        window: None,
    });
    let call = Enqueue {
        workspace: workspace.workspace,
        requests: vec![new],
        by: "x".into(),
    };
    let Enqueued::All(answers) = fixture.store.request_enqueue(&call).await.unwrap() else {
        panic!("the store should find the holder");
    };
    assert_eq!((answers[0].id, answers[0].inserted), (first, false));
}

#[tokio::test]
async fn invalid_enqueue_is_rejected_with_its_error_code() {
    let (fixture, database) = fixture().await;
    let workspace = fixture.workspace(5).await;
    let other = fixture.workspace(5).await;
    let client = connect(&database).await;
    let unknown = Uuid::now_v7();
    let deep: Value =
        serde_json::from_str(&format!("{}{}", "[".repeat(65), "]".repeat(65))).unwrap();
    let big = json!("x".repeat(300_000));
    for (workspace, definition, params, code) in [
        (unknown, workspace.definition.0, json!(1), "P0002"),
        (workspace.workspace.0, unknown, json!(1), "P0002"),
        (workspace.workspace.0, other.definition.0, json!(1), "42501"),
        (workspace.workspace.0, workspace.definition.0, deep, "54000"),
        (workspace.workspace.0, workspace.definition.0, big, "54000"),
    ] {
        let error = client
            .query_one(ENQUEUE, &[&workspace, &definition, &params])
            .await
            .unwrap_err();
        assert_eq!(
            error.as_db_error().unwrap().code().code(),
            code,
            "{error:?}"
        );
    }
    assert_eq!(
        fixture
            .store
            .request_counts(workspace.workspace)
            .await
            .unwrap()
            .pending,
        0
    );
}

/// PostgreSQL accepts numbers and times that other programs cannot represent.
#[tokio::test]
async fn numbers_and_times_only_postgres_supports_are_rejected() {
    let (fixture, database) = fixture().await;
    let workspace = fixture.workspace(5).await;
    let client = connect(&database).await;
    for (sql, code) in [
        (include_str!("sql/enqueue_huge_number.sql"), "54000"),
        (include_str!("sql/enqueue_never.sql"), "23514"),
    ] {
        let refused = client
            .query_one(sql, &[&workspace.workspace.0, &workspace.definition.0])
            .await;
        assert_eq!(
            refused.unwrap_err().as_db_error().unwrap().code().code(),
            code
        );
    }
    let counts = fixture
        .store
        .request_counts(workspace.workspace)
        .await
        .unwrap();
    assert_eq!(counts.pending, 0);
}

#[tokio::test]
async fn unknown_options_are_rejected_without_effect() {
    let (fixture, database) = fixture().await;
    let workspace = fixture.workspace(5).await;
    let client = connect(&database).await;
    let enqueue = include_str!("sql/enqueue_with_options.sql");
    let job_enqueue = include_str!("sql/job_enqueue_with_options.sql");
    let (workspace_id, definition) = (workspace.workspace.0, workspace.definition.0);
    for (options, message) in [
        (json!({"color": 1}), "unknown option \"color\""),
        (json!([]), "options must be a JSON object, not array"),
        (json!(null), "options must be a JSON object, not null"),
    ] {
        let request = client
            .query_one(enqueue, &[&workspace_id, &definition, &options])
            .await;
        let job = client.query_one(job_enqueue, &[&options]).await;
        for (name, answer) in [
            ("leasehold_enqueue", request),
            ("leasehold_job_enqueue", job),
        ] {
            let error = answer.unwrap_err();
            let error = error.as_db_error().unwrap();
            assert_eq!(error.code().code(), "22023");
            assert_eq!(error.message(), format!("{name}: {message}"));
        }
    }
    let counts = fixture
        .store
        .request_counts(workspace.workspace)
        .await
        .unwrap();
    assert_eq!(counts.pending, 0);
    for options in [Some(json!({})), None] {
        client
            .query_one(enqueue, &[&workspace_id, &definition, &options])
            .await
            .unwrap();
        client.query_one(job_enqueue, &[&options]).await.unwrap();
    }
    let counts = fixture
        .store
        .request_counts(workspace.workspace)
        .await
        .unwrap();
    assert_eq!(counts.pending, 2);
}
