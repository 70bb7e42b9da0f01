//! Isolation of workspaces: every method that takes a workspace sees only the data of that workspace.

use crate::Fixture;
use crate::dump::Dump;
use crate::factory::{TestWorkspace, USER, binding, ids, new_request, ok};
use leasehold_core::key::KeyScope;
use leasehold_core::{ExecutionId, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::ChangeStart;
use leasehold_store::definition::{NewVersion, Publisher, VersionPublished};
use leasehold_store::execution::ExecutionFilter;
use leasehold_store::request::{
    Cancelled, Enqueued, NewRequest, Redrive, RedriveMany, Redriven, RequestFilter,
};
use leasehold_store::{Page, fresh_id};
use std::collections::BTreeSet;

/// Creates a workspace with a request in every status.
struct Populated {
    workspace: TestWorkspace,
    requests: Vec<RequestId>,
    executions: Vec<ExecutionId>,
    failed: RequestId,
}

async fn populated(f: &Fixture) -> Populated {
    let workspace = f.workspace(9).await;
    let failed = f.enqueue_failed(&workspace).await;
    let claimed = [
        f.enqueue_completed(&workspace).await,
        failed.clone(),
        f.enqueue_running(&workspace).await,
        f.enqueue_claimed(&workspace).await,
    ];
    let kept = f.enqueue_claimed(&workspace).await;
    f.release(&kept, leasehold_store::request::ReleaseKind::Unknown, 600)
        .await;
    let mut requests: Vec<RequestId> = claimed.iter().map(|c| c.id).collect();
    requests.push(kept.id);
    let mut executions: Vec<ExecutionId> = claimed.iter().map(|c| c.execution).collect();
    executions.push(kept.execution);
    let later = NewRequest {
        run_at: Some(f.now() + std::time::Duration::from_secs(600)),
        ..new_request(&workspace)
    };
    requests.push(f.enqueue_one(&workspace, later).await);
    Populated {
        workspace,
        requests,
        executions,
        failed: failed.id,
    }
}

async fn two(f: &Fixture) -> (Populated, Populated, Dump) {
    let (mine, theirs) = (populated(f).await, populated(f).await);
    let before = f.dump().await;
    (mine, theirs, before)
}

/// Definitions and versions of another workspace cannot be read, listed, deleted or published to.
pub async fn definitions_of_another_workspace_are_invisible(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let (me, it) = (mine.workspace.workspace, theirs.workspace);
    assert_eq!(ok(f.store.definition_get(me, it.definition).await), None);
    let listed = ok(f.store.definition_list(me, Page::first(100)).await);
    assert!(listed.iter().all(|d| d.workspace == me));
    assert_eq!(ok(f.store.version_get(me, it.version).await), None);
    let versions = f.store.version_list(me, it.definition, Page::first(100));
    assert_eq!(ok(versions.await), []);
    assert!(!ok(f
        .store
        .definition_delete(me, it.definition, &leasehold_store::Actor::Local)
        .await));
    let new = NewVersion {
        id: fresh_id(),
        workspace: me,
        definition: it.definition,
        body: binding(),
        params_schema: None,
        execution_timeout: None,
        publisher: Publisher::Administrator,
    };
    let published = ok(f
        .store
        .version_publish(&new, &leasehold_store::Actor::Local)
        .await);
    assert_eq!(published, VersionPublished::DefinitionNotFound);
    assert_eq!(f.dump().await, before);
}

/// Requests of another workspace cannot be read, listed, cancelled or redriven, and have no timeline.
pub async fn requests_of_another_workspace_are_invisible(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let me = mine.workspace.workspace;
    for id in &theirs.requests {
        assert_eq!(ok(f.store.request_get(me, *id).await), None);
        assert_eq!(f.timeline(me, *id).await, []);
        let cancelled = f.cancel(me, *id);
        assert_eq!(cancelled.await, Cancelled::NotFound);
        let redrive = Redrive {
            workspace: me,
            failed: *id,
            id: fresh_id(),
            by: USER.into(),
        };
        assert_eq!(
            ok(f.store.request_redrive(&redrive).await),
            Redriven::NotFound
        );
    }
    let own = RequestFilter {
        workspace: Some(me),
        ..RequestFilter::default()
    };
    let listed = f.list_all(&own, 100).await;
    assert_eq!(listed.len(), mine.requests.len());
    assert!(listed.iter().all(|r| r.workspace == me));
    let mixed = RequestFilter {
        definition: Some(theirs.workspace.definition),
        ..own
    };
    assert_eq!(f.list_all(&mixed, 100).await, []);
    assert_eq!(f.dump().await, before);
}

/// Executions of another workspace cannot be read or listed.
pub async fn executions_of_another_workspace_are_invisible(f: Fixture) {
    let (mine, theirs, _) = two(&f).await;
    let own = ExecutionFilter {
        workspace: mine.workspace.workspace,
        status: None,
        definition: None,
    };
    let listed = f.executions(&own, 2).await;
    let listed: BTreeSet<ExecutionId> = listed.iter().map(|e| e.id).collect();
    assert_eq!(listed, mine.executions.iter().copied().collect());
    let mixed = ExecutionFilter {
        definition: Some(theirs.workspace.definition),
        ..own
    };
    assert_eq!(f.executions(&mixed, 100).await, []);
    for id in theirs.executions {
        assert_eq!(f.execution(mine.workspace.workspace, id).await, None);
        let own = f.execution(theirs.workspace.workspace, id).await;
        assert_eq!(own.map(|e| e.id), Some(id));
    }
}

/// A position in another workspace's line cannot be read, and other workspaces do not change a position.
pub async fn position_ignores_other_workspaces(f: Fixture) {
    let (mine, theirs) = (f.workspace(0).await, f.workspace(0).await);
    let (own, others) = (f.enqueue(&mine, 1).await[0], f.enqueue(&theirs, 3).await);
    for id in others {
        assert_eq!(
            ok(f.store.request_position(mine.workspace, id, 10).await),
            None
        );
    }
    let position = f.store.request_position(mine.workspace, own, 10).await;
    assert_eq!(ok(position), Some(0));
}

/// Changes of another workspace are not in a workspace's stream.
pub async fn changes_of_another_workspace_are_invisible(f: Fixture) {
    let (mine, _, _) = two(&f).await;
    let me = mine.workspace.workspace;
    let (mut start, mut seen) = (ChangeStart::Oldest, BTreeSet::new());
    loop {
        let page = ok(f.store.change_list(&start, Some(me), 3).await);
        if page.changes.is_empty() {
            break;
        }
        assert!(page.changes.iter().all(|c| c.event.workspace == me));
        seen.extend(page.changes.iter().map(|c| c.event.request));
        start = ChangeStart::After(page.cursor);
    }
    assert_eq!(seen, mine.requests.iter().copied().collect());
}

/// Keys of other workspaces, and keys without a workspace, are not in a workspace's list.
pub async fn keys_of_another_workspace_are_invisible(f: Fixture) {
    let (mine, theirs) = (f.workspace(0).await, f.workspace(0).await);
    let own = f.key(KeyScope::Workspace(mine.workspace)).await;
    f.key(KeyScope::Workspace(theirs.workspace)).await;
    f.key(KeyScope::Admin).await;
    assert_eq!(f.keys(Some(mine.workspace), 10).await, [own]);
    assert_eq!(f.keys(Some(fresh_id()), 10).await, []);
}

/// Enqueueing a definition of another workspace is forbidden and inserts nothing.
pub async fn definition_of_another_workspace_is_forbidden(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let definition = theirs.workspace.definition;
    let requests = vec![new_request(&mine.workspace), new_request(&theirs.workspace)];
    let enqueued = f.try_enqueue(mine.workspace.workspace, requests).await;
    assert_eq!(enqueued, Enqueued::DefinitionForbidden(definition));
    assert_eq!(f.dump().await, before);
}

/// A bulk redrive takes only the workspace's own failed requests.
pub async fn bulk_redrive_skips_other_workspaces(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let redrive = RedriveMany {
        workspace: mine.workspace.workspace,
        reason: None,
        definition: None,
        limit: 100,
        max_bytes: u64::MAX,
        by: USER.into(),
    };
    let redriven = ok(f.store.request_redrive_many(&redrive).await);
    let failed: Vec<RequestId> = redriven.iter().map(|(failed, _)| *failed).collect();
    assert_eq!(failed, [mine.failed]);
    assert_same(&before, &f.dump().await, theirs.workspace.workspace);
}

/// Updating, pausing and deleting one workspace does not change another.
pub async fn updates_of_one_workspace_affect_no_other(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let (me, it) = (mine.workspace.workspace, theirs.workspace.workspace);
    f.set_limit(me, 0).await;
    f.set_paused(me, true).await;
    assert_same(&before, &f.dump().await, it);
    f.enqueue(&mine.workspace, 3).await;
    assert!(ok(f
        .store
        .definition_delete(
            me,
            mine.workspace.definition,
            &leasehold_store::Actor::Local
        )
        .await));
    assert!(ok(f
        .store
        .workspace_delete(me, &leasehold_store::Actor::Local)
        .await));
    f.claim(100).await;
    assert_same(&before, &f.dump().await, it);
    let request_ids = f.enqueue(&theirs.workspace, 2).await;
    assert_eq!(ids(&f.claim(100).await), request_ids);
}

/// A workspace that does not exist owns nothing.
pub async fn unknown_workspace_owns_nothing(f: Fixture) {
    let (mine, _, before) = two(&f).await;
    let unknown: WorkspaceId = fresh_id();
    for id in &mine.requests {
        assert_eq!(ok(f.store.request_get(unknown, *id).await), None);
    }
    let filter = RequestFilter {
        workspace: Some(unknown),
        status: Some(RequestStatus::Pending),
        ..RequestFilter::default()
    };
    assert_eq!(f.list_all(&filter, 10).await, []);
    let listed = ok(f.store.definition_list(unknown, Page::first(10)).await);
    assert_eq!(listed, []);
    assert_eq!(f.dump().await, before);
}

fn assert_same(before: &Dump, after: &Dump, workspace: WorkspaceId) {
    let of = |dump: &Dump| {
        let requests: Vec<_> = dump
            .requests
            .values()
            .filter(|r| r.workspace == workspace)
            .cloned()
            .collect();
        let timelines: Vec<_> = requests
            .iter()
            .map(|r| dump.timelines[&r.id].clone())
            .collect();
        let executions: Vec<_> = requests
            .iter()
            .map(|r| dump.executions.get(&r.id).cloned())
            .collect();
        (
            requests,
            timelines,
            executions,
            dump.workspaces.get(&workspace).cloned(),
            dump.counts.get(&workspace).copied(),
            dump.slots.get(&workspace).copied(),
        )
    };
    assert_eq!(of(before), of(after));
}
