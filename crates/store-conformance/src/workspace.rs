//! What a store promises about workspaces: names, plans, limits, tombstones.

use crate::Fixture;
use crate::factory::{ids, new_request, ok};
use leasehold_core::{ExecutionEnd, FailureReason, Plan, RequestStatus, WorkspaceId};
use leasehold_store::request::{Enqueued, Rejected};
use leasehold_store::workspace::{
    NewWorkspace, SlotUse, Workspace, WorkspaceChange, WorkspaceCreated,
};
use leasehold_store::{ErrorKind, Page, fresh_id};

/// A workspace is read back with everything it was made with.
pub async fn is_read_back_as_it_was_made(f: Fixture) {
    let made = f.workspace(Plan::Pro, Some(7)).await;
    let expected = Workspace {
        id: made.id,
        name: format!("workspace {}", made.id),
        plan: Plan::Pro,
        limit_override: Some(7),
        paused: false,
        created_at: f.now(),
        deleted_at: None,
    };
    assert_eq!(made, expected);
    assert_eq!(ok(f.store.workspace_get(made.id).await), Some(expected));
}

/// An id nobody made is no workspace.
pub async fn an_unknown_one_is_none_everywhere(f: Fixture) {
    let id: WorkspaceId = fresh_id();
    assert_eq!(ok(f.store.workspace_get(id).await), None);
    assert_eq!(ok(f.store.workspace_slots(id).await), None);
    let change = WorkspaceChange {
        paused: Some(true),
        ..WorkspaceChange::default()
    };
    assert_eq!(ok(f.store.workspace_update(id, &change).await), None);
    assert!(!ok(f.store.workspace_delete(id).await));
}

/// A name belongs to one living workspace; a deleted one's is free again.
pub async fn a_name_is_unique_until_its_workspace_is_deleted(f: Fixture) {
    let named = |id| NewWorkspace {
        id,
        name: "acme".into(),
        plan: Plan::Free,
        limit_override: None,
    };
    let first: WorkspaceId = fresh_id();
    let second: WorkspaceId = fresh_id();
    let created = ok(f.store.workspace_create(&named(first)).await);
    assert!(matches!(created, WorkspaceCreated::Created(_)));
    let taken = ok(f.store.workspace_create(&named(second)).await);
    assert_eq!(taken, WorkspaceCreated::NameTaken);
    assert_eq!(ok(f.store.workspace_get(second).await), None);
    assert!(ok(f.store.workspace_delete(first).await));
    let created = ok(f.store.workspace_create(&named(second)).await);
    assert!(matches!(created, WorkspaceCreated::Created(w) if w.id == second));
}

/// The limit is the plan's unless an override replaces it.
pub async fn the_limit_is_the_override_or_the_plans(f: Fixture) {
    let plans = Plan::ALL.map(|plan| (plan, None, plan.max_concurrent_executions()));
    let overridden = [
        (Plan::Enterprise, Some(0), 0),
        (Plan::Free, Some(100_000), 100_000),
    ];
    for (plan, limit_override, limit) in plans.into_iter().chain(overridden) {
        let workspace = f.workspace(plan, limit_override).await;
        let use_now = f.slots(workspace.id).await;
        assert_eq!(
            use_now,
            SlotUse { limit, in_use: 0 },
            "{plan} {limit_override:?}"
        );
    }
}

