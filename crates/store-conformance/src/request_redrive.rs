//! Redriving failed requests.

use crate::Fixture;
use crate::factory::{TestWorkspace, ids, new_request, ok};
use leasehold_core::{ExecutionEnd, FailureReason, RequestId, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::request::{
    Fail, Idempotency, NewRequest, Redrive, RedriveMany, Redriven, Request,
};

async fn redrive(f: &Fixture, t: &TestWorkspace, failed: RequestId) -> Redriven {
    let redrive = Redrive {
        workspace: t.workspace,
        failed,
        id: fresh_id(),
        by: "boss".into(),
    };
    ok(f.store.request_redrive(&redrive).await)
}

async fn redrive_many(
    f: &Fixture,
    t: &TestWorkspace,
    reason: Option<FailureReason>,
    limit: u32,
) -> Vec<(RequestId, RequestId)> {
    let redrive = RedriveMany {
        workspace: t.workspace,
        reason,
        definition: None,
        limit,
        max_bytes: u64::MAX,
        by: "boss".into(),
    };
    ok(f.store.request_redrive_many(&redrive).await)
}

/// A redrive is a new PENDING request with the options of the failed one but not its timeline and key; the failed one is unchanged. It is pinned to
/// the same version, also if a newer one is current.
pub async fn creates_a_copy_of_the_failed_request(f: Fixture) {
    let t = f.workspace(1).await;
    let new = NewRequest {
        priority: 4,
        idempotency: Some(Idempotency {
            key: "k".into(),
            window: None,
        }),
        trace_context: Some("trace".into()),
        ..new_request(&t)
    };
    let failed = f.enqueue_one(&t, new).await;
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Failed).await;
    f.publish(t.workspace, t.definition).await;
    let before = f.request(t.workspace, failed).await;
    let timeline = f.timeline(t.workspace, failed).await;
    f.advance(5);
    let Redriven::Enqueued(id) = redrive(&f, &t, failed).await else {
        panic!("the request failed");
    };
    let expected = Request {
        id,
        status: RequestStatus::Pending.into(),
        run_at: f.now(),
        idempotency_key: None,
        execution: None,
        attempt_count: 0,
        dispatch_failures: 0,
        failure_reason: None,
        last_error: None,
        redrive_of: Some(failed),
        created_at: f.now(),
        claimed_at: None,
        dispatched_at: None,
        finished_at: None,
        ..before.clone()
    };
    assert_eq!(f.request(t.workspace, id).await, expected);
    f.assert_timeline(
        t.workspace,
        id,
        &[(None, RequestStatus::Pending, "boss", Some("redrive"))],
    )
    .await;
    assert_eq!(f.request(t.workspace, failed).await, before);
    assert_eq!(f.timeline(t.workspace, failed).await, timeline);
    let claimed = f.claim_one().await;
    assert_eq!((claimed.id, claimed.version), (id, t.version));
}

/// At most one redrive of a request is live; after it has ended, another can follow.
pub async fn at_most_one_redrive_is_live(f: Fixture) {
    let t = f.workspace(1).await;
    let failed = f.enqueue_failed(&t).await.id;
    for end in [ExecutionEnd::Failed, ExecutionEnd::Completed] {
        let Redriven::Enqueued(live) = redrive(&f, &t, failed).await else {
            panic!("no redrive is live");
        };
        assert_eq!(redrive(&f, &t, failed).await, Redriven::AlreadyLive(live));
        let claimed = f.claim_one().await;
        assert_eq!(redrive(&f, &t, failed).await, Redriven::AlreadyLive(live));
        f.dispatch(&claimed).await;
        assert_eq!(redrive(&f, &t, failed).await, Redriven::AlreadyLive(live));
        f.finish(claimed.execution, end).await;
    }
    let Redriven::Enqueued(live) = redrive(&f, &t, failed).await else {
        panic!("no redrive is live");
    };
    f.cancel(t.workspace, live).await;
    assert!(matches!(
        redrive(&f, &t, failed).await,
        Redriven::Enqueued(_)
    ));
}

