//! The stream of changes in the client: it goes on by itself where it was, and misses and repeats nothing.

use crate::counting_server::CountingServer;
use leasehold_client::Client;
use leasehold_client::api::Code;
use leasehold_client::api::request::NewRequest;
use leasehold_core::{DefinitionId, Plan, RequestId, RequestStatus, VersionBody, WorkspaceId};
use leasehold_store::definition::{NewDefinition, NewVersion};
use leasehold_store::fresh_id;
use leasehold_store::workspace::NewWorkspace;
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use serde_json::json;

on_both!(
    changes_come_as_they_happen,
    a_stream_that_breaks_goes_on_where_it_was,
    a_stream_that_is_refused_says_why,
);

async fn site(ground: &CountingServer) -> (WorkspaceId, DefinitionId) {
    let workspace = fresh_id();
    let new = NewWorkspace {
        id: workspace,
        name: "acme".to_owned(),
        plan: Plan::Free,
        limit_override: None,
    };
    ground.store.workspace_create(&new).await.unwrap();
    let definition = fresh_id();
    let new = NewDefinition {
        id: definition,
        workspace,
        name: "order".to_owned(),
    };
    ground.store.definition_create(&new).await.unwrap();
    let new = NewVersion {
        id: fresh_id(),
        workspace,
        definition,
        body: VersionBody::Binding {
            workflow_type: "Order".to_owned(),
            task_queue: "orders".to_owned(),
        },
        params_schema: None,
        execution_timeout: None,
    };
    ground.store.version_publish(&new).await.unwrap();
    (workspace, definition)
}

async fn enqueue(
    ground: &CountingServer,
    (workspace, definition): (WorkspaceId, DefinitionId),
) -> RequestId {
    let new = NewRequest::new(definition, json!({}));
    ground
        .client
        .request_enqueue(workspace, &new)
        .await
        .unwrap()
        .id
}

async fn changes_come_as_they_happen(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let site = site(&ground).await;
    let before = enqueue(&ground, site).await;
    let mut stream = ground.client.changes(Some(site.0));
    stream.begin().await.unwrap();
    let after = enqueue(&ground, site).await;
    let change = stream.next().await.unwrap();
    assert_eq!(
        (change.event.request, change.event.to),
        (after, RequestStatus::Pending)
    );
    let mut all = ground.client.changes(None).from_oldest();
    assert_eq!(all.next().await.unwrap().event.request, before);
    assert_eq!(all.next().await.unwrap().event.request, after);
    let mut later = ground.client.changes(None).after(change.cursor);
    let last = enqueue(&ground, site).await;
    assert_eq!(later.next().await.unwrap().event.request, last);
}

async fn a_stream_that_breaks_goes_on_where_it_was(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let site = site(&ground).await;
    let proxy = FaultProxy::to(&ground.address.to_string()).await;
    let client = Client::new(&format!("http://{}", proxy.address()), &ground.admin).unwrap();
    let mut stream = client.changes(None);
    stream.begin().await.unwrap();
    let (mut put, mut seen) = (Vec::new(), Vec::new());
    for round in 0..6 {
        proxy.cut();
        for _ in 0..3 {
            put.push(enqueue(&ground, site).await);
        }
        // Not always to the end of what there is.
        while seen.len() + round % 2 < put.len() {
            seen.push(stream.next().await.unwrap().event.request);
        }
    }
    while seen.len() < put.len() {
        seen.push(stream.next().await.unwrap().event.request);
    }
    assert_eq!(seen, put);
}

async fn a_stream_that_is_refused_says_why(on: BackendKind) {
    let ground = CountingServer::new(on).await;
    let unknown = ground.client.changes(None).after("nowhere").next().await;
    assert_eq!(unknown.unwrap_err().code(), Some(Code::InvalidParameter));
    let worker = ground.worker_client().await;
    let forbidden = worker.changes(None).next().await;
    assert_eq!(forbidden.unwrap_err().code(), Some(Code::Forbidden));
}
