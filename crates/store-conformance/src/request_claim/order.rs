//! The order of admission: workspaces in turn; within one, priority, then age, then id.

use crate::Fixture;
use crate::factory::{TestWorkspace, ids, new_request, ok, params};
use leasehold_core::{ExecutionEnd, FailureReason, RequestId};
use leasehold_store::fresh_id;
use leasehold_store::request::{Claimed, NewRequest, Rejected};

/// Within a workspace the highest priority goes first, then the oldest.
pub async fn workspace_line_is_ordered_by_priority_then_age(f: Fixture) {
    let t = f.workspace(10).await;
    let low = f.enqueue_with_priority(&t, -5).await;
    let old = f.enqueue_with_priority(&t, 0).await;
    f.advance(1);
    let new = f.enqueue_with_priority(&t, 0).await;
    let high = f.enqueue_with_priority(&t, 10).await;
    f.advance(1);
    let highest = f.enqueue_with_priority(&t, 1000).await;
    let expected = [highest, high, old, new, low];
    assert_eq!(ids(&f.claim(10).await), expected);
}

/// Requests enqueued at the same time are ordered by id, which is the order of one call.
pub async fn requests_of_equal_age_are_ordered_by_id(f: Fixture) {
    let t = f.workspace(10).await;
    let mut requests: Vec<NewRequest> = (0..6).map(|_| new_request(&t)).collect();
    let rising: Vec<RequestId> = requests.iter().map(|r| r.id).collect();
    requests.reverse();
    f.enqueue_all(&t, requests).await;
    assert_eq!(ids(&f.claim(10).await), rising);
}

/// The oldest request is the one enqueued first, even if its id is higher: ids come from many machines.
pub async fn age_counts_from_the_enqueue_not_the_id(f: Fixture) {
    let t = f.workspace(10).await;
    let early_id: RequestId = fresh_id();
    let first = f.enqueue(&t, 1).await[0];
    f.advance(1);
    let second = NewRequest::new(early_id, t.definition, params());
    let second = f.enqueue_one(&t, second).await;
    assert_eq!(ids(&f.claim(10).await), [first, second]);
}

/// A released request keeps its position in the line.
pub async fn released_request_keeps_its_position(f: Fixture) {
    use leasehold_store::request::ReleaseKind;
    let t = f.workspace(1).await;
    let request_ids = f.enqueue(&t, 3).await;
    f.advance(1);
    for kind in [
        ReleaseKind::NotStarted,
        ReleaseKind::Refused { max_attempts: 9 },
    ] {
        let claimed = f.claim_one().await;
        assert_eq!(claimed.id, request_ids[0]);
        f.release(&claimed, kind, 0).await;
    }
    assert_eq!(f.claim_one().await.id, request_ids[0]);
}

/// Labels of the claimed requests: `names[i][n]` is the n-th request of the i-th workspace.
fn labels(claimed: &Claimed, request_ids: &[Vec<RequestId>]) -> String {
    let name = |id: &RequestId| {
        let position = |ids: &Vec<RequestId>| ids.iter().position(|x| x == id);
        let (workspace, n) = request_ids
            .iter()
            .enumerate()
            .find_map(|(w, ids)| position(ids).map(|n| (w, n)))
            .expect("only enqueued requests are claimed");
        format!("{}{}", char::from(b'a' + workspace as u8), n + 1)
    };
    let names: Vec<String> = claimed.requests.iter().map(|r| name(&r.id)).collect();
    names.join(" ")
}

async fn three(
    f: &Fixture,
    limits: [u32; 3],
    n: [usize; 3],
) -> (Vec<TestWorkspace>, Vec<Vec<RequestId>>) {
    let (mut workspaces, mut request_ids) = (Vec::new(), Vec::new());
    for (limit, n) in limits.into_iter().zip(n) {
        let workspace = f.workspace(limit).await;
        request_ids.push(f.enqueue(&workspace, n).await);
        workspaces.push(workspace);
    }
    (workspaces, request_ids)
}

/// Workspaces take turns, one admission each, across claims with a batch smaller than the number of workspaces: the store keeps the round-robin
/// position. New workspaces join in order.
pub async fn workspaces_take_turns(f: Fixture) {
    let (_, request_ids) = three(&f, [10, 10, 10], [5, 2, 3]).await;
    let claimed = f.drain(2).await;
    assert_eq!(
        labels(&claimed, &request_ids),
        "a1 b1 c1 a2 b2 c2 a3 c3 a4 a5"
    );
}

