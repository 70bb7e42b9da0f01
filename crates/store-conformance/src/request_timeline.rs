//! Timelines: every transition in order, with time, author and reason.

use crate::Fixture;
use crate::factory::{OWNER, USER, ok};
use leasehold_core::{ExecutionEnd, RequestStatus};
use leasehold_store::change::Event;
use leasehold_store::fresh_id;
use leasehold_store::request::ReleaseKind;

/// The timeline of a long life has every transition in order, each with its time.
pub async fn has_every_transition_in_order(f: Fixture) {
    let t = f.workspace(1).await;
    let start = f.now();
    let id = f.enqueue(&t, 1).await[0];
    f.advance(1);
    let claimed = f.claim_as("one", 1).await.requests.remove(0);
    f.advance(15);
    assert_eq!(ok(f.store.request_recover("sweeper", 1).await).len(), 1);
    let claimed_again = f.claim_one().await;
    f.advance(1);
    f.release(&claimed_again, ReleaseKind::Refused { max_attempts: 5 }, 0)
        .await;
    let third = f.claim_one().await;
    f.advance(1);
    f.dispatch(&third).await;
    f.advance(1);
    f.finish(third.execution, ExecutionEnd::TimedOut).await;
    assert_ne!(claimed.token, third.token);
    let at = |seconds| start + std::time::Duration::from_secs(seconds);
    let event = |from, to, seconds, by: &str, reason: Option<&str>| Event {
        request: id,
        workspace: t.workspace,
        from,
        to,
        at: at(seconds),
        by: by.into(),
        reason: reason.map(str::to_owned),
    };
    use RequestStatus::{Claimed, Dispatched, Failed, Pending};
    let expected = [
        event(None, Pending.into(), 0, USER, None),
        event(Some(Pending.into()), Claimed.into(), 1, "one", None),
        event(
            Some(Claimed.into()),
            Pending.into(),
            16,
            "sweeper",
            Some("lease_expired"),
        ),
        event(Some(Pending.into()), Claimed.into(), 16, OWNER, None),
        event(
            Some(Claimed.into()),
            Pending.into(),
            17,
            OWNER,
            Some("refused"),
        ),
        event(Some(Pending.into()), Claimed.into(), 17, OWNER, None),
        event(Some(Claimed.into()), Dispatched.into(), 18, OWNER, None),
        event(
            Some(Dispatched.into()),
            Failed.into(),
            19,
            "engine",
            Some("timed_out"),
        ),
    ];
    assert_eq!(f.timeline(t.workspace, id).await, expected);
}

/// The times of the request equal those of its timeline.
pub async fn agrees_with_the_requests_own_times(f: Fixture) {
    let t = f.workspace(1).await;
    let id = f.enqueue(&t, 1).await[0];
    f.advance(2);
    let claimed = f.claim_one().await;
    f.advance(3);
    f.dispatch(&claimed).await;
    f.advance(4);
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    let request = f.request(t.workspace, id).await;
    let times: Vec<_> = f
        .timeline(t.workspace, id)
        .await
        .iter()
        .map(|e| Some(e.at))
        .collect();
    let own = [
        Some(request.created_at),
        request.claimed_at,
        request.dispatched_at,
        request.finished_at,
    ];
    assert_eq!(times, own);
}

/// An unknown request has no timeline.
pub async fn unknown_request_has_no_timeline(f: Fixture) {
    let t = f.workspace(1).await;
    assert_eq!(f.timeline(t.workspace, fresh_id()).await, []);
}
