//! Idempotency keys that open transactions hold: enqueues wait for them without connections.

use super::{id, lock, open_fixture, promptly, unlock};
use leasehold_core::RequestId;
use leasehold_store::fresh_id;
use leasehold_store::request::{Enqueue, Enqueued, Idempotency, NewRequest};
use leasehold_store_conformance::factory::{OWNER, new_request};
use leasehold_store_conformance::{Fixture, TestWorkspace};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

const ENQUEUE_KEY: &str = include_str!("../sql/enqueue_key.sql");

/// More than the connections of the pool.
const CALLS: usize = 30;

fn with_key(workspace: &TestWorkspace, window: Option<Duration>) -> NewRequest {
    let key = "k".to_owned();
    NewRequest {
        idempotency: Some(Idempotency { key, window }),
        ..new_request(workspace)
    }
}

/// Enqueues with the same key in many calls at once. Each returns the holder of the key, or none if it gave up waiting.
fn enqueue_many(
    f: &Arc<Fixture>,
    t: &TestWorkspace,
    new: &NewRequest,
) -> Vec<JoinHandle<Option<RequestId>>> {
    let calls = (0..CALLS).map(|_| {
        let store = Arc::clone(&f.store);
        let enqueue = Enqueue {
            workspace: t.workspace,
            requests: vec![NewRequest {
                id: fresh_id(),
                ..new.clone()
            }],
            by: OWNER.to_owned(),
        };
        tokio::spawn(async move {
            match store.request_enqueue(&enqueue).await {
                Ok(Enqueued::All(answers)) => Some(answers[0].id),
                Err(error) if error.is_retryable() => None,
                other => panic!("{other:?}"),
            }
        })
    });
    calls.collect()
}

/// Enqueues for another tenant meanwhile.
async fn check_other(f: &Fixture) {
    let other = f.workspace(1).await;
    for _ in 0..20 {
        promptly(f.enqueue(&other, 1)).await;
    }
}

/// Checks that all calls that did not give up returned one holder of the key.
async fn assert_holder(
    calls: Vec<JoinHandle<Option<RequestId>>>,
    is_holder: impl Fn(RequestId) -> bool,
) {
    let mut holders = HashSet::new();
    for call in calls {
        holders.extend(call.await.unwrap());
    }
    assert!(holders.len() <= 1, "{holders:?}");
    assert!(holders.into_iter().all(is_holder));
}

#[tokio::test]
async fn enqueues_with_a_key_of_an_open_transaction_leave_connections_for_others() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(1).await;
    let new = with_key(&t, None);
    operator.batch_execute("BEGIN").await.unwrap();
    let params: Value = serde_json::from_str(new.params.as_str()).unwrap();
    let (workspace, definition) = (t.workspace.0, t.definition.0);
    let held = operator
        .query_one(ENQUEUE_KEY, &[&workspace, &definition, &params, &"k"])
        .await;
    let held = RequestId(held.unwrap().get(0));
    let calls = enqueue_many(&f, &t, &new);
    check_other(&f).await;
    operator.batch_execute("COMMIT").await.unwrap();
    assert_holder(calls, |holder| holder == held).await;
}

#[tokio::test]
async fn enqueues_with_an_expired_key_of_a_locked_request_leave_connections_for_others() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(1).await;
    let new = with_key(&t, Some(Duration::from_secs(10)));
    let held = f.enqueue_all(&t, vec![new.clone()]).await[0];
    f.advance(60);
    lock(&operator, "workflow_execution_queue", &id(held)).await;
    let calls = enqueue_many(&f, &t, &new);
    check_other(&f).await;
    unlock(&operator).await;
    assert_holder(calls, |holder| holder != held).await;
}
