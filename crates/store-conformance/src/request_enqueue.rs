//! Enqueueing without idempotency keys: version pinned, all or none, in order.

use crate::Fixture;
use crate::factory::TestWorkspace;
use crate::factory::{USER, ids, new_request, ok, params};
use leasehold_core::{Plan, RequestId, RequestStatus};
use leasehold_store::request::{
    Counts, Enqueue, Enqueued, EnqueuedRequest, Idempotency, NewRequest, Request,
};
use leasehold_store::{ErrorKind, fresh_id};
use serde_json::json;
use std::time::Duration;

/// A request starts PENDING and is read back with all its options.
pub async fn starts_pending_with_all_options(f: Fixture) {
    let t = f.workspace(1).await;
    let run_at = f.now() + Duration::from_micros(1_500_001);
    let new = NewRequest {
        id: fresh_id(),
        definition: t.definition,
        params: json!({"text": "ä\"\\\n", "n": 9007199254740993_i64, "list": [null, true, 1.5]})
            .into(),
        priority: -7,
        run_at: Some(run_at),
        idempotency: Some(Idempotency {
            key: "key 1".into(),
            window: Some(Duration::from_secs(60)),
        }),
        trace_context: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        checked_against: Some(t.version),
    };
    let enqueued = f.try_enqueue(t.workspace, vec![new.clone()]).await;
    let inserted = EnqueuedRequest {
        id: new.id,
        inserted: true,
    };
    assert_eq!(enqueued, Enqueued::All(vec![inserted]));
    let bytes = new.bytes();
    let expected = Request {
        id: new.id,
        workspace: t.workspace,
        definition: t.definition,
        version: t.version,
        status: RequestStatus::Pending.into(),
        priority: -7,
        params: new.params,
        run_at,
        idempotency_key: Some("key 1".into()),
        execution: None,
        attempt_count: 0,
        dispatch_failures: 0,
        failure_reason: None,
        last_error: None,
        redrive_of: None,
        cancel_requested_at: None,
        claimed_by: None,
        lease_expires_at: None,
        trace_context: new.trace_context,
        bytes,
        created_at: f.now(),
        claimed_at: None,
        dispatched_at: None,
        finished_at: None,
    };
    assert_eq!(f.request(t.workspace, new.id).await, expected);
    f.assert_timeline(
        t.workspace,
        new.id,
        &[(None, RequestStatus::Pending, USER, None)],
    )
    .await;
}

/// Without a `run_at` a request is due at once.
pub async fn is_due_at_once_without_run_at(f: Fixture) {
    let t = f.workspace(1).await;
    let id = f.enqueue(&t, 1).await[0];
    assert_eq!(f.request(t.workspace, id).await.run_at, f.now());
    assert_eq!(ids(&f.claim(1).await), [id]);
}

/// Every priority in range is stored; one out of range is rejected and nothing is inserted.
pub async fn priority_out_of_range_is_rejected(f: Fixture) {
    let t = f.workspace(1).await;
    for priority in [-1000, 1000] {
        let id = f.enqueue_with_priority(&t, priority).await;
        assert_eq!(f.request(t.workspace, id).await.priority, priority);
    }
    let before = f.dump().await;
    for priority in [-1001, 1001] {
        let bad = NewRequest {
            priority,
            ..new_request(&t)
        };
        let enqueue = Enqueue {
            workspace: t.workspace,
            requests: vec![new_request(&t), bad],
            by: USER.into(),
        };
        let error = f
            .store
            .request_enqueue(&enqueue)
            .await
            .expect_err("the priority is out of range");
        assert_eq!(error.kind, ErrorKind::Constraint("request_priority".into()));
    }
    assert_eq!(f.dump().await, before);
}

/// The version is pinned at enqueue; later versions do not affect pending requests.
pub async fn pins_the_current_version(f: Fixture) {
    let t = f.workspace(5).await;
    let old = f.enqueue(&t, 1).await[0];
    let second = f.publish(t.workspace, t.definition).await.id;
    let new = f.enqueue(&t, 1).await[0];
    let claimed = f.claim(2).await;
    let versions: Vec<_> = claimed.requests.iter().map(|r| (r.id, r.version)).collect();
    assert_eq!(versions, [(old, t.version), (new, second)]);
    assert_eq!(f.request(t.workspace, old).await.version, t.version);
}

/// Enqueueing into an unknown workspace fails.
pub async fn unknown_workspace_is_not_found(f: Fixture) {
    let t = f.workspace(1).await;
    let enqueued = f.try_enqueue(fresh_id(), vec![new_request(&t)]).await;
    assert_eq!(enqueued, Enqueued::WorkspaceNotFound);
    assert_eq!(f.counts(t.workspace).await, Counts::default());
}

