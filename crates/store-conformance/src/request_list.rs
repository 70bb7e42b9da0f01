//! Lists of requests: complete, newest first, without repeats, filtered.

use crate::Fixture;
use crate::factory::{TestWorkspace, known, ok};
use leasehold_core::{DefinitionId, FailureReason, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::Page;
use leasehold_store::request::{Request, RequestFilter};

/// Creates two workspaces, one with two definitions, and requests in every status.
async fn mixed(f: &Fixture) -> (TestWorkspace, TestWorkspace, Vec<Request>) {
    let t = f.workspace(50).await;
    let second = f.create_draft(t.workspace).await;
    let version = f.publish(t.workspace, second).await.id;
    let other_definition = TestWorkspace {
        definition: second,
        version,
        ..t
    };
    let other = f.workspace(50).await;
    for workspace in [&t, &other, &other_definition, &t] {
        f.enqueue_completed(workspace).await;
        f.enqueue_failed(workspace).await;
        f.enqueue_running(workspace).await;
        f.enqueue_claimed(workspace).await;
        let cancelled = f.enqueue(workspace, 1).await[0];
        f.cancel(workspace.workspace, cancelled).await;
    }
    for workspace in [&t, &other, &other_definition] {
        f.enqueue(workspace, 3).await;
    }
    let mut all = Vec::new();
    for request in f.list_all(&RequestFilter::default(), 1_000).await {
        all.push(f.request(request.workspace, request.id).await);
    }
    (t, other, all)
}

/// Without a filter the list has every request of every workspace as `request_get` returns it, newest first.
pub async fn lists_every_request_newest_first(f: Fixture) {
    let (_, _, all) = mixed(&f).await;
    assert_eq!(all.len(), 29);
    let ids: Vec<RequestId> = all.iter().map(|r| r.id).collect();
    assert!(ids.is_sorted_by(|a, b| a > b));
    let listed = f.list_all(&RequestFilter::default(), 1_000).await;
    assert_eq!(listed, all);
}

/// Every filter, alone and combined, returns exactly the matching requests, in pages of any size.
pub async fn filters_and_pages_miss_and_repeat_nothing(f: Fixture) {
    let (t, other, all) = mixed(&f).await;
    let workspaces = [None, Some(t.workspace), Some(other.workspace)];
    let definitions = [None, Some(t.definition), Some(other.definition)];
    let statuses = RequestStatus::ALL.map(Some).into_iter().chain([None]);
    let reasons = [
        None,
        Some(FailureReason::Cancelled),
        Some(FailureReason::ExecutionFailed),
        Some(FailureReason::TimedOut),
    ];
    for status in statuses {
        for (workspace, definition) in pairs(&workspaces, &definitions) {
            for reason in reasons {
                let filter = RequestFilter {
                    workspace,
                    status,
                    definition,
                    reason,
                };
                let expected: Vec<&Request> = all.iter().filter(|r| passes(&filter, r)).collect();
                let limit = if reason.is_none() { 3 } else { 100 };
                let listed = f.list_all(&filter, limit).await;
                assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{filter:?}");
            }
        }
    }
}

fn pairs(
    workspaces: &[Option<WorkspaceId>],
    definitions: &[Option<DefinitionId>],
) -> Vec<(Option<WorkspaceId>, Option<DefinitionId>)> {
    let all = workspaces
        .iter()
        .flat_map(|w| definitions.iter().map(move |d| (*w, *d)));
    all.collect()
}

fn passes(filter: &RequestFilter, request: &Request) -> bool {
    filter.workspace.is_none_or(|w| w == request.workspace)
        && filter.status.is_none_or(|s| s == known(&request.status))
        && filter.definition.is_none_or(|d| d == request.definition)
        && filter
            .reason
            .is_none_or(|r| request.failure_reason == Some(r.into()))
}

/// A page starts after its key, also if the key's row is deleted or of another workspace.
pub async fn page_starts_after_its_key(f: Fixture) {
    let t = f.workspace(1).await;
    let before = f.enqueue(&t, 2).await;
    let key: RequestId = leasehold_store::fresh_id();
    f.enqueue(&t, 2).await;
    let filter = RequestFilter {
        workspace: Some(t.workspace),
        ..RequestFilter::default()
    };
    let listed = ok(f.store.request_list(&filter, Page::after(key, 10)).await);
    let ids: Vec<RequestId> = listed.iter().map(|r| r.id).collect();
    assert_eq!(ids, [before[1], before[0]]);
}

/// An unknown request is none.
pub async fn unknown_request_is_none(f: Fixture) {
    let t = f.workspace(1).await;
    let unknown = leasehold_store::fresh_id();
    assert_eq!(ok(f.store.request_get(t.workspace, unknown).await), None);
}

/// A request of any workspace, deleted ones included, is found by its id alone and equals the result of `request_get`.
pub async fn is_found_by_id_in_any_workspace(f: Fixture) {
    let (t, other, all) = mixed(&f).await;
    assert!(ok(f
        .store
        .workspace_delete(other.workspace, &leasehold_store::Actor::Local)
        .await));
    let workspaces: Vec<WorkspaceId> = all.iter().map(|r| r.workspace).collect();
    assert!(workspaces.contains(&t.workspace) && workspaces.contains(&other.workspace));
    for request in all {
        let found = ok(f.store.request_find(request.id).await);
        assert_eq!(found, Some(request));
    }
    let unknown = leasehold_store::fresh_id();
    assert_eq!(ok(f.store.request_find(unknown).await), None);
}
