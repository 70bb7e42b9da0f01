//! Releasing claims: what counts, what stays, and when the request ends.

use crate::Fixture;
use crate::factory::{OWNER, USER, ids, ok};
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::request::{
    Cancelled, ClaimRef, Counts, ExecutionOrigin, Release, ReleaseKind, Released, Request,
};
use std::time::Duration;

const REFUSED: ReleaseKind = ReleaseKind::Refused { max_attempts: 3 };

fn release(claim: ClaimRef, kind: ReleaseKind, delay: u64, error: Option<&str>) -> Release {
    Release {
        claim,
        kind,
        delay: Duration::from_secs(delay),
        error: error.map(str::to_owned),
    }
}

/// Each kind returns the request to PENDING with its reason in the timeline; only a refusal counts as a dispatch failure, and only an unknown start
/// keeps execution and slot.
pub async fn each_kind_has_its_counters_and_effects(f: Fixture) {
    for (kind, word, failures, kept) in [
        (REFUSED, "refused", 1, false),
        (ReleaseKind::Unknown, "unknown", 0, true),
        (ReleaseKind::NotStarted, "not_started", 0, false),
    ] {
        let t = f.workspace(1).await;
        let claimed = f.enqueue_claimed(&t).await;
        let before = f.request(t.workspace, claimed.id).await;
        f.advance(1);
        let back = release((&claimed).into(), kind, 20, Some("no answer"));
        let answers = ok(f.store.request_release(OWNER, &[back]).await);
        assert_eq!(answers, [Released::Pending]);
        let expected = Request {
            status: RequestStatus::Pending.into(),
            run_at: f.now() + Duration::from_secs(20),
            execution: kept.then_some(claimed.execution),
            attempt_count: 1,
            dispatch_failures: failures,
            last_error: Some("no answer".into()),
            claimed_by: None,
            lease_expires_at: None,
            claimed_at: None,
            ..before
        };
        assert_eq!(f.request(t.workspace, claimed.id).await, expected);
        let execution = f.execution(t.workspace, claimed.execution).await;
        assert_eq!(execution.is_some(), kept, "{kind:?}");
        assert_eq!(f.slots(t.workspace).await.in_use, u32::from(kept));
        let last = (
            Some(RequestStatus::Claimed),
            RequestStatus::Pending,
            OWNER,
            Some(word),
        );
        f.assert_timeline(
            t.workspace,
            claimed.id,
            &[
                (None, RequestStatus::Pending, USER, None),
                (
                    Some(RequestStatus::Pending),
                    RequestStatus::Claimed,
                    OWNER,
                    None,
                ),
                last,
            ],
        )
        .await;
    }
}

/// Without a delay the request is due at once; a freed slot is available at once.
pub async fn frees_the_slot_for_the_next(f: Fixture) {
    let t = f.workspace(1).await;
    let requested = f.enqueue(&t, 2).await;
    let first = f.claim_one().await;
    f.release(&first, ReleaseKind::NotStarted, 5).await;
    assert_eq!(ids(&f.claim(5).await), requested[1..]);
}

/// A claim after a definite outcome has a new execution: the old id is never reused.
pub async fn next_claim_after_a_definite_outcome_has_a_new_execution(f: Fixture) {
    let t = f.workspace(1).await;
    let first = f.enqueue_claimed(&t).await;
    f.release(&first, REFUSED, 0).await;
    let second = f.claim_one().await;
    assert_eq!(
        (second.id, second.origin),
        (first.id, ExecutionOrigin::Created)
    );
    assert_ne!(second.execution, first.execution);
    assert_eq!((second.attempt_count, second.dispatch_failures), (1, 1));
}

/// The refusal that reaches `max_attempts` fails the request as exhausted and frees everything.
pub async fn last_refusal_exhausts_the_request(f: Fixture) {
    let t = f.workspace(1).await;
    let id = f.enqueue(&t, 1).await[0];
    for attempt in 1..=3 {
        f.advance(1);
        let claimed = f.claim_one().await;
        assert_eq!(claimed.id, id);
        let back = release((&claimed).into(), REFUSED, 0, Some("bad input"));
        let answers = ok(f.store.request_release(OWNER, &[back]).await);
        let request = f.request(t.workspace, id).await;
        assert_eq!(
            (request.attempt_count, request.dispatch_failures),
            (attempt, attempt)
        );
        let expected = if attempt < 3 {
            Released::Pending
        } else {
            Released::Exhausted
        };
        assert_eq!(answers, [expected]);
    }
    let request = f.request(t.workspace, id).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::DispatchExhausted.into())
    );
    assert_eq!(request.last_error.as_deref(), Some("bad input"));
    assert_eq!(
        (request.execution, request.finished_at),
        (None, Some(f.now()))
    );
    assert_eq!((request.claimed_by, request.lease_expires_at), (None, None));
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    assert_eq!(ids(&f.claim(5).await), []);
    let events = f.timeline(t.workspace, id).await;
    let last = crate::timeline::step(events.last().expect("the timeline is not empty"));
    let exhausted = Some("dispatch_exhausted");
    assert_eq!(
        last,
        (
            Some(RequestStatus::Claimed),
            RequestStatus::Failed,
            OWNER,
            exhausted
        )
    );
    let counts = Counts {
        failed: 1,
        ..Counts::default()
    };
    assert_eq!(f.counts(t.workspace).await, counts);
}