/// A batch larger than the number of workspaces goes round several times.
pub async fn large_batch_goes_round_several_times(f: Fixture) {
    let (workspaces, mut request_ids) = three(&f, [5, 5, 2], [4, 2, 5]).await;
    assert_eq!(labels(&f.claim(4).await, &request_ids), "a1 b1 c1 a2");
    assert_eq!(labels(&f.drain(40).await, &request_ids), "b2 c2 a3 a4");
    assert_eq!(labels(&f.claim(40).await, &request_ids), "");
    // c is full. b had its turn before a, and becomes ready before a again.
    for (n, more) in [(1, 2), (0, 1)] {
        let ids = f.enqueue(&workspaces[n], more).await;
        request_ids[n].extend(ids);
    }
    assert_eq!(labels(&f.drain(40).await, &request_ids), "b3 a5 b4");
}

/// A full workspace is skipped; once a slot is free it is served within a round, before any other is served twice.
pub async fn full_workspace_is_served_within_a_round_once_a_slot_is_free(f: Fixture) {
    let (_, request_ids) = three(&f, [1, 10, 10], [3, 9, 9]).await;
    let first = f.claim(3).await;
    assert_eq!(labels(&first, &request_ids), "a1 b1 c1");
    assert_eq!(labels(&f.claim(3).await, &request_ids), "b2 c2 b3");
    f.finish(first.requests[0].execution, ExecutionEnd::Completed)
        .await;
    let served = labels(&f.claim(3).await, &request_ids);
    let mut served: Vec<&str> = served.split(' ').collect();
    served.sort_unstable();
    assert_eq!(served, ["a2", "b4", "c3"]);
}

/// A new workspace among busy ones is served within a round.
pub async fn new_workspace_is_served_within_a_round(f: Fixture) {
    let (_, mut request_ids) = three(&f, [100, 100, 100], [50, 50, 50]).await;
    f.claim(30).await;
    let newcomer = f.workspace(5).await;
    request_ids.push(f.enqueue(&newcomer, 5).await);
    let served = labels(&f.claim(4).await, &request_ids);
    let mut served: Vec<&str> = served.split(' ').collect();
    served.sort_unstable();
    assert_eq!(served, ["a11", "b11", "c11", "d1"]);
}

/// A FREE workspace with a hundred thousand pending requests and no free slot does not delay another by even one claim.
pub async fn full_workspace_does_not_delay_others(f: Fixture) {
    let full = f.workspace(1).await;
    for _ in 0..10 {
        f.enqueue(&full, 10_000).await;
    }
    f.claim_one().await;
    let other = f.workspace(100).await;
    let request_ids = f.enqueue(&other, 100).await;
    for ten in request_ids.chunks(10) {
        assert_eq!(ids(&f.claim(10).await), ten);
    }
    assert_eq!(f.slots(full.workspace).await.in_use, 1);
}

/// Many full workspaces ahead do not delay others either.
pub async fn many_full_workspaces_do_not_delay_others(f: Fixture) {
    for _ in 0..30 {
        let full = f.workspace(0).await;
        f.enqueue(&full, 20).await;
    }
    let other = f.workspace(5).await;
    let request_ids = f.enqueue(&other, 3).await;
    let claimed = f.claim(1).await;
    assert_eq!(ids(&claimed), request_ids[..1]);
    assert_eq!(ids(&f.claim(10).await), request_ids[1..]);
}

/// Rejected requests count toward the batch and take a turn: a deleted workspace with a long line does not block others.
pub async fn rejection_counts_toward_the_batch_and_takes_a_turn(f: Fixture) {
    let (workspaces, request_ids) = three(&f, [9, 9, 9], [6, 4, 4]).await;
    assert!(ok(f
        .store
        .workspace_delete(workspaces[0].workspace, &leasehold_store::Actor::Local)
        .await));
    let claimed = f.claim(5).await;
    assert_eq!(labels(&claimed, &request_ids), "b1 c1 b2");
    let gone = FailureReason::WorkspaceNotFound;
    let expected = [request_ids[0][0], request_ids[0][1]].map(|request| Rejected {
        request,
        workspace: workspaces[0].workspace,
        reason: gone,
    });
    assert_eq!(claimed.rejected, expected);
    assert!(claimed.more);
}

/// Admissions are numbered in the order of the claimed requests, across claims and workspaces.
pub async fn admissions_are_numbered_in_order(f: Fixture) {
    let (_, _) = three(&f, [9, 9, 9], [3, 3, 3]).await;
    let mut numbers = Vec::new();
    for batch in [2, 4, 3] {
        for claimed in f.claim(batch).await.requests {
            let execution = f.execution(claimed.workspace, claimed.execution).await;
            numbers.push(execution.expect("the execution is running").admission);
        }
    }
    assert_eq!(numbers.len(), 9);
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}
