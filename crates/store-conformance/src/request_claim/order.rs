//! In what order a claim admits: workspaces in turn; within one, priority, then oldest, then id.

use crate::Fixture;
use crate::factory::{TestWorkspace, ids, new_request, ok, params};
use leasehold_core::{ExecutionEnd, FailureReason, RequestId};
use leasehold_store::fresh_id;
use leasehold_store::request::{Claimed, NewRequest, Rejected};

/// Within a workspace the highest priority goes first, then the oldest.
pub async fn within_a_workspace_priority_then_oldest(f: Fixture) {
    let t = f.site(10).await;
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

/// Requests of the same moment go in the order of their ids, which is the order of one call.
pub async fn requests_of_one_moment_go_by_id(f: Fixture) {
    let t = f.site(10).await;
    let mut requests: Vec<NewRequest> = (0..6).map(|_| new_request(&t)).collect();
    let rising: Vec<RequestId> = requests.iter().map(|r| r.id).collect();
    requests.reverse();
    f.enqueue_all(&t, requests).await;
    assert_eq!(ids(&f.claim(10).await), rising);
}

/// The oldest is the one enqueued first, also if its id was made later: ids come from many machines.
pub async fn the_oldest_is_the_one_enqueued_first(f: Fixture) {
    let t = f.site(10).await;
    let early_id: RequestId = fresh_id();
    let first = f.enqueue(&t, 1).await[0];
    f.advance(1);
    let second = NewRequest::new(early_id, t.definition, params());
    let second = f.enqueue_one(&t, second).await;
    assert_eq!(ids(&f.claim(10).await), [first, second]);
}

/// A request that was given back keeps its place in the line.
pub async fn what_was_given_back_keeps_its_place(f: Fixture) {
    use leasehold_store::request::ReleaseKind;
    let t = f.site(1).await;
    let asked = f.enqueue(&t, 3).await;
    f.advance(1);
    for kind in [
        ReleaseKind::NotStarted,
        ReleaseKind::Refused { max_attempts: 9 },
    ] {
        let claimed = f.claim_one().await;
        assert_eq!(claimed.id, asked[0]);
        f.release(&claimed, kind, 0).await;
    }
    assert_eq!(f.claim_one().await.id, asked[0]);
}

/// Labels of what was claimed: `names[i][n]` is the n-th request of the i-th workspace.
fn labels(claimed: &Claimed, asked: &[Vec<RequestId>]) -> String {
    let name = |id: &RequestId| {
        let place = |ids: &Vec<RequestId>| ids.iter().position(|x| x == id);
        let (workspace, n) = asked
            .iter()
            .enumerate()
            .find_map(|(w, ids)| place(ids).map(|n| (w, n)))
            .expect("only what was enqueued is claimed");
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
    let (mut sites, mut asked) = (Vec::new(), Vec::new());
    for (limit, n) in limits.into_iter().zip(n) {
        let site = f.site(limit).await;
        asked.push(f.enqueue(&site, n).await);
        sites.push(site);
    }
    (sites, asked)
}

/// Workspaces take turns, one admission each a turn, over claims with a batch smaller than the number of workspaces:
/// the place in the round is kept in the store. Those that join go in the order they joined.
pub async fn workspaces_take_turns(f: Fixture) {
    let (_, asked) = three(&f, [10, 10, 10], [5, 2, 3]).await;
    let claimed = f.drain(2).await;
    assert_eq!(labels(&claimed, &asked), "a1 b1 c1 a2 b2 c2 a3 c3 a4 a5");
}

/// In a batch larger than the number of workspaces the turns go round several times.
pub async fn a_large_batch_goes_round_several_times(f: Fixture) {
    let (sites, mut asked) = three(&f, [5, 5, 2], [4, 2, 5]).await;
    assert_eq!(labels(&f.claim(4).await, &asked), "a1 b1 c1 a2");
    assert_eq!(labels(&f.drain(40).await, &asked), "b2 c2 a3 a4");
    assert_eq!(labels(&f.claim(40).await, &asked), "");
    // c is full. b had its turn before a, and asks again before a.
    for (n, more) in [(1, 2), (0, 1)] {
        let ids = f.enqueue(&sites[n], more).await;
        asked[n].extend(ids);
    }
    assert_eq!(labels(&f.drain(40).await, &asked), "b3 a5 b4");
}

/// A workspace whose slots are taken is out of the round; when one is freed it is served within a round, whatever its
/// place: before any other is served twice.
pub async fn a_full_workspace_is_served_within_a_round_once_it_has_room(f: Fixture) {
    let (_, asked) = three(&f, [1, 10, 10], [3, 9, 9]).await;
    let first = f.claim(3).await;
    assert_eq!(labels(&first, &asked), "a1 b1 c1");
    assert_eq!(labels(&f.claim(3).await, &asked), "b2 c2 b3");
    f.finish(first.requests[0].execution, ExecutionEnd::Completed)
        .await;
    let served = labels(&f.claim(3).await, &asked);
    let mut served: Vec<&str> = served.split(' ').collect();
    served.sort_unstable();
    assert_eq!(served, ["a2", "b4", "c3"]);
}

/// A newcomer among busy workspaces is served within a round.
pub async fn a_newcomer_is_served_within_a_round(f: Fixture) {
    let (_, mut asked) = three(&f, [100, 100, 100], [50, 50, 50]).await;
    f.claim(30).await;
    let newcomer = f.site(5).await;
    asked.push(f.enqueue(&newcomer, 5).await);
    let served = labels(&f.claim(4).await, &asked);
    let mut served: Vec<&str> = served.split(' ').collect();
    served.sort_unstable();
    assert_eq!(served, ["a11", "b11", "c11", "d1"]);
}

/// A FREE workspace with a hundred thousand pending and no slot free delays another by not even one claim.
pub async fn a_full_workspace_delays_nobody(f: Fixture) {
    let full = f.site(1).await;
    for _ in 0..10 {
        f.enqueue(&full, 10_000).await;
    }
    f.claim_one().await;
    let other = f.site(100).await;
    let asked = f.enqueue(&other, 100).await;
    for ten in asked.chunks(10) {
        assert_eq!(ids(&f.claim(10).await), ten);
    }
    assert_eq!(f.slots(full.workspace).await.in_use, 1);
}

/// Many full workspaces in front delay nobody either.
pub async fn many_full_workspaces_delay_nobody(f: Fixture) {
    for _ in 0..30 {
        let full = f.site(0).await;
        f.enqueue(&full, 20).await;
    }
    let other = f.site(5).await;
    let asked = f.enqueue(&other, 3).await;
    let claimed = f.claim(1).await;
    assert_eq!(ids(&claimed), asked[..1]);
    assert_eq!(ids(&f.claim(10).await), asked[1..]);
}

/// A claim that rejects counts the rejected toward its batch. A rejection is its workspace's turn as well: a deleted
/// workspace with a long line does not hold up the others.
pub async fn a_rejection_counts_and_takes_a_turn(f: Fixture) {
    let (sites, asked) = three(&f, [9, 9, 9], [6, 4, 4]).await;
    assert!(ok(f.store.workspace_delete(sites[0].workspace).await));
    let claimed = f.claim(5).await;
    assert_eq!(labels(&claimed, &asked), "b1 c1 b2");
    let gone = FailureReason::WorkspaceNotFound;
    let expected = [asked[0][0], asked[0][1]].map(|request| Rejected {
        request,
        workspace: sites[0].workspace,
        reason: gone,
    });
    assert_eq!(claimed.rejected, expected);
    assert!(claimed.more);
}

/// Admissions are numbered in the order of the claim's answer, across claims and workspaces.
pub async fn admissions_are_numbered_in_order(f: Fixture) {
    let (_, _) = three(&f, [9, 9, 9], [3, 3, 3]).await;
    let mut numbers = Vec::new();
    for batch in [2, 4, 3] {
        for claimed in f.claim(batch).await.requests {
            let execution = f.execution(claimed.workspace, claimed.execution).await;
            numbers.push(execution.expect("it runs").admission);
        }
    }
    assert_eq!(numbers.len(), 9);
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}