/// A failed redrive can be redriven itself.
pub async fn failed_redrive_can_be_redriven(f: Fixture) {
    let t = f.workspace(1).await;
    let failed = f.enqueue_failed(&t).await.id;
    let Redriven::Enqueued(second) = redrive(&f, &t, failed).await else {
        panic!("the request failed");
    };
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Failed).await;
    let Redriven::Enqueued(third) = redrive(&f, &t, second).await else {
        panic!("the redrive failed");
    };
    assert_eq!(f.request(t.workspace, third).await.redrive_of, Some(second));
}

/// Only a FAILED request whose definition and workspace exist is redriven.
pub async fn needs_a_failed_request_and_an_existing_definition(f: Fixture) {
    let gone = f.workspace(1).await;
    let failed_and_gone = f.enqueue_failed(&gone).await.id;
    let t = f.workspace(9).await;
    let failed = f.enqueue_failed(&t).await.id;
    let completed = f.enqueue_completed(&t).await.id;
    let running = f.enqueue_running(&t).await.id;
    let claimed = f.enqueue_claimed(&t).await.id;
    let pending = f.enqueue(&t, 1).await[0];
    let before = f.dump().await;
    for id in [completed, running, claimed, pending] {
        assert_eq!(redrive(&f, &t, id).await, Redriven::NotFailed);
    }
    assert_eq!(redrive(&f, &t, fresh_id()).await, Redriven::NotFound);
    assert_eq!(f.dump().await, before);
    assert!(ok(f
        .store
        .definition_delete(t.workspace, t.definition, &leasehold_store::Actor::Local)
        .await));
    let before = f.dump().await;
    assert_eq!(redrive(&f, &t, failed).await, Redriven::DefinitionNotFound);
    assert_eq!(redrive_many(&f, &t, None, 10).await, []);
    assert_eq!(f.dump().await, before);
    assert!(ok(f
        .store
        .workspace_delete(gone.workspace, &leasehold_store::Actor::Local)
        .await));
    assert_eq!(
        redrive(&f, &gone, failed_and_gone).await,
        Redriven::DefinitionNotFound
    );
    assert_eq!(redrive_many(&f, &gone, None, 10).await, []);
}

/// Of concurrent redrives of one request, one succeeds.
pub async fn concurrent_redrives_create_one(f: Fixture) {
    let t = f.workspace(1).await;
    let failed = f.enqueue_failed(&t).await.id;
    let calls = (0..20).map(|_| {
        let store = f.store.clone();
        let redrive = Redrive {
            workspace: t.workspace,
            failed,
            id: fresh_id(),
            by: "boss".into(),
        };
        tokio::spawn(async move { ok(store.request_redrive(&redrive).await) })
    });
    let (mut enqueued, mut live) = (Vec::new(), Vec::new());
    for call in futures::future::join_all(calls).await {
        match call.expect("the call did not panic") {
            Redriven::Enqueued(id) => enqueued.push(id),
            Redriven::AlreadyLive(id) => live.push(id),
            other => panic!("unexpected outcome: {other:?}"),
        }
    }
    assert_eq!(enqueued.len(), 1);
    assert_eq!(live, vec![enqueued[0]; 19]);
    assert_eq!(f.counts(t.workspace).await.pending, 1);
}

/// A bulk redrive takes requests that were never redriven, oldest first, at most `limit`, optionally of one reason.
pub async fn bulk_redrive_takes_each_once(f: Fixture) {
    let t = f.workspace(1).await;
    let mut failed = Vec::new();
    for _ in 0..5 {
        failed.push(f.enqueue_failed(&t).await.id);
        f.advance(1);
    }
    let claimed = f.enqueue_claimed(&t).await;
    let fail = Fail {
        claim: (&claimed).into(),
        reason: FailureReason::TimedOut,
        error: None,
    };
    assert!(ok(f.store.request_fail(crate::OWNER, &fail).await));
    let completed = f.enqueue_completed(&t).await;
    assert!(matches!(
        redrive(&f, &t, failed[1]).await,
        Redriven::Enqueued(_)
    ));
    let reason = Some(FailureReason::ExecutionFailed);
    let first = redrive_many(&f, &t, reason, 2).await;
    let old: Vec<RequestId> = first.iter().map(|(old, _)| *old).collect();
    assert_eq!(old, [failed[0], failed[2]]);
    for (old, new) in &first {
        let request = f.request(t.workspace, *new).await;
        assert_eq!(request.redrive_of, Some(*old));
        assert_eq!(request.status, RequestStatus::Pending);
    }
    let second = redrive_many(&f, &t, reason, 100).await;
    let old: Vec<RequestId> = second.iter().map(|(old, _)| *old).collect();
    assert_eq!(old, failed[3..]);
    assert_eq!(redrive_many(&f, &t, reason, 100).await, []);
    let rest = redrive_many(&f, &t, None, 100).await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].0, claimed.id);
    assert_eq!(f.counts(t.workspace).await.pending, 6);
    let completed = f.request(t.workspace, completed.id).await;
    assert_eq!(completed.status, RequestStatus::Completed);
    assert_eq!(ids(&f.claim(10).await).len(), 1);
}

