//! Boundary values: accepted values are read back unchanged, others are rejected at once.
#![allow(clippy::unwrap_used)]

use leasehold_core::JsonText;
use leasehold_store::request::{Enqueue, NewRequest};
use leasehold_store::{Clock, Error, ErrorKind, SchemaStore};
use leasehold_store_conformance::factory::new_request;
use leasehold_store_conformance::{Fixture, TestWorkspace, USER, clock};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};
use std::sync::Arc;

async fn fixture() -> Fixture {
    let clock = clock();
    let options = SqliteOptions {
        clock: Clock::Manual(clock.clone()),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open_in_memory(&options).unwrap();
    store.schema_migrate().await.unwrap();
    Fixture::new(Arc::new(store), clock)
}

fn with(workspace: &TestWorkspace, params: Value) -> NewRequest {
    NewRequest {
        params: params.into(),
        ..new_request(workspace)
    }
}

async fn rejection(f: &Fixture, workspace: &TestWorkspace, params: Value) -> Error {
    let enqueue = Enqueue {
        workspace: workspace.workspace,
        requests: vec![with(workspace, params)],
        by: USER.into(),
    };
    f.store.request_enqueue(&enqueue).await.unwrap_err()
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

#[tokio::test]
async fn too_deeply_nested_document_is_rejected_and_blocks_no_other_request() {
    let f = fixture().await;
    let t = f.workspace(10).await;
    let error = rejection(&f, &t, nested(128)).await;
    assert!(matches!(error.kind, ErrorKind::Value(_)), "{error}");
    let deepest = f.enqueue_one(&t, with(&t, nested(127))).await;
    let other = f.enqueue(&t, 1).await[0];
    let claimed = f.claim(10).await.requests;
    assert_eq!(claimed.len(), 2);
    assert_eq!((claimed[0].id, claimed[1].id), (deepest, other));
    assert_eq!(claimed[0].params, JsonText::from(&nested(127)));
}

#[tokio::test]
async fn document_with_nul_is_rejected() {
    let f = fixture().await;
    let t = f.workspace(10).await;
    for params in [json!("a\0b"), json!({"a\0b": 1}), json!([{"a": ["\0"]}])] {
        let error = rejection(&f, &t, params).await;
        assert!(matches!(error.kind, ErrorKind::Value(_)), "{error}");
    }
    // The escaped text is not a NUL character.
    let escaped = json!("a\\u0000b");
    let id = f.enqueue_one(&t, with(&t, escaped.clone())).await;
    assert_eq!(
        f.request(t.workspace, id).await.params,
        JsonText::from(escaped)
    );
}

#[tokio::test]
async fn numbers_round_trip_exactly() {
    let f = fixture().await;
    let t = f.workspace(10).await;
    let params = json!([
        0.1 + 0.2,
        5e-324,
        f64::MAX,
        -0.0,
        1.0,
        u64::MAX,
        i64::MIN,
        31.245_270_191_439_438
    ]);
    let id = f.enqueue_one(&t, with(&t, params.clone())).await;
    assert_eq!(
        f.request(t.workspace, id).await.params,
        JsonText::from(params)
    );
}
