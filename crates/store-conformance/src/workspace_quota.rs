//! Quotas of a workspace: limits in force, and the open bytes from enqueue to end.

use crate::Fixture;
use crate::factory::{OWNER, USER, new_request, ok};
use crate::graph_factory::{graph, graph_of, task};
use crate::invariants;
use futures::future::join_all;
use leasehold_core::graph::GraphStop;
use leasehold_core::limits::{REQUEST_OVERHEAD_BYTES, STEP_UNCHARGED_BYTES};
use leasehold_core::{
    ExecutionEnd, FailureReason, JsonText, Plan, Usage, WorkspaceId, WorkspaceQuota,
};
use leasehold_store::prune::Prune;
use leasehold_store::request::{Fail, NewRequest, Redrive, RedriveMany, ReleaseKind};
use leasehold_store::workspace::WorkspaceChange;
use leasehold_store::{Actor, ErrorKind, fresh_id};
use leasehold_testbed::TestWorkspace;
use serde_json::json;

async fn quota(f: &Fixture, workspace: WorkspaceId) -> WorkspaceQuota {
    ok(f.store.workspace_quota(workspace).await).expect("the workspace exists")
}

async fn open_bytes(f: &Fixture, workspace: WorkspaceId) -> u64 {
    quota(f, workspace).await.used.bytes
}

/// A request whose params have `bytes` bytes as JSON text.
fn sized(workspace: &TestWorkspace, bytes: usize) -> NewRequest {
    NewRequest {
        params: JsonText::from(&json!("x".repeat(bytes - 2))),
        ..new_request(workspace)
    }
}

/// The limits are the defaults of the plan unless an override replaces them, and an override can be removed.
pub async fn limits_are_the_overrides_or_the_defaults(f: Fixture) {
    for plan in Plan::ALL {
        let made = f.bare_workspace(plan, None).await;
        let expected = WorkspaceQuota {
            max_pending: 1_000_000,
            max_open_bytes: plan.max_open_bytes(),
            used: Usage::default(),
        };
        assert_eq!(quota(&f, made.id).await, expected, "{plan}");
        let change = WorkspaceChange {
            max_pending_override: Some(Some(0)),
            max_open_bytes_override: Some(Some(1 << 40)),
            ..WorkspaceChange::default()
        };
        let changed = f.change(made.id, change).await;
        assert_eq!(changed.max_pending_override, Some(0));
        assert_eq!(changed.max_open_bytes_override, Some(1 << 40));
        assert_eq!(ok(f.store.workspace_get(made.id).await), Some(changed));
        let now = quota(&f, made.id).await;
        assert_eq!((now.max_pending, now.max_open_bytes), (0, 1 << 40));
        let without = WorkspaceChange {
            max_pending_override: Some(None),
            max_open_bytes_override: Some(None),
            ..WorkspaceChange::default()
        };
        assert_eq!(f.change(made.id, without).await, made);
        assert_eq!(quota(&f, made.id).await, expected, "{plan}");
    }
    let unknown: WorkspaceId = fresh_id();
    assert_eq!(ok(f.store.workspace_quota(unknown).await), None);
}

/// An override out of range is rejected by the schema and changes nothing.
pub async fn override_out_of_range_is_rejected(f: Fixture) {
    let made = f.bare_workspace(Plan::Free, None).await;
    let pending = WorkspaceChange {
        max_pending_override: Some(Some(1_000_000_001)),
        ..WorkspaceChange::default()
    };
    let bytes = WorkspaceChange {
        max_open_bytes_override: Some(Some(u64::MAX)),
        ..WorkspaceChange::default()
    };
    for (change, constraint) in [
        (pending, "workspace_max_pending"),
        (bytes, "workspace_max_open_bytes"),
    ] {
        let error = f
            .store
            .workspace_update(made.id, &change, &Actor::Local)
            .await;
        let kind = error.expect_err("the override is out of range").kind;
        assert_eq!(kind, ErrorKind::Constraint(constraint.into()));
    }
    assert_eq!(ok(f.store.workspace_get(made.id).await), Some(made));
}

/// A request counts its params and a fixed overhead from the enqueue until it ends, whichever way it ends.
pub async fn request_counts_from_enqueue_to_end(f: Fixture) {
    let t = f.workspace(10).await;
    let bystander = f.workspace(1).await;
    f.enqueue_one(&bystander, sized(&bystander, 500)).await;
    f.set_paused(bystander.workspace, true).await;
    let one = 10_000 + REQUEST_OVERHEAD_BYTES;
    let mut requests = Vec::new();
    for _ in 0..8 {
        requests.push(f.enqueue_one(&t, sized(&t, 10_000)).await);
    }
    let left = async |n: u64| assert_eq!(open_bytes(&f, t.workspace).await, n * one, "{n} open");
    left(8).await;
    let claimed = f.claim(6).await.requests;
    f.dispatch(&claimed[0]).await;
    f.release(&claimed[1], ReleaseKind::Unknown, 0).await;
    f.release(&claimed[2], ReleaseKind::NotStarted, 0).await;
    left(8).await;
    f.finish(claimed[0].execution, ExecutionEnd::Completed)
        .await;
    left(7).await;
    f.finish(claimed[1].execution, ExecutionEnd::Failed).await;
    left(6).await;
    f.cancel(t.workspace, claimed[2].id).await;
    left(5).await;
    let fail = Fail {
        claim: (&claimed[3]).into(),
        reason: FailureReason::EngineLost,
        error: None,
    };
    assert!(ok(f.store.request_fail(OWNER, &fail).await));
    left(4).await;
    let refused = ReleaseKind::Refused { max_attempts: 1 };
    f.release(&claimed[4], refused, 0).await;
    left(3).await;
    let redrive = Redrive {
        workspace: t.workspace,
        failed: claimed[4].id,
        id: fresh_id(),
        by: USER.into(),
    };
    ok(f.store.request_redrive(&redrive).await);
    left(4).await;
    f.advance(3_600);
    let prune = Prune {
        completed_before: Some(f.now()),
        failed_before: Some(f.now()),
        limit: 100,
    };
    ok(f.store.prune(&prune).await);
    left(4).await;
    invariants::check(&f).await;
    assert!(ok(f
        .store
        .workspace_delete(t.workspace, &Actor::Local)
        .await));
    f.drain(10).await;
    f.finish(claimed[5].execution, ExecutionEnd::Lost).await;
    left(0).await;
    let other = 500 + REQUEST_OVERHEAD_BYTES;
    assert_eq!(open_bytes(&f, bystander.workspace).await, other);
}

