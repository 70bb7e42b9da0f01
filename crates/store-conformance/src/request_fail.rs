//! Failing a claimed request.

use crate::Fixture;
use crate::factory::{OWNER, USER, ids, ok};
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_store::request::{ClaimRef, Fail, Request};

fn give_up(claim: ClaimRef) -> Fail {
    Fail {
        claim,
        reason: FailureReason::VersionNotFound,
        error: Some("the engine does not know it".into()),
    }
}

/// The request is FAILED with its reason, its execution is deleted and its slot is free.
pub async fn ends_the_request_and_frees_the_slot(f: Fixture) {
    let t = f.workspace(1).await;
    let enqueued = f.enqueue(&t, 2).await;
    let claimed = f.claim_one().await;
    let before = f.request(t.workspace, claimed.id).await;
    f.advance(1);
    assert!(ok(f
        .store
        .request_fail(OWNER, &give_up((&claimed).into()))
        .await));
    let after = f.request(t.workspace, claimed.id).await;
    let expected = Request {
        status: RequestStatus::Failed.into(),
        execution: None,
        attempt_count: 1,
        failure_reason: Some(FailureReason::VersionNotFound.into()),
        last_error: Some("the engine does not know it".into()),
        claimed_by: None,
        lease_expires_at: None,
        // Whether a failed request keeps `claimed_at` is the store's choice.
        claimed_at: after.claimed_at,
        finished_at: Some(f.now()),
        ..before
    };
    assert_eq!(after, expected);
    assert_eq!(f.execution(t.workspace, claimed.execution).await, None);
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
            (
                Some(RequestStatus::Claimed),
                RequestStatus::Failed,
                OWNER,
                Some("version_not_found"),
            ),
        ],
    )
    .await;
    assert_eq!(ids(&f.claim(5).await), enqueued[1..]);
}

/// Every failure reason is accepted.
pub async fn accepts_every_reason(f: Fixture) {
    let t = f.workspace(1).await;
    for reason in FailureReason::ALL {
        let claimed = f.enqueue_claimed(&t).await;
        let fail = Fail {
            claim: (&claimed).into(),
            reason,
            error: None,
        };
        assert!(ok(f.store.request_fail(OWNER, &fail).await));
        let request = f.request(t.workspace, claimed.id).await;
        assert_eq!(
            (request.failure_reason, request.last_error),
            (Some(reason.into()), None)
        );
    }
}

/// A fail without the claim changes nothing: another owner, an old token, a repeated fail.
pub async fn fail_without_the_claim_changes_nothing(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    let old = ClaimRef {
        token: claimed.token - 1,
        ..(&claimed).into()
    };
    let before = f.dump().await;
    assert!(!ok(f
        .store
        .request_fail("another", &give_up((&claimed).into()))
        .await));
    assert!(!ok(f.store.request_fail(OWNER, &give_up(old)).await));
    assert_eq!(f.dump().await, before);
    assert!(ok(f
        .store
        .request_fail(OWNER, &give_up((&claimed).into()))
        .await));
    let before = f.dump().await;
    assert!(!ok(f
        .store
        .request_fail(OWNER, &give_up((&claimed).into()))
        .await));
    assert_eq!(f.dump().await, before);
}
