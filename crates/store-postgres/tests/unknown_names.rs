//! Rows with statuses and reasons that only a newer program knows: they are read as they are, and nothing acts on them.
#![allow(clippy::unwrap_used)]

use crate::support;
use leasehold_store::change::ChangeStart;
use leasehold_store::execution::ExecutionFilter;
use leasehold_store::request::{ClaimRef, Dispatched, RequestFilter};
use leasehold_store::{Page, Store};
use leasehold_store_conformance::{Fixture, OWNER, clock};
use std::sync::Arc;

#[tokio::test]
async fn unknown_statuses_and_reasons_are_listed_and_left_alone() {
    let (clock, database) = (clock(), support::database().await);
    let client = support::raw::connect(&database).await;
    let store: Arc<dyn Store> = Arc::new(support::store(&database, clock.clone()));
    let f = Fixture::new(store.clone(), clock);
    let t = f.workspace(5).await;
    let newer = f.enqueue_failed(&t).await;
    for sql in [
        include_str!("sql/names_allow.sql"),
        include_str!("sql/names_allow_execution.sql"),
        include_str!("sql/drift_triggers_off.sql"),
    ] {
        client.batch_execute(sql).await.unwrap();
    }
    let set = include_str!("sql/names_set.sql");
    assert_eq!(client.execute(set, &[&newer.id.0]).await.unwrap(), 1);
    let other = f.enqueue_claimed(&t).await;

    let request = f.request(t.workspace, newer.id).await;
    assert_eq!(request.status.to_string(), "EXPIRED");
    assert_eq!(
        request.failure_reason.clone().unwrap().to_string(),
        "too_old"
    );
    let page = Page::first(10);
    let filter = RequestFilter {
        workspace: Some(t.workspace),
        ..RequestFilter::default()
    };
    let listed = store.request_list(&filter, page).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.contains(&request));
    let timeline = f.timeline(t.workspace, newer.id).await;
    assert_eq!(timeline.last().unwrap().to.to_string(), "EXPIRED");
    let changes = store.change_list(&ChangeStart::Oldest, None, 100).await;
    let changes = changes.unwrap().changes;
    assert!(
        changes
            .iter()
            .any(|change| Some(&change.event) == timeline.last())
    );
    let executions = ExecutionFilter {
        workspace: t.workspace,
        status: None,
        definition: None,
    };
    let executions = store
        .execution_list(&executions, Page::first(10))
        .await
        .unwrap();
    let statuses = executions.iter().map(|one| one.status.to_string());
    assert_eq!(statuses.collect::<Vec<_>>(), ["RUNNING", "PARKED"]);

    // Operations on several requests leave it alone and do their work on the others.
    let claims = [ClaimRef::from(&newer), ClaimRef::from(&other)];
    let dispatched = store.request_dispatched(OWNER, &claims).await.unwrap();
    assert_eq!(dispatched, [Dispatched::LeaseLost, Dispatched::Dispatched]);
    assert_eq!(f.claim(10).await.requests, []);
    store.drift_check(Page::first(10)).await.unwrap();
    assert_eq!(f.request(t.workspace, newer.id).await, request);
}