/// Outages, unknown starts and lost leases never fail a request, however often they happen.
pub async fn only_refusals_exhaust(f: Fixture) {
    let t = f.workspace(1).await;
    let id = f.enqueue(&t, 1).await[0];
    for _ in 0..10 {
        let claimed = f.claim_one().await;
        f.release(&claimed, ReleaseKind::NotStarted, 0).await;
        let claimed = f.claim_one().await;
        f.release(&claimed, ReleaseKind::Unknown, 0).await;
        f.claim_one().await;
        f.advance(15);
        assert_eq!(ok(f.store.request_recover("sweeper", 10).await).len(), 1);
        let claimed = f.claim_one().await;
        f.release(&claimed, ReleaseKind::NotStarted, 0).await;
    }
    let request = f.request(t.workspace, id).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!((request.attempt_count, request.dispatch_failures), (40, 0));
    let claimed = f.claim_one().await;
    assert_eq!(f.release(&claimed, REFUSED, 0).await, Released::Pending);
}

/// A release without an error keeps the last error.
pub async fn release_without_an_error_keeps_the_last_one(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    let back = release((&claimed).into(), REFUSED, 0, Some("bad input"));
    ok(f.store.request_release(OWNER, &[back]).await);
    let claimed = f.claim_one().await;
    f.release(&claimed, ReleaseKind::NotStarted, 0).await;
    let request = f.request(t.workspace, claimed.id).await;
    assert_eq!(request.last_error.as_deref(), Some("bad input"));
}

/// With a cancel request, a definite outcome ends the request as cancelled, even if it would be exhausted; an unknown outcome does not.
pub async fn definite_outcome_with_a_cancel_request_is_cancelled(f: Fixture) {
    for (kind, expected) in [
        (
            ReleaseKind::Refused { max_attempts: 9 },
            Released::Cancelled,
        ),
        (
            ReleaseKind::Refused { max_attempts: 1 },
            Released::Cancelled,
        ),
        (ReleaseKind::NotStarted, Released::Cancelled),
        (ReleaseKind::Unknown, Released::Pending),
    ] {
        let t = f.workspace(1).await;
        let claimed = f.enqueue_claimed(&t).await;
        let outcome = f.cancel(t.workspace, claimed.id);
        assert_eq!(outcome.await, Cancelled::Requested(claimed.execution));
        assert_eq!(f.release(&claimed, kind, 60).await, expected, "{kind:?}");
        let request = f.request(t.workspace, claimed.id).await;
        assert_eq!(request.attempt_count, 1);
        if expected == Released::Pending {
            assert_eq!(request.status, RequestStatus::Pending);
            assert_eq!(request.execution, Some(claimed.execution));
            continue;
        }
        assert_eq!(request.status, RequestStatus::Failed);
        assert_eq!(
            request.failure_reason,
            Some(FailureReason::Cancelled.into())
        );
        assert_eq!(
            (request.execution, request.finished_at),
            (None, Some(f.now()))
        );
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        let events = f.timeline(t.workspace, claimed.id).await;
        let last = crate::timeline::step(events.last().expect("the timeline is not empty"));
        let cancelled = Some("cancelled");
        assert_eq!(
            last,
            (
                Some(RequestStatus::Claimed),
                RequestStatus::Failed,
                OWNER,
                cancelled
            )
        );
    }
}

/// Each release has its own outcome, in the order of the call; claims that are not held are unchanged.
pub async fn outcomes_are_in_order(f: Fixture) {
    let t = f.workspace(9).await;
    f.enqueue(&t, 5).await;
    let mine = f.claim(4).await.requests;
    let theirs = f.claim_as("another", 1).await.requests;
    f.dispatch(&mine[0]).await;
    let unknown_claim = ClaimRef {
        request: fresh_id(),
        token: 1,
    };
    let old = ClaimRef {
        token: mine[3].token - 1,
        ..(&mine[3]).into()
    };
    let kind = ReleaseKind::NotStarted;
    let once = ReleaseKind::Refused { max_attempts: 1 };
    let requested = [
        release((&theirs[0]).into(), kind, 0, None),
        release((&mine[1]).into(), kind, 0, None),
        release(unknown_claim, kind, 0, None),
        release((&mine[2]).into(), once, 0, None),
        release(old, kind, 0, None),
        release((&mine[0]).into(), kind, 0, None),
    ];
    let answers = ok(f.store.request_release(OWNER, &requested).await);
    let expected = [
        Released::LeaseLost,
        Released::Pending,
        Released::LeaseLost,
        Released::Exhausted,
        Released::LeaseLost,
        Released::LeaseLost,
    ];
    assert_eq!(answers, expected);
    let counts = Counts {
        pending: 1,
        claimed: 2,
        dispatched: 1,
        failed: 1,
        completed: 0,
    };
    assert_eq!(f.counts(t.workspace).await, counts);
    assert_eq!(ok(f.store.request_release(OWNER, &[]).await), []);
}

/// The same claim twice in one call is released once.
pub async fn twice_in_one_call_counts_once(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    let back = release((&claimed).into(), REFUSED, 0, None);
    let answers = ok(f.store.request_release(OWNER, &[back.clone(), back]).await);
    assert_eq!((answers.len(), answers[0]), (2, Released::Pending));
    let request = f.request(t.workspace, claimed.id).await;
    assert_eq!((request.attempt_count, request.dispatch_failures), (1, 1));
    assert_eq!(f.timeline(t.workspace, claimed.id).await.len(), 3);
}
