//! The position of a request in line: the number of requests that are claimed before it.

use crate::Fixture;
use crate::factory::{TestWorkspace, ids, new_request, ok};
use leasehold_core::limits::POSITION_MAX;
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::fresh_id;
use leasehold_store::request::{NewRequest, ReleaseKind};
use std::time::Duration;

impl Fixture {
    async fn position(&self, workspace: WorkspaceId, id: RequestId) -> Option<u32> {
        ok(self
            .store
            .request_position(workspace, id, POSITION_MAX)
            .await)
    }

    async fn positions(&self, t: &TestWorkspace, ids: &[RequestId]) -> Vec<Option<u32>> {
        let mut positions = Vec::new();
        for id in ids {
            positions.push(self.position(t.workspace, *id).await);
        }
        positions
    }

    /// Enqueues a request that becomes due in `seconds`.
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

/// The positions of all pending requests are 0, 1, 2 … in claim order.
pub async fn equals_the_number_claimed_first(f: Fixture) {
    let t = f.workspace(20).await;
    let mut waiting = f.enqueue(&t, 2).await;
    for priority in [0, 5, -3, 5, 0, -1_000, 1_000] {
        f.advance(u64::from(priority == 5));
        waiting.push(f.enqueue_with_priority(&t, priority).await);
    }
    let mut positioned = Vec::new();
    for id in &waiting {
        positioned.push((f.position(t.workspace, *id).await, *id));
    }
    positioned.sort();
    let positions: Vec<_> = positioned.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, counted(9));
    let order: Vec<RequestId> = positioned.into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids(&f.claim(4).await), order[..4]);
    assert_eq!(f.positions(&t, &order[4..]).await, counted(5));
    assert_eq!(ids(&f.drain(4).await), order[4..]);
}

/// The position is counted up to the given bound.
pub async fn is_counted_up_to_the_bound(f: Fixture) {
    let t = f.workspace(1).await;
    let waiting = f.enqueue(&t, 6).await;
    for (position, id) in (0..).zip(&waiting) {
        for up_to in [0, 1, 3, 5, 6, u32::MAX] {
            let counted = ok(f.store.request_position(t.workspace, *id, up_to).await);
            assert_eq!(counted, Some(up_to.min(position)));
        }
    }
}

/// A request outside the line has no position: unknown, not due, claimed, unknown start, running, ended.
pub async fn requests_outside_the_line_have_no_position(f: Fixture) {
    let t = f.workspace(9).await;
    let kept = f.enqueue_unknown(&t).await;
    assert_eq!(f.position(t.workspace, kept.id).await, None);
    assert_eq!(f.claim_one().await.id, kept.id);
    let cancelled = f.enqueue(&t, 1).await[0];
    f.cancel(t.workspace, cancelled).await;
    let out = [
        fresh_id(),
        f.enqueue_for_later(&t, 0, 60).await,
        f.enqueue_claimed(&t).await.id,
        f.enqueue_running(&t).await.id,
        f.enqueue_completed(&t).await.id,
        f.enqueue_failed(&t).await.id,
        cancelled,
    ];
    assert_eq!(f.positions(&t, &out).await, [None; 7]);
    let waits = f.enqueue(&t, 1).await;
    assert_eq!(f.positions(&t, &waits).await, [Some(0)]);
}

/// A request is in line from its due time on, by priority and age, even before any claim.
pub async fn due_request_is_in_line(f: Fixture) {
    let t = f.workspace(0).await;
    let early = f.enqueue_for_later(&t, 0, 20).await;
    let first = f.enqueue_for_later(&t, 1, 10).await;
    let others = f.enqueue(&t, 2).await;
    let last = f.enqueue_for_later(&t, -1, 20).await;
    assert_eq!(f.positions(&t, &others).await, counted(2));
    f.advance(10);
    let now = [first, others[0], others[1]];
    assert_eq!(f.positions(&t, &now).await, counted(3));
    assert_eq!(f.position(t.workspace, early).await, None);
    f.advance(10);
    let now = [first, early, others[0], others[1], last];
    assert_eq!(f.positions(&t, &now).await, counted(5));
    ok(f.store.request_promote_due().await);
    assert_eq!(f.positions(&t, &now).await, counted(5));
    f.set_limit(t.workspace, 9).await;
    assert_eq!(ids(&f.drain(9).await), now);
}

/// A released request has its old position once its delay is over.
pub async fn released_request_keeps_its_position(f: Fixture) {
    let t = f.workspace(1).await;
    let waiting = f.enqueue(&t, 3).await;
    let claimed = f.claim_one().await;
    assert_eq!(f.positions(&t, &waiting).await, [None, Some(0), Some(1)]);
    f.release(&claimed, ReleaseKind::NotStarted, 30).await;
    assert_eq!(f.positions(&t, &waiting).await, [None, Some(0), Some(1)]);
    f.advance(30);
    assert_eq!(f.positions(&t, &waiting).await, counted(3));
}

/// Each workspace has its own line, whatever the ages and priorities in others.
pub async fn each_workspace_has_its_own_line(f: Fixture) {
    let (one, two) = (f.workspace(0).await, f.workspace(0).await);
    f.enqueue_with_priority(&two, 1_000).await;
    let mine = f.enqueue(&one, 2).await;
    f.enqueue_for_later(&two, 1_000, 5).await;
    f.advance(5);
    assert_eq!(f.positions(&one, &mine).await, counted(2));
    assert_eq!(f.positions(&two, &mine).await, [None, None]);
}
