//! Round trips of every call about definitions, requests, dead letters and executions.

use crate::counting_server::CountingServer;
use leasehold_client::api::Code;
use leasehold_client::api::definition::{Definition, NewDefinition, NewVersion};
use leasehold_client::api::request::{
    CancelOptions, CancelState, NewRequest, NewRequests, RedriveMany,
};
use leasehold_client::api::why::Reason;
use leasehold_client::api::workspace::{NewWorkspace, Workspace};
use leasehold_client::{Client, RequestFilter};
use leasehold_core::{ExecutionStatus, FailureReason, Plan, RequestStatus, VersionBody};
use leasehold_store::request::Claim;
use leasehold_testbed::BackendKind;
use serde_json::json;
use std::time::Duration;

on_both!(
    definition_and_version_calls_round_trip,
    request_calls_round_trip,
    failed_requests_are_redriven,
    executions_are_listed_and_read,
);

async fn workspace(client: &Client) -> Workspace {
    let new = NewWorkspace {
        name: "acme".to_owned(),
        plan: Plan::Free,
        max_concurrent_executions: None,
    };
    client.workspace_create(&new).await.unwrap()
}

async fn workspace_and_definition(client: &Client) -> (Workspace, Definition) {
    let workspace = workspace(client).await;
    let new = NewDefinition {
        name: "order".to_owned(),
    };
    let definition = client.definition_create(workspace.id, &new).await.unwrap();
    let version = NewVersion {
        body: VersionBody::Binding {
            workflow_type: "Order".to_owned(),
            task_queue: "orders".to_owned(),
        },
        params_schema: None,
        execution_timeout_ms: None,
    };
    let published = client.version_publish(workspace.id, definition.id, &version);
    published.await.unwrap();
    (workspace, definition)
}

async fn definition_and_version_calls_round_trip(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = &server.client;
    let (workspace, created) = workspace_and_definition(client).await;
    let versions = client
        .version_list(workspace.id, created.id)
        .all()
        .await
        .unwrap();
    assert_eq!((versions.len(), versions[0].number), (1, 1));
    let shown = client
        .version_get(workspace.id, versions[0].id)
        .await
        .unwrap();
    assert_eq!(shown, versions[0]);
    let definition = client
        .definition_get(workspace.id, created.id)
        .await
        .unwrap();
    assert_eq!(definition.current_version, Some(versions[0].id));
    let all = client.definition_list(workspace.id).all().await.unwrap();
    let find = async |name| client.definition_find(workspace.id, name).await.unwrap();
    assert_eq!(find("order").await.as_ref(), Some(&definition));
    assert_eq!(find("parcel").await, None);
    assert_eq!(all, [definition]);
    client
        .definition_delete(workspace.id, created.id)
        .await
        .unwrap();
    let gone = client
        .definition_get(workspace.id, created.id)
        .await
        .unwrap_err();
    assert_eq!(gone.code(), Some(Code::NotFound));
}