/// One invalid request fails the whole call; the outcome names the problem.
pub async fn is_all_or_none(f: Fixture) {
    let t = f.workspace(1).await;
    let other = f.workspace(1).await;
    let draft = f.create_draft(t.workspace).await;
    let deleted = f.create_draft(t.workspace).await;
    f.publish(t.workspace, deleted).await;
    assert!(ok(f
        .store
        .definition_delete(t.workspace, deleted, &leasehold_store::Actor::Local)
        .await));
    let unknown = fresh_id();
    let before = f.dump().await;
    for (definition, expected) in [
        (unknown, Enqueued::DefinitionNotFound(unknown)),
        (deleted, Enqueued::DefinitionNotFound(deleted)),
        (
            other.definition,
            Enqueued::DefinitionForbidden(other.definition),
        ),
        (draft, Enqueued::NotPublished(draft)),
    ] {
        let bad = NewRequest::new(fresh_id(), definition, params());
        let requests = vec![new_request(&t), bad, new_request(&t)];
        assert_eq!(f.try_enqueue(t.workspace, requests).await, expected);
    }
    assert_eq!(f.dump().await, before);
    assert_eq!(ids(&f.claim(10).await), []);
}

/// Params checked against a version are pinned to that version or not enqueued.
pub async fn rejects_params_checked_against_an_older_version(f: Fixture) {
    let t = f.workspace(1).await;
    let mut new = new_request(&t);
    new.checked_against = Some(t.version);
    let newer = f.publish(t.workspace, t.definition).await;
    let requests = vec![new_request(&t), new.clone()];
    let refused = f.try_enqueue(t.workspace, requests).await;
    assert_eq!(refused, Enqueued::VersionMoved(t.definition));
    assert_eq!(f.counts(t.workspace).await, Counts::default());
    new.checked_against = Some(newer.id);
    f.enqueue_all(&t, vec![new.clone()]).await;
    let request = ok(f.store.request_get(t.workspace, new.id).await);
    assert_eq!(request.map(|r| r.version), Some(newer.id));
}

/// Outcomes are in the order of the call, whatever the order of ids.
pub async fn outcomes_are_in_order(f: Fixture) {
    let t = f.workspace(1).await;
    let mut requests: Vec<NewRequest> = (0..20).map(|_| new_request(&t)).collect();
    requests.reverse();
    requests.swap(3, 11);
    let request_ids: Vec<RequestId> = requests.iter().map(|r| r.id).collect();
    assert_eq!(f.enqueue_all(&t, requests).await, request_ids);
}

/// A call can have requests of several definitions with different options.
pub async fn can_mix_definitions_and_options(f: Fixture) {
    let t = f.workspace(5).await;
    let second = f.create_draft(t.workspace).await;
    let version = f.publish(t.workspace, second).await.id;
    let other = TestWorkspace {
        definition: second,
        version,
        ..t
    };
    let later = NewRequest {
        run_at: Some(f.now() + Duration::from_secs(5)),
        ..new_request(&t)
    };
    let urgent = NewRequest {
        priority: 9,
        ..new_request(&other)
    };
    let plain = new_request(&t);
    let request_ids = f.enqueue_all(&t, vec![later, urgent, plain]).await;
    assert_eq!(
        f.request(t.workspace, request_ids[1]).await.version,
        version
    );
    assert_eq!(ids(&f.claim(10).await), [request_ids[1], request_ids[2]]);
    f.advance(5);
    assert_eq!(ids(&f.claim(10).await), [request_ids[0]]);
}

/// An empty call does nothing.
pub async fn empty_call_does_nothing(f: Fixture) {
    let t = f.workspace(1).await;
    let enqueued = f.try_enqueue(t.workspace, Vec::new()).await;
    assert_eq!(enqueued, Enqueued::All(Vec::new()));
    assert_eq!(f.counts(t.workspace).await, Counts::default());
}

/// A duplicate id is an error, and nothing of the call is inserted.
pub async fn rejects_a_duplicate_id(f: Fixture) {
    let t = f.workspace(1).await;
    let taken = f.enqueue(&t, 1).await[0];
    let before = f.dump().await;
    let again = NewRequest::new(taken, t.definition, params());
    let enqueue = Enqueue {
        workspace: t.workspace,
        requests: vec![new_request(&t), again],
        by: USER.into(),
    };
    let error = f
        .store
        .request_enqueue(&enqueue)
        .await
        .expect_err("the id is taken");
    assert!(!error.is_retryable(), "{error:?}");
    assert_eq!(f.dump().await, before);
}

/// One call takes ten thousand requests, in order.
pub async fn one_call_takes_ten_thousand(f: Fixture) {
    let t = f.workspace_on_plan(Plan::Free, Some(10)).await;
    let request_ids = f.enqueue(&t, 10_000).await;
    assert_eq!(f.counts(t.workspace).await.pending, 10_000);
    assert_eq!(ids(&f.claim(100).await), request_ids[..10]);
}

/// Concurrent enqueues lose no request.
pub async fn concurrent_enqueues_lose_nothing(f: Fixture) {
    let t = f.workspace(1).await;
    let calls = (0..20).map(|n| f.enqueue(&t, 1 + n % 5));
    let request_ids: Vec<RequestId> = futures::future::join_all(calls).await.concat();
    assert_eq!(
        f.counts(t.workspace).await.pending,
        request_ids.len() as u64
    );
    for id in request_ids {
        assert_eq!(
            f.request(t.workspace, id).await.status,
            RequestStatus::Pending
        );
    }
}
