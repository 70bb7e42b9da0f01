//! Whose turn it is, read from the log of what was committed and not from the claims' answers, which do not say how
//! admissions and rejections took turns.
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

/// Every turn taken so far, in order: whose, and what the request became.
async fn turns(f: &Fixture) -> Vec<(WorkspaceId, RequestStatus)> {
    let page = f.store.change_list(&ChangeStart::Oldest, None, 1_000).await;
    let events = page.unwrap().changes.into_iter().map(|c| c.event);
    events
        .filter(|event| event.from == Some(RequestStatus::Pending))
        .map(|event| (event.workspace, event.to))
        .collect()
}

/// The workspace goes on with another definition; what waits of the old one will be rejected.
async fn replace_definition(f: &Fixture, site: &TestWorkspace) -> TestWorkspace {
    let gone = f.store.definition_delete(site.workspace, site.definition);
    assert!(gone.await.unwrap());
    let definition = f.draft(site.workspace).await;
    let version = f.publish(site.workspace, definition).await.id;
    TestWorkspace {
        workspace: site.workspace,
        definition,
        version,
    }
}

#[tokio::test]
async fn a_rejection_is_a_turn_and_turns_alternate_across_claims() {
    let f = fixture().await;
    let (one, two) = (f.site(5).await, f.site(5).await);
    f.enqueue(&one, 2).await;
    f.enqueue(&two, 3).await;
    let one = replace_definition(&f, &one).await;
    let first = f.claim(4).await;
    assert_eq!((first.requests.len(), first.rejected.len()), (2, 2));
    let asked = f.enqueue(&one, 1).await;
    // The last turn was the second workspace's, so this one is the first's, and then the second's again.
    let second = f.claim(1).await;
    assert_eq!(second.requests[0].id, asked[0]);
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
async fn a_thousand_that_can_only_be_rejected_do_not_go_before_a_neighbour() {
    let f = fixture().await;
    let (one, two) = (f.site(5).await, f.site(5).await);
    f.enqueue(&one, 1_000).await;
    replace_definition(&f, &one).await;
    let asked = f.enqueue(&two, 2).await;
    let claimed = f.claim(4).await;
    let admitted: Vec<_> = claimed.requests.iter().map(|r| r.id).collect();
    assert_eq!(admitted, asked);
    assert_eq!(claimed.rejected.len(), 2);
}
