//! Requests with an unknown start: claimed again with the same execution and without a second slot.

use crate::Fixture;
use crate::factory::{LEASE, OWNER, ids, ok};
use leasehold_core::{ExecutionStatus, FailureReason, RequestStatus};
use leasehold_store::request::{
    Cancelled, Claim, ClaimOutcome, Claimed, ExecutionOrigin, ReleaseKind, Released,
};
use std::time::Duration;

/// An unknown start is claimed with the same execution id, RUNNING, started now, with the next token.
pub async fn unknown_start_is_claimed_with_the_same_execution(f: Fixture) {
    let t = f.workspace(1).await;
    let first = f.enqueue_unknown(&t).await;
    f.advance(3);
    let again = f.claim_one().await;
    assert_eq!(again.id, first.id);
    assert_eq!(again.execution, first.execution);
    assert_eq!(again.origin, ExecutionOrigin::Kept);
    assert_eq!((again.token, again.attempt_count), (first.token + 1, 1));
    let execution = f.execution(t.workspace, again.execution).await;
    let execution = execution.expect("the execution was kept");
    assert_eq!(execution.status, ExecutionStatus::Running);
    assert_eq!((execution.started_at, execution.error), (f.now(), None));
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
}

/// An unknown start is claimed in a full workspace, takes no second slot and comes first.
pub async fn unknown_start_comes_first_although_its_workspace_is_full(f: Fixture) {
    let t = f.workspace(2).await;
    let kept = f.enqueue_unknown(&t).await;
    f.advance(1);
    let urgent = f.enqueue_with_priority(&t, 1000).await;
    let more = f.enqueue_with_priority(&t, 999).await;
    let other = f.workspace(1).await;
    let others = f.enqueue(&other, 1).await;
    let claimed = f.claim(10).await;
    assert_eq!(claimed.requests[0].id, kept.id);
    let mut rest = ids(&claimed)[1..].to_vec();
    rest.sort_unstable();
    assert_eq!(rest, [urgent, others[0]]);
    assert_eq!(f.slots(t.workspace).await.in_use, 2);
    f.release(&claimed.requests[0], ReleaseKind::Unknown, 0)
        .await;
    assert_eq!(
        ids(&f.claim(10).await),
        [kept.id],
        "{more} must stay pending"
    );
}

/// An unknown start is claimed in a paused workspace and under a limit lowered to zero.
pub async fn unknown_start_is_claimed_in_a_pause_and_above_the_limit(f: Fixture) {
    let t = f.workspace(2).await;
    let kept = [f.enqueue_claimed(&t).await, f.enqueue_claimed(&t).await];
    for claimed in &kept {
        f.release(claimed, ReleaseKind::Unknown, 0).await;
    }
    f.enqueue(&t, 1).await;
    f.set_paused(t.workspace, true).await;
    assert_eq!(ids(&f.claim(1).await), [kept[0].id]);
    f.set_limit(t.workspace, 0).await;
    assert_eq!(ids(&f.claim(10).await), [kept[1].id]);
}

/// Unknown starts are claimed oldest first and count toward the batch.
pub async fn unknown_starts_are_claimed_oldest_first(f: Fixture) {
    let t = f.workspace(9).await;
    let enqueued = f.enqueue(&t, 4).await;
    let mut claimed = f.claim(3).await.requests;
    claimed.reverse();
    for request in &claimed {
        f.release(request, ReleaseKind::Unknown, 0).await;
    }
    let first = f.claim(2).await;
    assert_eq!((ids(&first), first.more), (enqueued[..2].to_vec(), true));
    assert_eq!(ids(&f.claim(2).await), enqueued[2..]);
}