/// A request that is not inserted because its key is held adds nothing.
pub async fn repeated_key_adds_nothing(f: Fixture) {
    let t = f.workspace(1).await;
    let keyed = NewRequest {
        idempotency: Some(leasehold_store::request::Idempotency {
            key: "k".into(),
            window: None,
        }),
        ..sized(&t, 2_000)
    };
    for _ in 0..3 {
        let again = NewRequest {
            id: fresh_id(),
            ..keyed.clone()
        };
        f.try_enqueue(t.workspace, vec![again]).await;
    }
    let one = 2_000 + REQUEST_OVERHEAD_BYTES;
    assert_eq!(open_bytes(&f, t.workspace).await, one);
}

/// A bulk redrive stops at the bytes that it may add, and takes at least one request.
pub async fn bulk_redrive_stops_at_its_bytes(f: Fixture) {
    let t = f.workspace(10).await;
    for _ in 0..5 {
        f.enqueue_one(&t, sized(&t, 5_000)).await;
        let claimed = f.claim_one().await;
        f.finish(claimed.execution, ExecutionEnd::Failed).await;
    }
    let one = 5_000 + REQUEST_OVERHEAD_BYTES;
    let redrive = async |max_bytes| {
        let many = RedriveMany {
            workspace: t.workspace,
            reason: None,
            definition: None,
            limit: 100,
            max_bytes,
            by: USER.into(),
        };
        ok(f.store.request_redrive_many(&many).await).len()
    };
    assert_eq!(redrive(2 * one).await, 2);
    assert_eq!(open_bytes(&f, t.workspace).await, 2 * one);
    assert_eq!(redrive(1).await, 1);
    assert_eq!(redrive(0).await, 0);
    assert_eq!(redrive(u64::MAX).await, 2);
    assert_eq!(open_bytes(&f, t.workspace).await, 5 * one);
    invariants::check(&f).await;
}

/// Enqueues, claims and ends that run at once leave the figure exact.
pub async fn figure_is_exact_after_concurrent_operations(f: Fixture) {
    let t = f.workspace(20).await;
    let enqueue = async |n: usize| {
        for round in 0..10 {
            f.enqueue_one(&t, sized(&t, 100 + 10 * n + round)).await;
        }
    };
    let finish = async || {
        for _ in 0..10 {
            for claimed in f.claim_as(OWNER, 5).await.requests {
                f.finish(claimed.execution, ExecutionEnd::Completed).await;
            }
        }
    };
    let enqueues = join_all((0..4).map(enqueue));
    futures::join!(enqueues, finish(), finish());
    invariants::check(&f).await;
    for claimed in f.drain(50).await.requests {
        f.finish(claimed.execution, ExecutionEnd::Failed).await;
    }
    f.drain(50).await;
    invariants::check(&f).await;
}

/// A step of a graph that writes much is charged to the workspace, and released when the execution ends.
pub async fn steps_of_graphs_are_charged_until_the_execution_ends(f: Fixture) {
    let t = f
        .graph_workspace(2, graph_of(vec![task("a"), task("b")], &[("a", "b")]))
        .await;
    let s = f.enqueue_started_with(&t, sized(&t, 20_000)).await;
    let request = 20_000 + REQUEST_OVERHEAD_BYTES;
    let after_start = open_bytes(&f, t.workspace).await;
    assert!(after_start >= request, "{after_start}");
    f.complete_node("a", json!("y".repeat(50_000))).await;
    let after_a = open_bytes(&f, t.workspace).await;
    assert!(after_a >= after_start + 50_000, "{after_a}");
    f.complete_node("b", json!("z".repeat(50_000))).await;
    assert_eq!(open_bytes(&f, t.workspace).await, 0, "{:?}", s.execution);
    invariants::check(&f).await;
}

/// A graph that is stopped releases what its steps were charged.
pub async fn stopped_graph_releases_its_charge(f: Fixture) {
    let t = f
        .graph_workspace(1, graph(&["a", "b"], &[("a", "b")]))
        .await;
    let s = f.enqueue_started_with(&t, sized(&t, 300)).await;
    assert_eq!(
        open_bytes(&f, t.workspace).await,
        300 + REQUEST_OVERHEAD_BYTES,
        "a step below {STEP_UNCHARGED_BYTES} bytes is not charged"
    );
    f.complete_node("a", json!("y".repeat(100_000))).await;
    assert!(open_bytes(&f, t.workspace).await >= 100_000);
    f.stop_graph(s.execution, GraphStop::Terminated).await;
    assert_eq!(open_bytes(&f, t.workspace).await, 0);
    invariants::check(&f).await;
}