async fn request_calls_round_trip(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = &server.client;
    let (workspace, definition) = workspace_and_definition(client).await;
    let mut new = NewRequest::new(definition.id, json!({"n": 1}));
    new.idempotency_key = Some("one".to_owned());
    let first = client.request_enqueue(workspace.id, &new).await.unwrap();
    let second = client.request_enqueue(workspace.id, &new).await.unwrap();
    assert_eq!(
        (second.id, first.inserted, second.inserted),
        (first.id, true, false)
    );
    let more = NewRequests {
        requests: vec![NewRequest::new(definition.id, json!({})); 2],
    };
    let more = client
        .request_enqueue_many(workspace.id, &more)
        .await
        .unwrap();
    assert_eq!(more.len(), 2);
    let request = client.request_get(workspace.id, first.id).await.unwrap();
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!(request.params.as_str(), r#"{"n":1}"#);
    assert_eq!(client.request_find(first.id).await.unwrap(), request);
    let unknown = client.request_find(leasehold_store::fresh_id()).await;
    assert_eq!(unknown.unwrap_err().code(), Some(Code::NotFound));
    let timeline = client
        .request_timeline(workspace.id, first.id)
        .await
        .unwrap();
    assert_eq!(timeline.events.len(), 1);
    assert_eq!(timeline.events[0].to, RequestStatus::Pending);
    assert!(!timeline.beginning_pruned);
    let why = client.request_why(workspace.id, first.id).await.unwrap();
    assert_eq!(why.reason, Reason::NoEngine);

    let cancelled = client
        .request_cancel(workspace.id, first.id, CancelOptions::default())
        .await;
    assert_eq!(cancelled.unwrap().state, CancelState::Cancelled);
    let again = client
        .request_cancel(workspace.id, first.id, CancelOptions::default())
        .await;
    assert_eq!(again.unwrap_err().code(), Some(Code::AlreadyFinished));
    let filter = RequestFilter {
        status: Some(RequestStatus::Pending),
        definition: Some(definition.id),
        reason: None,
    };
    let pending = client
        .request_list(workspace.id, filter)
        .all()
        .await
        .unwrap();
    assert_eq!(pending.len(), 2);
    let filter = RequestFilter {
        reason: Some(FailureReason::Cancelled),
        ..RequestFilter::default()
    };
    let failed = client.request_list_all(filter).all().await.unwrap();
    assert_eq!((failed.len(), failed[0].id), (1, first.id));
}

async fn failed_requests_are_redriven(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = &server.client;
    let (workspace, definition) = workspace_and_definition(client).await;
    let new = NewRequest::new(definition.id, json!({}));
    let mut failed = Vec::new();
    for _ in 0..3 {
        let id = client.request_enqueue(workspace.id, &new).await.unwrap().id;
        let cancelled = client.request_cancel(workspace.id, id, CancelOptions::default());
        cancelled.await.unwrap();
        failed.push(id);
    }
    let dead = client.dead_letter_list(workspace.id, Some(FailureReason::Cancelled), None);
    assert_eq!(dead.all().await.unwrap().len(), 3);
    let none = client.dead_letter_list(workspace.id, None, Some(leasehold_store::fresh_id()));
    assert_eq!(none.all().await.unwrap(), []);
    let one = client
        .request_redrive(workspace.id, failed[0])
        .await
        .unwrap();
    assert_eq!(one.failed, failed[0]);
    let again = client
        .request_redrive(workspace.id, failed[0])
        .await
        .unwrap_err();
    assert_eq!(again.code(), Some(Code::AlreadyRedriven));
    let which = RedriveMany {
        reason: Some(FailureReason::Cancelled),
        definition: Some(definition.id),
        limit: None,
    };
    let rest = client
        .dead_letter_redrive(workspace.id, which)
        .await
        .unwrap();
    let rest: Vec<_> = rest.iter().map(|redriven| redriven.failed).collect();
    assert_eq!(rest, failed[1..]);
}

async fn executions_are_listed_and_read(on: BackendKind) {
    let server = CountingServer::new(on).await;
    let client = &server.client;
    let (workspace, definition) = workspace_and_definition(client).await;
    let new = NewRequest::new(definition.id, json!({}));
    let request = client.request_enqueue(workspace.id, &new).await.unwrap();
    let claim = Claim {
        owner: "dispatcher".to_owned(),
        batch: 10,
        kept_max: None,
        lease: Duration::from_secs(60),
        lock: None,
    };
    server.store.request_claim(&claim).await.unwrap();
    let running = client.execution_list(workspace.id, Some(ExecutionStatus::Running));
    let running = running.all().await.unwrap();
    assert_eq!((running.len(), running[0].request), (1, request.id));
    let shown = client
        .execution_get(workspace.id, running[0].id)
        .await
        .unwrap();
    assert_eq!(shown, running[0]);
    assert_eq!(client.execution_find(shown.id).await.unwrap(), shown);
    let unknown = client.execution_find(leasehold_store::fresh_id()).await;
    assert_eq!(unknown.unwrap_err().code(), Some(Code::NotFound));
    // The version is a binding, which has no nodes.
    let graph = client
        .execution_graph(workspace.id, shown.id)
        .await
        .unwrap();
    assert_eq!((graph.version, graph.nodes), (shown.version, Vec::new()));
    let node = client.execution_node(workspace.id, shown.id, "a").await;
    assert_eq!(node.unwrap_err().code(), Some(Code::NotFound));
    client.execution_ended(shown.id).await.unwrap();
}
