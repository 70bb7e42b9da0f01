//! How much a claim admits: exactly the limit in force, through pauses and plan changes.

use crate::Fixture;
use crate::factory::ids;
use leasehold_core::{ExecutionEnd, Plan, RequestStatus};
use leasehold_store::request::{AtCapacity, Claimed, ReleaseKind};
use leasehold_store::workspace::{SlotUse, WorkspaceChange};

/// Each plan and each override admits exactly its limit, in one claim and in many.
pub async fn each_limit_is_exact(f: Fixture) {
    let plans = Plan::ALL.map(|plan| (plan, None, plan.max_concurrent_executions()));
    let overridden = [(Plan::Enterprise, Some(0), 0), (Plan::Free, Some(33), 33)];
    for (plan, limit_override, limit) in plans.into_iter().chain(overridden) {
        let t = f.workspace_on_plan(plan, limit_override).await;
        let enqueued = f.enqueue(&t, 40).await;
        let mut admitted = ids(&f.claim(3).await);
        admitted.extend(ids(&f.drain(1_000).await));
        assert_eq!(
            admitted,
            enqueued[..limit as usize],
            "{plan} {limit_override:?}"
        );
        assert_eq!(ids(&f.claim(10).await), []);
        let in_use = SlotUse {
            limit,
            in_use: limit,
        };
        assert_eq!(f.slots(t.workspace).await, in_use);
        assert_eq!(f.counts(t.workspace).await.pending, u64::from(40 - limit));
    }
}

/// A limit larger than the backlog admits all of it.
pub async fn large_limit_admits_everything_pending(f: Fixture) {
    let t = f.workspace(100_000).await;
    let enqueued = f.enqueue(&t, 700).await;
    assert_eq!(ids(&f.drain(500).await), enqueued);
}

/// A slot is held from the claim through DISPATCHED to the end.
pub async fn slot_is_held_from_claim_to_end(f: Fixture) {
    let t = f.workspace(1).await;
    let enqueued = f.enqueue(&t, 2).await;
    let first = f.claim_one().await;
    assert_eq!(ids(&f.claim(10).await), []);
    f.dispatch(&first).await;
    assert_eq!(ids(&f.claim(10).await), []);
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
    f.finish(first.execution, ExecutionEnd::Completed).await;
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
    assert_eq!(ids(&f.claim(10).await), enqueued[1..]);
}

/// A paused workspace admits nothing until it is resumed; running executions continue.
pub async fn paused_workspace_admits_nothing_until_resumed(f: Fixture) {
    let t = f.workspace(3).await;
    let running = f.enqueue_running(&t).await;
    let enqueued = f.enqueue(&t, 5).await;
    f.set_paused(t.workspace, true).await;
    assert_eq!(f.claim(10).await, Claimed::default());
    let status = f.finish(running.execution, ExecutionEnd::Completed).await;
    assert_eq!(status, RequestStatus::Completed);
    assert_eq!(ids(&f.claim(10).await), []);
    let late = f.enqueue(&t, 1).await;
    assert_eq!(ids(&f.claim(10).await), []);
    f.set_paused(t.workspace, false).await;
    assert_eq!(ids(&f.claim(10).await), enqueued[..3]);
    assert_eq!(f.counts(t.workspace).await.pending, 2 + late.len() as u64);
}

/// Requests that become due during a pause are admitted after it.
pub async fn requests_that_become_due_in_a_pause_are_admitted_later(f: Fixture) {
    let t = f.workspace(3).await;
    let request = leasehold_store::request::NewRequest {
        run_at: Some(f.now() + std::time::Duration::from_secs(5)),
        ..crate::factory::new_request(&t)
    };
    let id = f.enqueue_one(&t, request).await;
    f.set_paused(t.workspace, true).await;
    f.advance(10);
    assert_eq!(ids(&f.claim(10).await), []);
    f.set_paused(t.workspace, false).await;
    assert_eq!(ids(&f.claim(10).await), [id]);
}

/// After lowering 20 to 5 with twenty running, nothing is admitted until four are left; then exactly one. The first admitted finish first, so the
/// remaining holders are the last admitted.
pub async fn lowered_limit_admits_nothing_until_fewer_run(f: Fixture) {
    let t = f.workspace_on_plan(Plan::Enterprise, None).await;
    let enqueued = f.enqueue(&t, 30).await;
    let running = f.claim(100).await.requests;
    assert_eq!(running.len(), 20);
    f.set_limit(t.workspace, 5).await;
    for (done, claimed) in running.iter().take(15).enumerate() {
        assert_eq!(ids(&f.claim(10).await), [], "{} still run", 20 - done);
        f.finish(claimed.execution, ExecutionEnd::Completed).await;
    }
    assert_eq!(
        f.slots(t.workspace).await,
        SlotUse {
            limit: 5,
            in_use: 5
        }
    );
    assert_eq!(ids(&f.claim(10).await), []);
    f.finish(running[17].execution, ExecutionEnd::Failed).await;
    assert_eq!(ids(&f.claim(10).await), enqueued[20..21]);
    assert_eq!(ids(&f.claim(10).await), []);
}