/// A claim takes at most `kept_max` unknown starts, and fills its batch with other requests.
pub async fn claim_takes_no_more_unknown_starts_than_it_asks_for(f: Fixture) {
    let t = f.workspace(9).await;
    f.enqueue(&t, 3).await;
    let kept = f.claim(3).await.requests;
    for request in &kept {
        f.release(request, ReleaseKind::Unknown, 0).await;
    }
    f.advance(1);
    let fresh = f.enqueue(&t, 3).await;
    let claim = async |kept_max| {
        let claim = Claim {
            owner: OWNER.into(),
            batch: 2,
            kept_max: Some(kept_max),
            lease: LEASE,
            lock: None,
        };
        match ok(f.store.request_claim(&claim).await) {
            ClaimOutcome::Claimed(claimed) => ids(&claimed),
            ClaimOutcome::LockLost => unreachable!("no lock is needed"),
        }
    };
    assert_eq!(claim(1).await, [kept[0].id, fresh[0]]);
    assert_eq!(claim(0).await, fresh[1..]);
    assert_eq!(claim(0).await, []);
    assert_eq!(claim(5).await, [kept[1].id, kept[2].id]);
}

/// An unknown start in backoff is not claimed early and keeps its slot.
pub async fn unknown_start_in_backoff_keeps_its_slot(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.release(&claimed, ReleaseKind::Unknown, 10).await;
    f.enqueue(&t, 1).await;
    let nothing = Claimed {
        next_due_in: Some(Duration::from_secs(10)),
        ..Claimed::default()
    };
    assert_eq!(f.claim(10).await, nothing);
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
    f.advance(10);
    assert_eq!(ids(&f.claim(10).await), [claimed.id]);
}

/// Claiming an unknown start is no admission: the workspace keeps its position in the round-robin.
pub async fn unknown_start_takes_no_turn(f: Fixture) {
    let (one, two) = (f.workspace(5).await, f.workspace(5).await);
    let a = f.enqueue(&one, 4).await;
    let b = f.enqueue(&two, 4).await;
    let first = f.claim(2).await;
    assert_eq!(ids(&first), [a[0], b[0]]);
    f.release(&first.requests[0], ReleaseKind::Unknown, 0).await;
    assert_eq!(ids(&f.claim(1).await), [a[0]]);
    assert_eq!(ids(&f.claim(2).await), [a[1], b[1]]);
}

/// An unknown start of a deleted workspace or definition is still claimed, so that its start is resolved and its slot freed.
pub async fn unknown_start_is_claimed_although_its_definition_is_deleted(f: Fixture) {
    let t = f.workspace(1).await;
    let kept = f.enqueue_unknown(&t).await;
    assert!(ok(f
        .store
        .definition_delete(t.workspace, t.definition, &leasehold_store::Actor::Local)
        .await));
    let again = f.claim_one().await;
    assert_eq!((again.id, again.origin), (kept.id, ExecutionOrigin::Kept));
    f.release(&again, ReleaseKind::Unknown, 0).await;
    assert!(ok(f
        .store
        .workspace_delete(t.workspace, &leasehold_store::Actor::Local)
        .await));
    let again = f.claim_one().await;
    assert_eq!((again.id, again.origin), (kept.id, ExecutionOrigin::Kept));
}

/// A claim reports a cancel request, and only a definite outcome ends the request.
pub async fn claim_reports_a_cancel_request(f: Fixture) {
    let t = f.workspace(1).await;
    let kept = f.enqueue_unknown(&t).await;
    let outcome = f.cancel(t.workspace, kept.id);
    assert_eq!(outcome.await, Cancelled::Requested(kept.execution));
    let again = f.claim_one().await;
    assert!(again.cancel_requested);
    let released = f.release(&again, ReleaseKind::Unknown, 0).await;
    assert_eq!(released, Released::Pending);
    let again = f.claim_one().await;
    assert!(again.cancel_requested);
    let released = f.release(&again, ReleaseKind::NotStarted, 0).await;
    assert_eq!(released, Released::Cancelled);
    let request = f.request(t.workspace, kept.id).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::Cancelled.into())
    );
    let events = f.timeline(t.workspace, kept.id).await;
    let last = events.last().expect("the timeline is not empty");
    assert_eq!(last.from, Some(RequestStatus::Claimed.into()));
    assert_eq!(last.by, OWNER);
}
