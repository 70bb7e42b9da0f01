//! Workspaces: names, plans, limits, tombstones.

use crate::Fixture;
use crate::factory::{ids, new_request, ok};
use leasehold_core::{ExecutionEnd, FailureReason, Plan, RequestStatus, WorkspaceId};
use leasehold_store::request::{Enqueued, Rejected};
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated,
};
use leasehold_store::{ErrorKind, Page, fresh_id};

/// A workspace is read back with all its fields.
pub async fn is_read_back_as_created(f: Fixture) {
    let made = f.bare_workspace(Plan::Pro, Some(7)).await;
    let expected = Workspace {
        id: made.id,
        name: format!("workspace {}", made.id),
        plan: Plan::Pro,
        limit_override: Some(7),
        max_pending_override: None,
        max_open_bytes_override: None,
        paused: false,
        created_at: f.now(),
        deleted_at: None,
    };
    assert_eq!(made, expected);
    assert_eq!(ok(f.store.workspace_get(made.id).await), Some(expected));
}

/// An unknown id is none in every method.
pub async fn unknown_workspace_is_none_everywhere(f: Fixture) {
    let id: WorkspaceId = fresh_id();
    assert_eq!(ok(f.store.workspace_get(id).await), None);
    assert_eq!(ok(f.store.workspace_slots(id).await), None);
    let change = WorkspaceChange {
        paused: Some(true),
        ..WorkspaceChange::default()
    };
    assert_eq!(
        ok(f.store
            .workspace_update(id, &change, &leasehold_store::Actor::Local)
            .await),
        None
    );
    assert!(!ok(f
        .store
        .workspace_delete(id, &leasehold_store::Actor::Local)
        .await));
}

/// A name is unique among workspaces that are not deleted.
pub async fn name_is_unique_until_its_workspace_is_deleted(f: Fixture) {
    let named = |id| NewWorkspace {
        id,
        name: "acme".into(),
        plan: Plan::Free,
        limit_override: None,
    };
    let first: WorkspaceId = fresh_id();
    let second: WorkspaceId = fresh_id();
    let created = ok(f
        .store
        .workspace_create(&named(first), &leasehold_store::Actor::Local)
        .await);
    assert!(matches!(created, WorkspaceCreated::Created(_)));
    let taken = ok(f
        .store
        .workspace_create(&named(second), &leasehold_store::Actor::Local)
        .await);
    assert_eq!(taken, WorkspaceCreated::NameTaken);
    assert_eq!(ok(f.store.workspace_get(second).await), None);
    assert!(ok(f
        .store
        .workspace_delete(first, &leasehold_store::Actor::Local)
        .await));
    let created = ok(f
        .store
        .workspace_create(&named(second), &leasehold_store::Actor::Local)
        .await);
    assert!(matches!(created, WorkspaceCreated::Created(w) if w.id == second));
}

/// The limit is that of the plan unless an override replaces it.
pub async fn limit_is_the_override_or_that_of_the_plan(f: Fixture) {
    let plans = Plan::ALL.map(|plan| (plan, None, plan.max_concurrent_executions()));
    let overridden = [
        (Plan::Enterprise, Some(0), 0),
        (Plan::Free, Some(100_000), 100_000),
    ];
    for (plan, limit_override, limit) in plans.into_iter().chain(overridden) {
        let workspace = f.bare_workspace(plan, limit_override).await;
        let use_now = f.slots(workspace.id).await;
        assert_eq!(
            use_now,
            SlotUse { limit, in_use: 0 },
            "{plan} {limit_override:?}"
        );
    }
}

/// An update changes only the given fields, and an override can be removed.
pub async fn update_changes_only_the_given_fields(f: Fixture) {
    let made = f.bare_workspace(Plan::Free, Some(3)).await;
    f.advance(60);
    let none = WorkspaceChange::default();
    assert_eq!(f.change(made.id, none).await, made);
    let paused = WorkspaceChange {
        paused: Some(true),
        ..none
    };
    let mut expected = Workspace {
        paused: true,
        ..made.clone()
    };
    assert_eq!(f.change(made.id, paused).await, expected);
    let plan = WorkspaceChange {
        plan: Some(Plan::Enterprise),
        ..none
    };
    expected.plan = Plan::Enterprise;
    assert_eq!(f.change(made.id, plan).await, expected);
    assert_eq!(f.slots(made.id).await.limit, 3);
    let without = WorkspaceChange {
        limit_override: Some(None),
        ..none
    };
    expected.limit_override = None;
    assert_eq!(f.change(made.id, without).await, expected);
    assert_eq!(f.slots(made.id).await.limit, 20);
    assert_eq!(ok(f.store.workspace_get(made.id).await), Some(expected));
}

/// A limit out of range is rejected by the schema and changes nothing.
pub async fn limit_out_of_range_is_rejected(f: Fixture) {
    let made = f.bare_workspace(Plan::Free, None).await;
    let change = WorkspaceChange {
        limit_override: Some(Some(100_001)),
        ..WorkspaceChange::default()
    };
    let error = f
        .store
        .workspace_update(made.id, &change, &leasehold_store::Actor::Local)
        .await
        .expect_err("the limit is out of range");
    assert_eq!(
        error.kind,
        ErrorKind::Constraint("workspace_limit_range".into())
    );
    assert_eq!(ok(f.store.workspace_get(made.id).await), Some(made.clone()));
    assert_eq!(f.slots(made.id).await.limit, 1);
}