/// The same for a plan change, with the remaining holders spread over all admitted ones.
pub async fn lowered_plan_counts_all_slot_holders(f: Fixture) {
    let t = f.workspace_on_plan(Plan::Enterprise, None).await;
    f.enqueue(&t, 30).await;
    let running = f.claim(100).await.requests;
    let change = WorkspaceChange {
        plan: Some(Plan::Pro),
        ..WorkspaceChange::default()
    };
    f.change(t.workspace, change).await;
    let left = [0, 3, 7, 12, 15];
    for (n, claimed) in running.iter().enumerate() {
        if !left.contains(&n) {
            f.finish(claimed.execution, ExecutionEnd::Completed).await;
            assert_eq!(ids(&f.claim(10).await), []);
        }
    }
    for n in left {
        f.finish(running[n].execution, ExecutionEnd::Completed)
            .await;
        assert_eq!(f.claim(10).await.requests.len(), 1);
    }
}

/// A raised limit admits exactly the difference at once.
pub async fn raised_limit_admits_at_once(f: Fixture) {
    let t = f.workspace_on_plan(Plan::Free, None).await;
    let enqueued = f.enqueue(&t, 30).await;
    assert_eq!(ids(&f.claim(10).await), enqueued[..1]);
    let change = WorkspaceChange {
        plan: Some(Plan::Pro),
        ..WorkspaceChange::default()
    };
    f.change(t.workspace, change).await;
    assert_eq!(ids(&f.claim(10).await), enqueued[1..5]);
    f.set_limit(t.workspace, 7).await;
    assert_eq!(ids(&f.claim(10).await), enqueued[5..7]);
    f.set_limit(t.workspace, 0).await;
    assert_eq!(ids(&f.claim(10).await), []);
    let change = WorkspaceChange {
        plan: Some(Plan::Enterprise),
        limit_override: Some(None),
        ..WorkspaceChange::default()
    };
    f.change(t.workspace, change).await;
    assert_eq!(ids(&f.claim(100).await), enqueued[7..20]);
}

/// A claim reports each workspace whose last slot it took while more is pending, once, and no other.
pub async fn reports_each_workspace_that_it_filled(f: Fixture) {
    let (filled, exact, roomy) = (
        f.workspace(2).await,
        f.workspace(1).await,
        f.workspace(5).await,
    );
    f.enqueue(&filled, 4).await;
    f.enqueue(&exact, 1).await;
    f.enqueue(&roomy, 4).await;
    let claimed = f.drain(100).await;
    assert_eq!(claimed.requests.len(), 7);
    let full = AtCapacity {
        workspace: filled.workspace,
        active: 2,
        limit: 2,
    };
    assert_eq!(claimed.at_capacity, [full]);
    f.enqueue(&exact, 1).await;
    assert_eq!(
        f.claim(100).await.at_capacity,
        [],
        "the workspace was full before"
    );
    let first = claimed
        .requests
        .iter()
        .find(|r| r.workspace == filled.workspace);
    let first = first.expect("the request was claimed");
    f.finish(first.execution, ExecutionEnd::Completed).await;
    assert_eq!(f.claim(1).await.at_capacity, [full]);
    f.set_limit(filled.workspace, 4).await;
    assert_eq!(f.claim(100).await.at_capacity, [], "nothing is pending");
}

/// An unknown start, a rejected request and a deleted workspace fill no workspace.
pub async fn requests_without_a_new_slot_fill_no_workspace(f: Fixture) {
    let t = f.workspace(1).await;
    let kept = f.enqueue_claimed(&t).await;
    f.enqueue(&t, 1).await;
    f.release(&kept, ReleaseKind::Unknown, 0).await;
    let again = f.claim(10).await;
    assert_eq!((ids(&again), again.at_capacity), (vec![kept.id], vec![]));
    let gone = f.workspace(1).await;
    f.enqueue(&gone, 3).await;
    assert!(
        f.store
            .workspace_delete(gone.workspace, &leasehold_store::Actor::Local)
            .await
            .is_ok()
    );
    let rejected = f.claim(2).await;
    assert_eq!((rejected.rejected.len(), rejected.at_capacity), (2, vec![]));
}
