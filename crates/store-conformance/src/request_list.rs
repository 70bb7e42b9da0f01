//! What a store promises about lists of requests: complete, newest first, without repeats, filtered.

use crate::Fixture;
use crate::factory::{TestWorkspace, ok};
use leasehold_core::{DefinitionId, FailureReason, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::Page;
use leasehold_store::request::{Request, RequestFilter};

/// Two workspaces, one with two definitions, and requests in every status.
async fn mixed(f: &Fixture) -> (TestWorkspace, TestWorkspace, Vec<Request>) {
    let t = f.site(50).await;
    let second = f.draft(t.workspace).await;
    let version = f.publish(t.workspace, second).await.id;
    let other_definition = TestWorkspace {
        definition: second,
        version,
        ..t
    };
    let other = f.site(50).await;
    for site in [&t, &other, &other_definition, &t] {
        f.completed(site).await;
        f.failed(site).await;
        f.running(site).await;
        f.claimed(site).await;
        let cancelled = f.enqueue(site, 1).await[0];
        f.cancel(site.workspace, cancelled).await;
    }
    for site in [&t, &other, &other_definition] {
        f.enqueue(site, 3).await;
    }
    let mut all = Vec::new();
    for request in f.list_all(&RequestFilter::default(), 1_000).await {
        all.push(f.request(request.workspace, request.id).await);
    }
    (t, other, all)
}

/// A list without a filter has every request of every workspace, newest first, each as `request_get` shows it.
pub async fn has_everything_newest_first(f: Fixture) {
    let (_, _, all) = mixed(&f).await;
    assert_eq!(all.len(), 29);
    let ids: Vec<RequestId> = all.iter().map(|r| r.id).collect();
    assert!(ids.is_sorted_by(|a, b| a > b));
    let listed = f.list_all(&RequestFilter::default(), 1_000).await;
    assert_eq!(listed, all);
}

/// Every filter, alone and with others, read in pages of any size, has exactly what passes it.
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
        && filter.status.is_none_or(|s| s == request.status)
        && filter.definition.is_none_or(|d| d == request.definition)
        && filter
            .reason
            .is_none_or(|r| Some(r) == request.failure_reason)
}

/// A page goes on after its key, also when the row of the key is gone or of another workspace.
pub async fn a_page_begins_after_its_key(f: Fixture) {
    let t = f.site(1).await;
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

/// A request that was not made is not there.
pub async fn an_unknown_request_is_none(f: Fixture) {
    let t = f.site(1).await;
    let unknown = leasehold_store::fresh_id();
    assert_eq!(ok(f.store.request_get(t.workspace, unknown).await), None);
}

/// A request is found by its id alone, whichever workspace it is of, also when that is deleted, and is the one `request_get` shows.
pub async fn one_of_any_workspace_is_found_by_its_id(f: Fixture) {
    let (t, other, all) = mixed(&f).await;
    assert!(ok(f.store.workspace_delete(other.workspace).await));
    let workspaces: Vec<WorkspaceId> = all.iter().map(|r| r.workspace).collect();
    assert!(workspaces.contains(&t.workspace) && workspaces.contains(&other.workspace));
    for request in all {
        let found = ok(f.store.request_find(request.id).await);
        assert_eq!(found, Some(request));
    }
    let unknown = leasehold_store::fresh_id();
    assert_eq!(ok(f.store.request_find(unknown).await), None);
}
