//! The client's change stream: it resumes after a lost connection without gaps or repetitions.

use crate::counting_server::CountingServer;
use leasehold_client::Client;
use leasehold_client::api::Code;
use leasehold_client::api::request::NewRequest;
use leasehold_core::{DefinitionId, Plan, RequestId, RequestStatus, VersionBody, WorkspaceId};
use leasehold_store::definition::{NewDefinition, NewVersion, Publisher};
use leasehold_store::fresh_id;
use leasehold_store::workspace::NewWorkspace;
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use serde_json::json;

on_both!(
    changes_arrive_as_they_happen,
    broken_stream_resumes_at_its_cursor,
    rejected_stream_returns_the_problem,
);

async fn workspace_and_definition(server: &CountingServer) -> (WorkspaceId, DefinitionId) {
    let workspace = fresh_id();
    let new = NewWorkspace {
        id: workspace,
        name: "acme".to_owned(),
        plan: Plan::Free,
        limit_override: None,
    };
    server
        .store
        .workspace_create(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    let definition = fresh_id();
    let new = NewDefinition {
        id: definition,
        workspace,
        name: "order".to_owned(),
    };
    server
        .store
        .definition_create(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
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
        publisher: Publisher::Administrator,
    };
    server
        .store
        .version_publish(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    (workspace, definition)
}

async fn enqueue(
    server: &CountingServer,
    (workspace, definition): (WorkspaceId, DefinitionId),
) -> RequestId {
    let new = NewRequest::new(definition, json!({}));
    server
        .client
        .request_enqueue(workspace, &new)
        .await
        .unwrap()
        .id
}

async fn changes_arrive_as_they_happen(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let ids = workspace_and_definition(&server).await;
    let before = enqueue(&server, ids).await;
    let mut stream = server.client.changes(Some(ids.0));
    stream.begin().await.unwrap();
    let after = enqueue(&server, ids).await;
    let change = stream.next().await.unwrap();
    assert_eq!(
        (change.event.request, change.event.to),
        (after, RequestStatus::Pending.into())
    );
    let mut all = server.client.changes(None).from_oldest();
    assert_eq!(all.next().await.unwrap().event.request, before);
    assert_eq!(all.next().await.unwrap().event.request, after);
    let mut later = server.client.changes(Some(ids.0)).after(change.cursor);
    let last = enqueue(&server, ids).await;
    assert_eq!(later.next().await.unwrap().event.request, last);
}

async fn broken_stream_resumes_at_its_cursor(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let ids = workspace_and_definition(&server).await;
    let proxy = FaultProxy::to(&server.address.to_string()).await;
    let client = Client::new(&format!("http://{}", proxy.address()), &server.admin).unwrap();
    let mut stream = client.changes(None);
    stream.begin().await.unwrap();
    let (mut enqueued, mut seen) = (Vec::new(), Vec::new());
    for round in 0..6 {
        proxy.cut();
        for _ in 0..3 {
            enqueued.push(enqueue(&server, ids).await);
        }
        // Sometimes leaves a change unread.
        while seen.len() + round % 2 < enqueued.len() {
            seen.push(stream.next().await.unwrap().event.request);
        }
    }
    while seen.len() < enqueued.len() {
        seen.push(stream.next().await.unwrap().event.request);
    }
    assert_eq!(seen, enqueued);
}

async fn rejected_stream_returns_the_problem(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let unknown = server.client.changes(None).after("nowhere").next().await;
    assert_eq!(unknown.unwrap_err().code(), Some(Code::InvalidParameter));
    let worker = server.worker_client().await;
    let forbidden = worker.changes(None).next().await;
    assert_eq!(forbidden.unwrap_err().code(), Some(Code::Forbidden));
}
