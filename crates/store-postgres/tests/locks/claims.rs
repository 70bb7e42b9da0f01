//! Locked rows among those that a claim of requests looks at first.

use super::{id, lock, open_fixture, promptly, unlock};
use crate::support;
use crate::support::raw::connect;
use leasehold_core::{ExecutionEnd, RequestId};
use leasehold_store::Clock;
use leasehold_store::request::{CRASHED, ClaimedRequest, Crash, ReleaseKind, Released};
use leasehold_store_conformance::factory::ids;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::eventually;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Client;

const ADMISSION_NUMBER: &str = include_str!("../sql/admission_number.sql");
const DEEP_PARAMS: &str = include_str!("../sql/request_deep_params.sql");
const EXECUTION_END: &str = include_str!("../sql/execution_end.sql");

async fn admission_number(client: &Client) -> i64 {
    let row = client.query_one(ADMISSION_NUMBER, &[]).await.unwrap();
    row.get("last_value")
}

async fn claimed(f: &Fixture, batch: u32) -> Vec<RequestId> {
    ids(&promptly(f.claim(batch)).await)
}

/// Enqueues two requests whose starts are unknown.
async fn two_unknown(f: &Fixture, t: &TestWorkspace) -> [ClaimedRequest; 2] {
    f.enqueue(t, 2).await;
    let claimed: [ClaimedRequest; 2] = f.claim(2).await.requests.try_into().unwrap();
    for one in &claimed {
        let released = f.release(one, ReleaseKind::Unknown, 0).await;
        assert_eq!(released, Released::Pending);
    }
    claimed
}

/// A workspace with one free slot looks at one request at a time.
#[tokio::test]
async fn locked_first_request_of_a_line_does_not_stop_the_others_of_its_workspace() {
    for batch in [1, 10] {
        let (f, operator) = open_fixture().await;
        let t = f.workspace(1).await;
        let other = f.workspace(5).await;
        let line = f.enqueue(&t, 4).await;
        lock(&operator, "workflow_execution_queue", &id(line[0])).await;
        for next in &line[1..3] {
            let found = f.claim(batch).await;
            assert_eq!(ids(&found), [*next], "batch of {batch}");
            f.dispatch(&found.requests[0]).await;
            f.finish(found.requests[0].execution, ExecutionEnd::Completed)
                .await;
        }
        let others = f.enqueue(&other, 2).await;
        let mut found = claimed(&f, 1).await;
        found.extend(claimed(&f, 10).await);
        let mut expected = others;
        expected.push(line[3]);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        unlock(&operator).await;
        // It kept its place at the head of the line.
        let later = f.enqueue(&t, 1).await;
        let running = f.request(t.workspace, line[3]).await.execution.unwrap();
        f.finish(running, ExecutionEnd::Completed).await;
        let first = f.claim(1).await;
        assert_eq!(ids(&first), [line[0]]);
        f.dispatch(&first.requests[0]).await;
        f.finish(first.requests[0].execution, ExecutionEnd::Completed)
            .await;
        assert_eq!(claimed(&f, 1).await, later);
    }
}

/// After an outage a claim may take one request only.
#[tokio::test]
async fn locked_unknown_start_does_not_use_up_a_claim_of_one_request() {
    for table in ["workflow_execution", "workflow_execution_queue"] {
        let (f, operator) = open_fixture().await;
        let t = f.workspace(10).await;
        let [first, second] = two_unknown(&f, &t).await;
        let fresh = f.enqueue(&t, 1).await;
        let row = match table {
            "workflow_execution" => id(first.execution),
            _ => id(first.id),
        };
        lock(&operator, table, &row).await;
        assert_eq!(claimed(&f, 1).await, [second.id], "{table}");
        assert_eq!(claimed(&f, 1).await, fresh, "{table}");
        assert_eq!(claimed(&f, 1).await, [], "{table}");
        unlock(&operator).await;
        assert_eq!(claimed(&f, 1).await, [first.id], "{table}");
    }
}

#[tokio::test]
async fn claim_that_finds_only_locked_requests_does_not_repeat_itself() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    f.enqueue(&t, 2).await;
    let condition = format!("workspace_id = '{}'", t.workspace);
    lock(&operator, "workflow_execution_queue", &condition).await;
    let before = admission_number(&operator).await;
    assert_eq!(claimed(&f, 10).await, []);
    assert!(admission_number(&operator).await - before <= 1);
    unlock(&operator).await;
    assert_eq!(claimed(&f, 10).await.len(), 2);
}

/// Ended by hand, as a repair does.
#[tokio::test]
async fn locked_lost_execution_does_not_delay_claims_of_others() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    let [one, other] = two_unknown(&f, &t).await;
    for lost in [&one, &other] {
        let ended = operator.execute(EXECUTION_END, &[&lost.execution.0]).await;
        assert_eq!(ended.unwrap(), 1);
    }
    lock(&operator, "workflow_execution", &id(one.execution)).await;
    assert_eq!(claimed(&f, 10).await, [other.id]);
    let fresh = f.enqueue(&t, 1).await;
    assert_eq!(claimed(&f, 10).await, fresh);
    unlock(&operator).await;
    assert_eq!(claimed(&f, 10).await, [one.id]);
}

#[tokio::test]
async fn crash_is_noted_on_other_requests_while_one_is_locked() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    f.enqueue(&t, 2).await;
    let running = f.claim(2).await.requests;
    lock(&operator, "workflow_execution_queue", &id(running[0].id)).await;
    let crash = Crash {
        process: "crashed".to_owned(),
        executions: running.iter().map(|one| one.execution).collect(),
    };
    let store = Arc::clone(&f.store);
    let noting = tokio::spawn(async move { store.request_note_crash(&crash).await });
    let (workspace, other) = (t.workspace, running[1].id);
    let noted = eventually(Duration::from_secs(60), || async {
        let error = f.request(workspace, other).await.last_error;
        error.as_deref() == Some(CRASHED)
    });
    assert!(noted.await);
    unlock(&operator).await;
    let noted = noting.await.unwrap().unwrap();
    let mut requests: Vec<RequestId> = noted.iter().map(|one| one.id).collect();
    requests.sort_unstable();
    let mut expected: Vec<RequestId> = running.iter().map(|one| one.id).collect();
    expected.sort_unstable();
    assert_eq!(requests, expected);
    assert!(noted.iter().all(|one| one.crashes.total == 1), "{noted:?}");
}

/// The claim must not wait for a second connection, and the other requests of its batch are claimed whatever happens.
#[tokio::test]
async fn claim_of_unreadable_params_needs_one_connection() {
    let (clock, database) = (clock(), support::database().await);
    let options = PostgresOptions {
        max_connections: 1,
        connect_timeout: Duration::from_secs(1),
        clock: Clock::Manual(clock.clone()),
        ..PostgresOptions::new(database.url())
    };
    let store = Arc::new(PostgresStore::new(&options).unwrap());
    let operator = connect(&database).await;
    let f = Fixture::new(store, clock).guarded(database);
    let t = f.workspace(10).await;
    let requests = f.enqueue(&t, 3).await;
    let spoiled = operator.execute(DEEP_PARAMS, &[&requests[1].0]).await;
    assert_eq!(spoiled.unwrap(), 1);
    let claimed = promptly(f.claim(10)).await;
    assert_eq!(ids(&claimed), requests);
    assert!(claimed.requests[1].unreadable.is_some());
}
