//! What a store promises about a request's place in line: as many as a claim takes before it.

use crate::Fixture;
use crate::factory::{TestWorkspace, ids, new_request, ok};
use leasehold_core::limits::PLACE_MAX;
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::fresh_id;
use leasehold_store::request::{NewRequest, ReleaseKind};
use std::time::Duration;

impl Fixture {
    async fn place(&self, workspace: WorkspaceId, id: RequestId) -> Option<u32> {
        ok(self.store.request_place(workspace, id, PLACE_MAX).await)
    }

    async fn places(&self, t: &TestWorkspace, ids: &[RequestId]) -> Vec<Option<u32>> {
        let mut places = Vec::new();
        for id in ids {
            places.push(self.place(t.workspace, *id).await);
        }
        places
    }

    /// Enqueues one that becomes due in so many seconds.
    async fn enqueue_for_later(&self, t: &TestWorkspace, priority: i16, seconds: u64) -> RequestId {
        let later = NewRequest {
            priority,
            run_at: Some(self.now() + Duration::from_secs(seconds)),
            ..new_request(t)
        };
        self.enqueue_one(t, later).await
    }
}

fn counted(n: u32) -> Vec<Option<u32>> {
    (0..n).map(Some).collect()
}

/// The places of all that wait are 0, 1, 2 … in the order that claims take them.
pub async fn is_how_many_a_claim_takes_first(f: Fixture) {
    let t = f.site(20).await;
    let mut waiting = f.enqueue(&t, 2).await;
    for priority in [0, 5, -3, 5, 0, -1_000, 1_000] {
        f.advance(u64::from(priority == 5));
        waiting.push(f.enqueue_with_priority(&t, priority).await);
    }
    let mut placed = Vec::new();
    for id in &waiting {
        placed.push((f.place(t.workspace, *id).await, *id));
    }
    placed.sort();
    let places: Vec<_> = placed.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, counted(9));
    let order: Vec<RequestId> = placed.into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids(&f.claim(4).await), order[..4]);
    assert_eq!(f.places(&t, &order[4..]).await, counted(5));
    assert_eq!(ids(&f.drain(4).await), order[4..]);
}

/// It is counted up to where it was asked, and not further.
pub async fn is_counted_as_far_as_asked(f: Fixture) {
    let t = f.site(1).await;
    let waiting = f.enqueue(&t, 6).await;
    for (place, id) in (0..).zip(&waiting) {
        for up_to in [0, 1, 3, 5, 6, u32::MAX] {
            let counted = ok(f.store.request_place(t.workspace, *id, up_to).await);
            assert_eq!(counted, Some(up_to.min(place)));
        }
    }
}

/// What is not in line has no place: unknown, not due, claimed, given back as unknown, running, ended.
pub async fn of_what_is_not_in_line_is_none(f: Fixture) {
    let t = f.site(9).await;
    let kept = f.kept(&t).await;
    assert_eq!(f.place(t.workspace, kept.id).await, None);
    assert_eq!(f.claim_one().await.id, kept.id);
    let cancelled = f.enqueue(&t, 1).await[0];
    f.cancel(t.workspace, cancelled).await;
    let out = [
        fresh_id(),
        f.enqueue_for_later(&t, 0, 60).await,
        f.claimed(&t).await.id,
        f.running(&t).await.id,
        f.completed(&t).await.id,
        f.failed(&t).await.id,
        cancelled,
    ];
    assert_eq!(f.places(&t, &out).await, [None; 7]);
    let waits = f.enqueue(&t, 1).await;
    assert_eq!(f.places(&t, &waits).await, [Some(0)]);
}

/// One whose time has come is in line from then on, where its priority and age put it, whether or not anybody has looked.
pub async fn what_has_become_due_is_in_line(f: Fixture) {
    let t = f.site(0).await;
    let early = f.enqueue_for_later(&t, 0, 20).await;
    let first = f.enqueue_for_later(&t, 1, 10).await;
    let others = f.enqueue(&t, 2).await;
    let last = f.enqueue_for_later(&t, -1, 20).await;
    assert_eq!(f.places(&t, &others).await, counted(2));
    f.advance(10);
    let now = [first, others[0], others[1]];
    assert_eq!(f.places(&t, &now).await, counted(3));
    assert_eq!(f.place(t.workspace, early).await, None);
    f.advance(10);
    let now = [first, early, others[0], others[1], last];
    assert_eq!(f.places(&t, &now).await, counted(5));
    ok(f.store.request_settle().await);
    assert_eq!(f.places(&t, &now).await, counted(5));
    f.set_limit(t.workspace, 9).await;
    assert_eq!(ids(&f.drain(9).await), now);
}

/// One that is given back without having been started stands where it stood once its wait is over.
pub async fn what_was_given_back_stands_where_it_stood(f: Fixture) {
    let t = f.site(1).await;
    let waiting = f.enqueue(&t, 3).await;
    let claimed = f.claim_one().await;
    assert_eq!(f.places(&t, &waiting).await, [None, Some(0), Some(1)]);
    f.release(&claimed, ReleaseKind::NotStarted, 30).await;
    assert_eq!(f.places(&t, &waiting).await, [None, Some(0), Some(1)]);
    f.advance(30);
    assert_eq!(f.places(&t, &waiting).await, counted(3));
}

/// Each workspace has a line of its own, also where all are far apart in age and priority.
pub async fn workspaces_have_lines_of_their_own(f: Fixture) {
    let (one, two) = (f.site(0).await, f.site(0).await);
    f.enqueue_with_priority(&two, 1_000).await;
    let mine = f.enqueue(&one, 2).await;
    f.enqueue_for_later(&two, 1_000, 5).await;
    f.advance(5);
    assert_eq!(f.places(&one, &mine).await, counted(2));
    assert_eq!(f.places(&two, &mine).await, [None, None]);
}