/// The list is complete, ordered by id, in pages, without deleted workspaces.
pub async fn list_is_ordered_by_id_without_deleted_ones(f: Fixture) {
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(f.bare_workspace(Plan::Free, None).await);
    }
    assert!(ok(f
        .store
        .workspace_delete(made.remove(3).id, &leasehold_store::Actor::Local)
        .await));
    let mut listed = Vec::new();
    let mut page = Page::first(2);
    loop {
        let rows = ok(f.store.workspace_list(page).await);
        assert!(rows.len() <= 2);
        let Some(last) = rows.last() else { break };
        page = Page::after(last.id, 2);
        listed.extend(rows);
    }
    assert_eq!(listed, made);
}

/// A workspace is found by its exact name; a deleted one is not found.
pub async fn is_found_by_exact_name(f: Fixture) {
    let made = f.bare_workspace(Plan::Pro, Some(7)).await;
    f.bare_workspace(Plan::Free, None).await;
    let find = async |name: &str| ok(f.store.workspace_find(name).await);
    assert_eq!(find(&made.name).await, Some(made.clone()));
    for other in [
        "",
        "workspace",
        "unknown",
        &made.name.to_uppercase(),
        &format!("{} ", made.name),
        &made.name.replace(' ', "%"),
    ] {
        assert_eq!(find(other).await, None, "{other}");
    }
    assert!(ok(f
        .store
        .workspace_delete(made.id, &leasehold_store::Actor::Local)
        .await));
    assert_eq!(find(&made.name).await, None);
    let again = NewWorkspace {
        id: fresh_id(),
        name: made.name.clone(),
        plan: Plan::Free,
        limit_override: None,
    };
    ok(f.store
        .workspace_create(&again, &leasehold_store::Actor::Local)
        .await);
    assert_eq!(find(&made.name).await.map(|w| w.id), Some(again.id));
}

/// A deleted workspace stays as a tombstone that cannot be changed.
pub async fn deleted_workspace_is_a_tombstone(f: Fixture) {
    let made = f.bare_workspace(Plan::Free, None).await;
    f.advance(60);
    let deleted_at = f.now();
    assert!(ok(f
        .store
        .workspace_delete(made.id, &leasehold_store::Actor::Local)
        .await));
    f.advance(60);
    assert!(!ok(f
        .store
        .workspace_delete(made.id, &leasehold_store::Actor::Local)
        .await));
    let change = WorkspaceChange {
        plan: Some(Plan::Pro),
        ..WorkspaceChange::default()
    };
    assert_eq!(
        ok(f.store
            .workspace_update(made.id, &change, &leasehold_store::Actor::Local)
            .await),
        None
    );
    let tombstone = ok(f.store.workspace_get(made.id).await).expect("the tombstone is kept");
    assert_eq!(tombstone.deleted_at, Some(deleted_at));
    assert_eq!((tombstone.name, tombstone.plan), (made.name, Plan::Free));
}

/// A deleted workspace accepts no requests.
pub async fn deleted_workspace_accepts_no_requests(f: Fixture) {
    let workspace = f.workspace(1).await;
    assert!(ok(f
        .store
        .workspace_delete(workspace.workspace, &leasehold_store::Actor::Local)
        .await));
    let enqueued = f
        .try_enqueue(workspace.workspace, vec![new_request(&workspace)])
        .await;
    assert_eq!(enqueued, Enqueued::WorkspaceNotFound);
}

/// Pending requests of a deleted workspace fail when their turn comes, even if it is full and paused: it cannot be resumed, so they would wait for
/// ever.
pub async fn pending_requests_of_a_deleted_workspace_fail_at_the_claim(f: Fixture) {
    let workspace = f.workspace(1).await;
    let running = f.enqueue_running(&workspace).await;
    let waiting = f.enqueue(&workspace, 3).await;
    f.set_paused(workspace.workspace, true).await;
    assert!(ok(f
        .store
        .workspace_delete(workspace.workspace, &leasehold_store::Actor::Local)
        .await));
    let claimed = f.drain(10).await;
    assert_eq!(ids(&claimed), []);
    let expected: Vec<_> = waiting
        .iter()
        .map(|request| Rejected {
            request: *request,
            workspace: workspace.workspace,
            reason: FailureReason::WorkspaceNotFound,
        })
        .collect();
    assert_eq!(claimed.rejected, expected);
    for id in waiting {
        let request = f.request(workspace.workspace, id).await;
        assert_eq!(request.status, RequestStatus::Failed);
        assert_eq!(
            request.failure_reason,
            Some(FailureReason::WorkspaceNotFound.into())
        );
        assert_eq!(
            (request.execution, request.finished_at),
            (None, Some(f.now()))
        );
        assert_eq!(request.attempt_count, 1, "a failure is an attempt");
    }
    let still = f.request(workspace.workspace, running.id).await;
    assert_eq!(still.status, RequestStatus::Dispatched);
}

/// Running requests of a deleted workspace continue and end normally.
pub async fn running_requests_of_a_deleted_workspace_continue(f: Fixture) {
    let workspace = f.workspace(1).await;
    let running = f.enqueue_running(&workspace).await;
    assert!(ok(f
        .store
        .workspace_delete(workspace.workspace, &leasehold_store::Actor::Local)
        .await));
    let status = f.finish(running.execution, ExecutionEnd::Completed).await;
    assert_eq!(status, RequestStatus::Completed);
    assert_eq!(f.counts(workspace.workspace).await.completed, 1);
}
