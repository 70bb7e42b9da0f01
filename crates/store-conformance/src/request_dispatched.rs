//! Marking requests as dispatched.

use crate::Fixture;
use crate::factory::{OWNER, USER, claim_refs, ok};
use leasehold_core::{ExecutionEnd, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::request::{CancelRequest, ClaimRef, Dispatched, ReleaseKind, Request};

/// CLAIMED becomes DISPATCHED: the lease ends, slot and `claimed_at` stay.
pub async fn ends_the_lease_and_keeps_the_slot(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    let before = f.request(t.workspace, claimed.id).await;
    f.advance(2);
    f.dispatch(&claimed).await;
    let expected = Request {
        status: RequestStatus::Dispatched.into(),
        claimed_by: None,
        lease_expires_at: None,
        dispatched_at: Some(f.now()),
        ..before
    };
    assert_eq!(f.request(t.workspace, claimed.id).await, expected);
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
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
                RequestStatus::Dispatched,
                OWNER,
                None,
            ),
        ],
    )
    .await;
}

/// A repeated mark has the same outcome and changes nothing, since the first response may have been lost.
pub async fn repeated_mark_has_the_same_outcome(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_running(&t).await;
    f.advance(5);
    let before = f.dump().await;
    f.dispatch(&claimed).await;
    let claims: [ClaimRef; 2] = [(&claimed).into(), (&claimed).into()];
    let twice = ok(f.store.request_dispatched(OWNER, &claims).await);
    assert_eq!(twice, [Dispatched::Dispatched, Dispatched::Dispatched]);
    assert_eq!(f.dump().await, before);
}

/// A mark after the execution's end returns already finished.
pub async fn mark_after_the_end_is_already_finished(f: Fixture) {
    let t = f.workspace(3).await;
    f.enqueue(&t, 3).await;
    let claimed = f.claim(3).await;
    f.finish(claimed.requests[0].execution, ExecutionEnd::Completed)
        .await;
    f.finish(claimed.requests[1].execution, ExecutionEnd::TimedOut)
        .await;
    f.dispatch(&claimed.requests[2]).await;
    f.finish(claimed.requests[2].execution, ExecutionEnd::Failed)
        .await;
    let before = f.dump().await;
    let answers = ok(f
        .store
        .request_dispatched(OWNER, &claim_refs(&claimed))
        .await);
    assert_eq!(answers, [Dispatched::AlreadyFinished; 3]);
    assert_eq!(f.dump().await, before);
}

/// Each claim has its own outcome, in the order of the call.
pub async fn outcomes_are_in_order(f: Fixture) {
    let t = f.workspace(9).await;
    f.enqueue(&t, 4).await;
    let claimed = f.claim(3).await;
    let theirs = f.claim_as("another", 1).await;
    f.release(&claimed.requests[1], ReleaseKind::Unknown, 0)
        .await;
    f.finish(claimed.requests[0].execution, ExecutionEnd::Completed)
        .await;
    let unknown_claim = ClaimRef {
        request: fresh_id(),
        token: 1,
    };
    let requested = [
        (&claimed.requests[2]).into(),
        (&claimed.requests[1]).into(),
        unknown_claim,
        (&claimed.requests[0]).into(),
        (&theirs.requests[0]).into(),
    ];
    let answers = ok(f.store.request_dispatched(OWNER, &requested).await);
    let expected = [
        Dispatched::Dispatched,
        Dispatched::LeaseLost,
        Dispatched::LeaseLost,
        Dispatched::AlreadyFinished,
        Dispatched::LeaseLost,
    ];
    assert_eq!(answers, expected);
    assert_eq!(ok(f.store.request_dispatched(OWNER, &[]).await), []);
}

/// A dispatcher that lost its claim cannot mark it: the token is fenced, also for the same owner.
pub async fn mark_with_an_old_token_is_lost(f: Fixture) {
    let t = f.workspace(1).await;
    let old = f.enqueue_claimed(&t).await;
    f.advance(15);
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await).len(), 1);
    let pending = ok(f.store.request_dispatched(OWNER, &[(&old).into()]).await);
    assert_eq!(pending, [Dispatched::LeaseLost]);
    let new = f.claim_one().await;
    let before = f.dump().await;
    let stale = ok(f.store.request_dispatched(OWNER, &[(&old).into()]).await);
    assert_eq!(stale, [Dispatched::LeaseLost]);
    assert_eq!(f.dump().await, before);
    f.dispatch(&new).await;
    let before = f.dump().await;
    let stale = ok(f.store.request_dispatched(OWNER, &[(&old).into()]).await);
    assert_eq!(stale, [Dispatched::LeaseLost]);
    assert_eq!(f.dump().await, before);
}

/// For an ended request every earlier holder gets already finished, also after other claims.
pub async fn mark_with_an_old_token_of_an_ended_request_is_already_finished(f: Fixture) {
    let t = f.workspace(2).await;
    f.enqueue(&t, 2).await;
    let old = f.claim(2).await.requests;
    f.advance(15);
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await).len(), 2);
    f.finish(old[0].execution, ExecutionEnd::Completed).await;
    let new = f.claim_as("another", 1).await.requests;
    assert_eq!((new[0].id, new[0].token), (old[1].id, old[1].token + 1));
    let claims: Vec<ClaimRef> = old.iter().map(ClaimRef::from).collect();
    let before = f.dump().await;
    let answers = ok(f.store.request_dispatched(OWNER, &claims).await);
    assert_eq!(
        answers,
        [Dispatched::AlreadyFinished, Dispatched::LeaseLost]
    );
    assert_eq!(f.dump().await, before);
    f.finish(new[0].execution, ExecutionEnd::Failed).await;
    let before = f.dump().await;
    let answers = ok(f.store.request_dispatched(OWNER, &claims).await);
    assert_eq!(answers, [Dispatched::AlreadyFinished; 2]);
    assert_eq!(f.dump().await, before);
}

/// An expired claim that was not recovered can still be marked.
pub async fn expired_claim_can_still_be_marked(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.advance(3600);
    f.dispatch(&claimed).await;
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await), []);
}

/// A cancel request that arrived during the start is reported with every mark and stays listed for the engine.
pub async fn mark_reports_a_cancel_request(f: Fixture) {
    let t = f.workspace(2).await;
    f.enqueue(&t, 2).await;
    let claimed = f.claim(2).await;
    let cancelled = &claimed.requests[1];
    f.cancel(t.workspace, cancelled.id).await;
    assert_eq!(ok(f.store.request_cancel_list(10).await), []);
    let claims = claim_refs(&claimed);
    for _ in 0..2 {
        let answers = f.store.request_dispatched(OWNER, &claims);
        assert_eq!(
            ok(answers.await),
            [Dispatched::Dispatched, Dispatched::Cancelling]
        );
    }
    let cancel_request = CancelRequest {
        request: cancelled.id,
        workspace: t.workspace,
        execution: cancelled.execution,
        force: false,
    };
    assert_eq!(ok(f.store.request_cancel_list(10).await), [cancel_request]);
}
