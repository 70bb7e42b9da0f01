//! The holders of idempotency keys, looked up without enqueueing: those that an enqueue would return.

use crate::Fixture;
use crate::factory::{TestWorkspace, new_request, ok};
use leasehold_core::{ExecutionEnd, JsonText, RequestId};
use leasehold_store::prune::Prune;
use leasehold_store::request::{Enqueue, Idempotency, KeyHolder, NewRequest};
use serde_json::json;
use std::time::Duration;

fn keyed(workspace: &TestWorkspace, key: &str, window: Option<u64>) -> NewRequest {
    NewRequest {
        params: json!({"a": 1, "b": [1, 2]}).into(),
        idempotency: Some(Idempotency {
            key: key.to_owned(),
            window: window.map(Duration::from_secs),
        }),
        ..new_request(workspace)
    }
}

fn same(request: RequestId) -> Option<KeyHolder> {
    Some(KeyHolder {
        request,
        is_same: true,
    })
}

fn other(request: RequestId) -> Option<KeyHolder> {
    Some(KeyHolder {
        request,
        is_same: false,
    })
}

async fn holders(
    f: &Fixture,
    workspace: &TestWorkspace,
    requests: Vec<NewRequest>,
) -> Vec<Option<KeyHolder>> {
    let call = Enqueue {
        workspace: workspace.workspace,
        requests,
        by: "someone".to_owned(),
    };
    ok(f.store.request_key_holders(&call).await)
}

/// Results are in the order of the call; params are compared as JSON. Nothing changes.
pub async fn each_key_has_its_holder(f: Fixture) {
    let t = f.workspace(1).await;
    let first = f.enqueue_one(&t, keyed(&t, "k", None)).await;
    let second = f.enqueue_one(&t, keyed(&t, "l", Some(60))).await;
    let definition = f.create_draft(t.workspace).await;
    f.publish(t.workspace, definition).await;
    let before = f.dump().await;
    let reordered = JsonText::trusted(r#"{ "b": [1, 2], "a": 1 }"#.to_owned());
    let requests = vec![
        keyed(&t, "l", None),
        new_request(&t),
        NewRequest {
            params: reordered,
            ..keyed(&t, "k", None)
        },
        keyed(&t, "free", None),
        NewRequest {
            params: json!({"a": 2}).into(),
            ..keyed(&t, "k", None)
        },
        NewRequest {
            definition,
            ..keyed(&t, "k", None)
        },
    ];
    let expected = [
        same(second),
        None,
        same(first),
        None,
        other(first),
        other(first),
    ];
    assert_eq!(holders(&f, &t, requests).await, expected);
    assert_eq!(holders(&f, &t, vec![new_request(&t)]).await, [None]);
    assert_eq!(f.dump().await, before);
}

/// A key of another workspace and a key whose window has passed have no holder.
pub async fn foreign_and_expired_keys_have_no_holder(f: Fixture) {
    let (own, foreign) = (f.workspace(1).await, f.workspace(1).await);
    f.enqueue_one(&foreign, keyed(&foreign, "k", None)).await;
    let id = f.enqueue_one(&own, keyed(&own, "w", Some(60))).await;
    let lookup = || async {
        let requests = vec![keyed(&own, "k", None), keyed(&own, "w", None)];
        holders(&f, &own, requests).await
    };
    f.advance(59);
    assert_eq!(lookup().await, [None, same(id)]);
    let before = f.dump().await;
    f.advance(1);
    assert_eq!(lookup().await, [None, None]);
    assert_eq!(f.dump().await, before);
}

/// A pruned request holds its key until the window ends.
pub async fn pruned_request_holds_its_key(f: Fixture) {
    let t = f.workspace(1).await;
    let id = f.enqueue_one(&t, keyed(&t, "k", Some(100))).await;
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    f.advance(10);
    let everything = Prune {
        completed_before: Some(f.now()),
        failed_before: None,
        limit: 10,
    };
    assert_eq!(ok(f.store.prune(&everything).await).requests, 1);
    let lookup = || async {
        let changed = NewRequest {
            params: json!({"a": 2}).into(),
            ..keyed(&t, "k", None)
        };
        holders(&f, &t, vec![keyed(&t, "k", None), changed]).await
    };
    assert_eq!(lookup().await, [same(id), other(id)]);
    f.advance(90);
    assert_eq!(lookup().await, [None, None]);
}

/// A call has more keys than one read of a store looks up.
pub async fn many_keys_have_their_holders(f: Fixture) {
    let t = f.workspace(1).await;
    let mut expected = Vec::new();
    for at in 0..20 {
        let id = f.enqueue_one(&t, keyed(&t, &at.to_string(), None)).await;
        expected.extend([same(id), None]);
    }
    let requests = (0..20).flat_map(|at| [keyed(&t, &at.to_string(), None), new_request(&t)]);
    assert_eq!(holders(&f, &t, requests.collect()).await, expected);
}
