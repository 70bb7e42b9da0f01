//! What a store promises about sites: every method that takes a workspace sees only that workspace's things.

use crate::Fixture;
use crate::dump::Dump;
use crate::factory::{TestWorkspace, USER, binding, ids, new_request, ok};
use leasehold_core::key::KeyScope;
use leasehold_core::{ExecutionId, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::ChangeStart;
use leasehold_store::definition::NewVersion;
use leasehold_store::execution::ExecutionFilter;
use leasehold_store::request::{
    Cancelled, Enqueued, NewRequest, Redrive, RedriveMany, Redriven, RequestFilter,
};
use leasehold_store::{Page, fresh_id};
use std::collections::BTreeSet;

/// A site with a request in every status.
struct Populated {
    site: TestWorkspace,
    requests: Vec<RequestId>,
    executions: Vec<ExecutionId>,
    failed: RequestId,
}

async fn populated(f: &Fixture) -> Populated {
    let site = f.site(9).await;
    let failed = f.failed(&site).await;
    let claimed = [
        f.completed(&site).await,
        failed.clone(),
        f.running(&site).await,
        f.claimed(&site).await,
    ];
    let kept = f.claimed(&site).await;
    f.release(&kept, leasehold_store::request::ReleaseKind::Unknown, 600)
        .await;
    let mut requests: Vec<RequestId> = claimed.iter().map(|c| c.id).collect();
    requests.push(kept.id);
    let mut executions: Vec<ExecutionId> = claimed.iter().map(|c| c.execution).collect();
    executions.push(kept.execution);
    let later = NewRequest {
        run_at: Some(f.now() + std::time::Duration::from_secs(600)),
        ..new_request(&site)
    };
    requests.push(f.enqueue_one(&site, later).await);
    Populated {
        site,
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

/// Another's definitions and versions cannot be read, listed, deleted or published to.
pub async fn anothers_definitions_do_not_exist(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let (me, it) = (mine.site.workspace, theirs.site);
    assert_eq!(ok(f.store.definition_get(me, it.definition).await), None);
    let listed = ok(f.store.definition_list(me, Page::first(100)).await);
    assert!(listed.iter().all(|d| d.workspace == me));
    assert_eq!(ok(f.store.version_get(me, it.version).await), None);
    let versions = f.store.version_list(me, it.definition, Page::first(100));
    assert_eq!(ok(versions.await), []);
    assert!(!ok(f.store.definition_delete(me, it.definition).await));
    let new = NewVersion {
        id: fresh_id(),
        workspace: me,
        definition: it.definition,
        body: binding(),
        params_schema: None,
        execution_timeout: None,
    };
    assert_eq!(ok(f.store.version_publish(&new).await), None);
    assert_eq!(f.dump().await, before);
}

/// Another's requests cannot be read, listed, cancelled or redriven, and have no history.
pub async fn anothers_requests_do_not_exist(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let me = mine.site.workspace;
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
        definition: Some(theirs.site.definition),
        ..own
    };
    assert_eq!(f.list_all(&mixed, 100).await, []);
    assert_eq!(f.dump().await, before);
}

/// Another's executions cannot be read or listed.
pub async fn anothers_executions_do_not_exist(f: Fixture) {
    let (mine, theirs, _) = two(&f).await;
    let own = ExecutionFilter {
        workspace: mine.site.workspace,
        status: None,
        definition: None,
    };
    let listed = f.executions(&own, 2).await;
    let listed: BTreeSet<ExecutionId> = listed.iter().map(|e| e.id).collect();
    assert_eq!(listed, mine.executions.iter().copied().collect());
    let mixed = ExecutionFilter {
        definition: Some(theirs.site.definition),
        ..own
    };
    assert_eq!(f.executions(&mixed, 100).await, []);
    for id in theirs.executions {
        assert_eq!(f.execution(mine.site.workspace, id).await, None);
        let own = f.execution(theirs.site.workspace, id).await;
        assert_eq!(own.map(|e| e.id), Some(id));
    }
}

/// A place in another's line cannot be asked for, and is not changed by who else waits.
pub async fn anothers_line_does_not_exist(f: Fixture) {
    let (mine, theirs) = (f.site(0).await, f.site(0).await);
    let (own, others) = (f.enqueue(&mine, 1).await[0], f.enqueue(&theirs, 3).await);
    for id in others {
        assert_eq!(
            ok(f.store.request_place(mine.workspace, id, 10).await),
            None
        );
    }
    let place = f.store.request_place(mine.workspace, own, 10).await;
    assert_eq!(ok(place), Some(0));
}

/// Another's changes are not in the stream of a workspace.
pub async fn anothers_changes_do_not_exist(f: Fixture) {
    let (mine, _, _) = two(&f).await;
    let me = mine.site.workspace;
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

/// Another's keys are not in the list of a workspace, nor are those of nobody's workspace.
pub async fn anothers_keys_do_not_exist(f: Fixture) {
    let (mine, theirs) = (f.site(0).await, f.site(0).await);
    let own = f.key(KeyScope::Workspace(mine.workspace)).await;
    f.key(KeyScope::Workspace(theirs.workspace)).await;
    f.key(KeyScope::Admin).await;
    assert_eq!(f.keys(Some(mine.workspace), 10).await, [own]);
    assert_eq!(f.keys(Some(fresh_id()), 10).await, []);
}

/// Another's definition cannot be enqueued: forbidden, and nothing is inserted for anybody.
pub async fn anothers_definition_is_forbidden(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let definition = theirs.site.definition;
    let requests = vec![new_request(&mine.site), new_request(&theirs.site)];
    let enqueued = f.try_enqueue(mine.site.workspace, requests).await;
    assert_eq!(enqueued, Enqueued::DefinitionForbidden(definition));
    assert_eq!(f.dump().await, before);
}

/// A bulk redrive takes the workspace's own failures only.
pub async fn a_bulk_redrive_leaves_anothers_alone(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let redrive = RedriveMany {
        workspace: mine.site.workspace,
        reason: None,
        limit: 100,
        by: USER.into(),
    };
    let redriven = ok(f.store.request_redrive_many(&redrive).await);
    let failed: Vec<RequestId> = redriven.iter().map(|(failed, _)| *failed).collect();
    assert_eq!(failed, [mine.failed]);
    assert_same(&before, &f.dump().await, theirs.site.workspace);
}

/// Changing, pausing and deleting one workspace touches nothing of another.
pub async fn changes_of_one_workspace_touch_no_other(f: Fixture) {
    let (mine, theirs, before) = two(&f).await;
    let (me, it) = (mine.site.workspace, theirs.site.workspace);
    f.set_limit(me, 0).await;
    f.set_paused(me, true).await;
    assert_same(&before, &f.dump().await, it);
    f.enqueue(&mine.site, 3).await;
    assert!(ok(f
        .store
        .definition_delete(me, mine.site.definition)
        .await));
    assert!(ok(f.store.workspace_delete(me).await));
    f.claim(100).await;
    assert_same(&before, &f.dump().await, it);
    let asked = f.enqueue(&theirs.site, 2).await;
    assert_eq!(ids(&f.claim(100).await), asked);
}

/// A workspace that does not exist owns nothing.
pub async fn a_workspace_nobody_made_owns_nothing(f: Fixture) {
    let (mine, _, before) = two(&f).await;
    let nobody: WorkspaceId = fresh_id();
    for id in &mine.requests {
        assert_eq!(ok(f.store.request_get(nobody, *id).await), None);
    }
    let filter = RequestFilter {
        workspace: Some(nobody),
        status: Some(RequestStatus::Pending),
        ..RequestFilter::default()
    };
    assert_eq!(f.list_all(&filter, 10).await, []);
    let listed = ok(f.store.definition_list(nobody, Page::first(10)).await);
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
