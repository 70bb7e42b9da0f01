//! What a store promises about marking requests dispatched.

use crate::Fixture;
use crate::factory::{OWNER, USER, claim_refs, ok};
use leasehold_core::{ExecutionEnd, RequestStatus};
use leasehold_store::fresh_id;
use leasehold_store::request::{CancelWish, ClaimRef, Dispatched, ReleaseKind, Request};

/// CLAIMED becomes DISPATCHED: the lease is gone, the slot stays, claimed_at stays.
pub async fn ends_the_lease_and_keeps_the_slot(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.claimed(&t).await;
    let before = f.request(t.workspace, claimed.id).await;
    f.advance(2);
    f.dispatch(&claimed).await;
    let expected = Request {
        status: RequestStatus::Dispatched,
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

/// The same mark repeated is the same answer and changes nothing: the first answer may have been lost.
pub async fn repeated_is_the_same(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.running(&t).await;
    f.advance(5);
    let before = f.dump().await;
    f.dispatch(&claimed).await;
    let claims: [ClaimRef; 2] = [(&claimed).into(), (&claimed).into()];
    let twice = ok(f.store.request_dispatched(OWNER, &claims).await);
    assert_eq!(twice, [Dispatched::Dispatched, Dispatched::Dispatched]);
    assert_eq!(f.dump().await, before);
}

/// An execution that ended before the mark answers already finished.
pub async fn after_the_end_is_already_finished(f: Fixture) {
    let t = f.site(3).await;
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

/// Each claim gets its own answer, in the order asked.
pub async fn answers_each_in_order(f: Fixture) {
    let t = f.site(9).await;
    f.enqueue(&t, 4).await;
    let claimed = f.claim(3).await;
    let theirs = f.claim_as("another", 1).await;
    f.release(&claimed.requests[1], ReleaseKind::Unknown, 0)
        .await;
    f.finish(claimed.requests[0].execution, ExecutionEnd::Completed)
        .await;
    let stranger = ClaimRef {
        request: fresh_id(),
        token: 1,
    };
    let asked = [
        (&claimed.requests[2]).into(),
        (&claimed.requests[1]).into(),
        stranger,
        (&claimed.requests[0]).into(),
        (&theirs.requests[0]).into(),
    ];
    let answers = ok(f.store.request_dispatched(OWNER, &asked).await);
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

/// A dispatcher that lost its claim to another cannot mark it: the token is fenced, also for the same owner.
pub async fn with_an_old_token_is_lost(f: Fixture) {
    let t = f.site(1).await;
    let old = f.claimed(&t).await;
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

/// What has ended answers so to whoever held it once, also when its last claim was another's or nobody's.
pub async fn with_an_old_token_what_has_ended_is_already_finished(f: Fixture) {
    let t = f.site(2).await;
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

/// An expired claim that nobody recovered can still be marked.
pub async fn an_expired_claim_can_still_be_marked(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.claimed(&t).await;
    f.advance(3600);
    f.dispatch(&claimed).await;
    assert_eq!(ok(f.store.request_recover("sweeper", 10).await), []);
}

/// A wish that came while it was being started is told with the mark, each time, and the engine is still to be told.
pub async fn tells_of_a_wish_to_cancel(f: Fixture) {
    let t = f.site(2).await;
    f.enqueue(&t, 2).await;
    let claimed = f.claim(2).await;
    let wished = &claimed.requests[1];
    f.cancel(t.workspace, wished.id).await;
    assert_eq!(ok(f.store.request_cancel_list(10).await), []);
    let claims = claim_refs(&claimed);
    for _ in 0..2 {
        let answers = f.store.request_dispatched(OWNER, &claims);
        assert_eq!(
            ok(answers.await),
            [Dispatched::Dispatched, Dispatched::Cancelling]
        );
    }
    let wish = CancelWish {
        request: wished.id,
        workspace: t.workspace,
        execution: wished.execution,
        force: false,
    };
    assert_eq!(ok(f.store.request_cancel_list(10).await), [wish]);
}