/// A bulk redrive of one definition takes only its requests.
pub async fn bulk_redrive_takes_only_the_definition(f: Fixture) {
    let t = f.workspace(5).await;
    let draft = f.create_draft(t.workspace).await;
    let version = f.publish(t.workspace, draft).await.id;
    let other = TestWorkspace {
        definition: draft,
        version,
        ..t
    };
    let mut failed = Vec::new();
    for of in [&t, &other, &t] {
        failed.push(f.enqueue_failed(of).await.id);
        f.advance(1);
    }
    let mut redrive = RedriveMany {
        workspace: t.workspace,
        reason: None,
        definition: Some(t.definition),
        limit: 10,
        max_bytes: u64::MAX,
        by: "boss".into(),
    };
    let redriven = ok(f.store.request_redrive_many(&redrive).await);
    let old: Vec<RequestId> = redriven.iter().map(|(old, _)| *old).collect();
    assert_eq!(old, [failed[0], failed[2]]);
    redrive.definition = Some(fresh_id());
    assert_eq!(ok(f.store.request_redrive_many(&redrive).await), []);
    redrive.definition = Some(draft);
    redrive.reason = Some(FailureReason::TimedOut);
    assert_eq!(ok(f.store.request_redrive_many(&redrive).await), []);
    redrive.reason = None;
    let redriven = ok(f.store.request_redrive_many(&redrive).await);
    assert_eq!(redriven[0].0, failed[1]);
}

/// A bulk redrive skips requests of deleted definitions and takes the rest.
pub async fn bulk_redrive_skips_deleted_definitions(f: Fixture) {
    let t = f.workspace(5).await;
    f.enqueue_failed(&t).await;
    let second = f.create_draft(t.workspace).await;
    let version = f.publish(t.workspace, second).await.id;
    let other = TestWorkspace {
        definition: second,
        version,
        ..t
    };
    let good = f.enqueue_failed(&other).await.id;
    assert!(ok(f
        .store
        .definition_delete(t.workspace, t.definition, &leasehold_store::Actor::Local)
        .await));
    let redriven = redrive_many(&f, &t, None, 10).await;
    let old: Vec<RequestId> = redriven.iter().map(|(old, _)| *old).collect();
    assert_eq!(old, [good]);
}

/// Concurrent bulk redrives take each request once, and none is left over.
pub async fn concurrent_bulk_redrives_take_each_request_once(f: Fixture) {
    let t = f.workspace(1).await;
    let mut failed = Vec::new();
    for _ in 0..20 {
        failed.push(f.enqueue_failed(&t).await.id);
    }
    let redrive = RedriveMany {
        workspace: t.workspace,
        reason: Some(FailureReason::ExecutionFailed),
        definition: Some(t.definition),
        limit: 3,
        max_bytes: u64::MAX,
        by: "boss".into(),
    };
    let calls = (0..8).map(|_| {
        let (store, redrive) = (f.store.clone(), redrive.clone());
        tokio::spawn(async move {
            let mut redriven = Vec::new();
            loop {
                let some = ok(store.request_redrive_many(&redrive).await);
                if some.is_empty() {
                    return redriven;
                }
                redriven.extend(some.into_iter().map(|(old, _)| old));
            }
        })
    });
    let calls = futures::future::join_all(calls).await.into_iter();
    let mut redriven: Vec<_> = calls
        .flat_map(|call| call.expect("the call did not panic"))
        .collect();
    redriven.sort();
    assert_eq!(redriven, failed);
    assert_eq!(f.counts(t.workspace).await.pending, 20);
}
