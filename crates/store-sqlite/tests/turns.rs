//! Round-robin order, read from the event log: the answers of claims do not show how admissions and rejections alternate.
#![allow(clippy::unwrap_used)]

use leasehold_core::{RequestStatus, WorkspaceId};
use leasehold_store::Clock;
use leasehold_store::SchemaStore;
use leasehold_store::change::ChangeStart;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use std::sync::Arc;

async fn fixture() -> Fixture {
    let clock = clock();
    let options = SqliteOptions {
        clock: Clock::Manual(clock.clone()),
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open_in_memory(&options).unwrap();
    store.schema_migrate().await.unwrap();
    Fixture::new(Arc::new(store), clock)
}

/// Lists all turns in order: the workspace, and the request's new status.
async fn turns(f: &Fixture) -> Vec<(WorkspaceId, RequestStatus)> {
    let page = f.store.change_list(&ChangeStart::Oldest, None, 1_000).await;
    let events = page.unwrap().changes.into_iter().map(|c| c.event);
    events
        .filter(|event| event.from == Some(RequestStatus::Pending.into()))
        .map(|event| (event.workspace, event.to.known().unwrap()))
        .collect()
}

/// Replaces the workspace's definition, so that waiting requests of the old one will be rejected.
async fn replace_definition(f: &Fixture, workspace: &TestWorkspace) -> TestWorkspace {
    let gone = f.store.definition_delete(
        workspace.workspace,
        workspace.definition,
        &leasehold_store::Actor::Local,
    );
    assert!(gone.await.unwrap());
    let definition = f.create_draft(workspace.workspace).await;
    let version = f.publish(workspace.workspace, definition).await.id;
    TestWorkspace {
        workspace: workspace.workspace,
        definition,
        version,
    }
}

#[tokio::test]
async fn rejection_uses_a_turn_and_turns_alternate_across_claims() {
    let f = fixture().await;
    let (one, two) = (f.workspace(5).await, f.workspace(5).await);
    f.enqueue(&one, 2).await;
    f.enqueue(&two, 3).await;
    let one = replace_definition(&f, &one).await;
    let first = f.claim(4).await;
    assert_eq!((first.requests.len(), first.rejected.len()), (2, 2));
    let requests = f.enqueue(&one, 1).await;
    // The second workspace had the last turn, so the first is next, then the second again.
    let second = f.claim(1).await;
    assert_eq!(second.requests[0].id, requests[0]);
    f.claim(1).await;
    let (rejected, admitted) = (RequestStatus::Failed, RequestStatus::Claimed);
    assert_eq!(
        turns(&f).await,
        [
            (one.workspace, rejected),
            (two.workspace, admitted),
            (one.workspace, rejected),
            (two.workspace, admitted),
            (one.workspace, admitted),
            (two.workspace, admitted),
        ]
    );
}

#[tokio::test]
async fn many_rejections_do_not_delay_another_workspace() {
    let f = fixture().await;
    let (one, two) = (f.workspace(5).await, f.workspace(5).await);
    f.enqueue(&one, 1_000).await;
    replace_definition(&f, &one).await;
    let requests = f.enqueue(&two, 2).await;
    let claimed = f.claim(4).await;
    let admitted: Vec<_> = claimed.requests.iter().map(|r| r.id).collect();
    assert_eq!(admitted, requests);
    assert_eq!(claimed.rejected.len(), 2);
}