/// A change touches what it names and nothing else, and an override can be taken away again.
pub async fn a_change_touches_only_what_it_names(f: Fixture) {
    let made = f.workspace(Plan::Free, Some(3)).await;
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

/// A limit out of range is refused by the schema and changes nothing.
pub async fn a_limit_out_of_range_is_refused(f: Fixture) {
    let made = f.workspace(Plan::Free, None).await;
    let change = WorkspaceChange {
        limit_override: Some(Some(100_001)),
        ..WorkspaceChange::default()
    };
    let error = f
        .store
        .workspace_update(made.id, &change)
        .await
        .expect_err("the limit is out of range");
    assert_eq!(
        error.kind,
        ErrorKind::Constraint("workspace_limit_range".into())
    );
    assert_eq!(ok(f.store.workspace_get(made.id).await), Some(made.clone()));
    assert_eq!(f.slots(made.id).await.limit, 1);
}

/// The list is complete, ordered by id, paged, and without the deleted.
pub async fn the_list_is_by_id_without_the_deleted(f: Fixture) {
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(f.workspace(Plan::Free, None).await);
    }
    assert!(ok(f.store.workspace_delete(made.remove(3).id).await));
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

/// A workspace is found by the whole of its name to the letter, and a deleted one not at all.
pub async fn is_found_by_its_name(f: Fixture) {
    let made = f.workspace(Plan::Pro, Some(7)).await;
    f.workspace(Plan::Free, None).await;
    let find = async |name: &str| ok(f.store.workspace_find(name).await);
    assert_eq!(find(&made.name).await, Some(made.clone()));
    for other in [
        "",
        "workspace",
        "nobody's",
        &made.name.to_uppercase(),
        &format!("{} ", made.name),
        &made.name.replace(' ', "%"),
    ] {
        assert_eq!(find(other).await, None, "{other}");
    }
    assert!(ok(f.store.workspace_delete(made.id).await));
    assert_eq!(find(&made.name).await, None);
    let again = NewWorkspace {
        id: fresh_id(),
        name: made.name.clone(),
        plan: Plan::Free,
        limit_override: None,
    };
    ok(f.store.workspace_create(&again).await);
    assert_eq!(find(&made.name).await.map(|w| w.id), Some(again.id));
}

/// A deleted workspace is kept as a tombstone that nothing changes any more.
pub async fn a_deleted_one_is_a_tombstone(f: Fixture) {
    let made = f.workspace(Plan::Free, None).await;
    f.advance(60);
    let deleted_at = f.now();
    assert!(ok(f.store.workspace_delete(made.id).await));
    f.advance(60);
    assert!(!ok(f.store.workspace_delete(made.id).await));
    let change = WorkspaceChange {
        plan: Some(Plan::Pro),
        ..WorkspaceChange::default()
    };
    assert_eq!(ok(f.store.workspace_update(made.id, &change).await), None);
    let tombstone = ok(f.store.workspace_get(made.id).await).expect("the tombstone is kept");
    assert_eq!(tombstone.deleted_at, Some(deleted_at));
    assert_eq!((tombstone.name, tombstone.plan), (made.name, Plan::Free));
}

/// Nothing is enqueued in a deleted workspace.
pub async fn nothing_is_enqueued_in_a_deleted_one(f: Fixture) {
    let site = f.site(1).await;
    assert!(ok(f.store.workspace_delete(site.workspace).await));
    let enqueued = f
        .try_enqueue(site.workspace, vec![new_request(&site)])
        .await;
    assert_eq!(enqueued, Enqueued::WorkspaceNotFound);
}

/// What waits in a deleted workspace fails when its turn comes, although the workspace is full and was paused:
/// nobody could resume it, so waiting for room would be waiting for ever.
pub async fn what_waits_in_a_deleted_one_fails_at_the_claim(f: Fixture) {
    let site = f.site(1).await;
    let running = f.running(&site).await;
    let waiting = f.enqueue(&site, 3).await;
    f.set_paused(site.workspace, true).await;
    assert!(ok(f.store.workspace_delete(site.workspace).await));
    let claimed = f.drain(10).await;
    assert_eq!(ids(&claimed), []);
    let expected: Vec<_> = waiting
        .iter()
        .map(|request| Rejected {
            request: *request,
            workspace: site.workspace,
            reason: FailureReason::WorkspaceNotFound,
        })
        .collect();
    assert_eq!(claimed.rejected, expected);
    for id in waiting {
        let request = f.request(site.workspace, id).await;
        assert_eq!(request.status, RequestStatus::Failed);
        assert_eq!(
            request.failure_reason,
            Some(FailureReason::WorkspaceNotFound)
        );
        assert_eq!(
            (request.execution, request.finished_at),
            (None, Some(f.now()))
        );
        assert_eq!(request.attempt_count, 1, "a failure is an attempt");
    }
    let still = f.request(site.workspace, running.id).await;
    assert_eq!(still.status, RequestStatus::Dispatched);
}

/// What runs in a deleted workspace runs on and ends as any other.
pub async fn what_runs_in_a_deleted_one_runs_on(f: Fixture) {
    let site = f.site(1).await;
    let running = f.running(&site).await;
    assert!(ok(f.store.workspace_delete(site.workspace).await));
    let status = f.finish(running.execution, ExecutionEnd::Completed).await;
    assert_eq!(status, RequestStatus::Completed);
    assert_eq!(f.counts(site.workspace).await.completed, 1);
}
