//! Tests that an operation which reads megabytes of a caller's JSON does not keep the thread that serves other calls, on SQLite in memory.
#![allow(clippy::unwrap_used)]

use crate::enqueue::TestStore;
use futures::poll;
use leasehold_core::job::{JobEnd, JobFinish, JobRef};
use leasehold_core::{JobId, JsonText, KeyId};
use leasehold_ops::claim::{self, LeaseOwner};
use leasehold_ops::{ParamsSchemas, PublishError, publish};
use leasehold_store::definition::NewVersion;
use leasehold_store::{Actor, fresh_id};
use serde_json::json;
use std::cell::Cell;
use std::pin::pin;

#[tokio::test]
async fn other_calls_go_on_while_large_results_are_checked() {
    const RESULTS: i64 = 32;
    let env = TestStore::new().await;
    let key: KeyId = fresh_id();
    let owner = LeaseOwner::new("w", key).unwrap();
    let text = format!("\"{}\"", "x".repeat(100 * 1024));
    let finish = |number: i64| JobFinish {
        claim: JobRef {
            job: JobId(number),
            token: 1,
        },
        end: JobEnd::Completed {
            result: Some(JsonText::trusted(match number {
                RESULTS => "not JSON".to_owned(),
                _ => text.clone(),
            })),
        },
    };
    let finishes: Vec<JobFinish> = (1..=RESULTS).map(finish).collect();
    let (turns, is_done) = (Cell::new(0), Cell::new(false));
    let other_work = async {
        while !is_done.get() {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    let finish = async {
        let refused = claim::finish(&*env.store, &owner, &finishes).await;
        is_done.set(true);
        refused.unwrap_err().to_string()
    };
    let (refused, ()) = tokio::join!(finish, other_work);
    assert!(refused.starts_with("finishes[31].result"), "{refused}");
    assert!(turns.get() >= RESULTS - 1, "{} turns", turns.get());
}

#[tokio::test]
async fn large_versions_are_checked_off_the_serving_thread() {
    let env = TestStore::new().await;
    let input = vec!["x".repeat(200_000); 8];
    let task = json!({"id": "a", "type": "task", "queue": "q", "input": input});
    let large_graph = NewVersion {
        body: serde_json::from_value(json!({"graph": {"nodes": [task]}})).unwrap(),
        ..env.version(fresh_id())
    };
    let large_schema = NewVersion {
        params_schema: Some(json!({"enum": input})),
        ..env.version(fresh_id())
    };
    let schemas = ParamsSchemas::default();
    for version in [large_graph, large_schema] {
        let mut publishing = pin!(publish(&*env.store, &schemas, version, &Actor::Local));
        assert!(poll!(&mut publishing).is_pending());
        let refused = publishing.await.unwrap_err();
        assert!(
            matches!(
                refused,
                PublishError::Body(_) | PublishError::SchemaDocument(_)
            ),
            "{refused}"
        );
    }
}
