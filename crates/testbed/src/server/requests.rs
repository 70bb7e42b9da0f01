//! Workspaces of a server with their keys, and helpers that bring a request to a status: enqueued, claimed, running, ended.

use super::TestServer;
use crate::definition::{binding, create_definition, create_workspace, publish_version};
use crate::workspace::TestWorkspace;
use leasehold_core::key::KeyScope;
use leasehold_core::{DefinitionId, ExecutionEnd, ExecutionId, Plan, VersionId, WorkspaceId};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{
    Claim, ClaimOutcome, ClaimRef, ClaimedRequest, Release, ReleaseKind,
};
use serde_json::{Value, json};
use std::ops::Deref;
use std::time::Duration;

/// The owner of the claims.
const DISPATCHER: &str = "dispatcher";
const LEASE: Duration = Duration::from_secs(60);

/// A [`TestWorkspace`] and the key of its workspace.
#[derive(Clone, Debug)]
pub struct KeyedWorkspace {
    /// The workspace and its definition `order`; accessible through [`Deref`].
    pub base: TestWorkspace,
    /// A key of the workspace.
    pub key: String,
}

impl Deref for KeyedWorkspace {
    type Target = TestWorkspace;

    fn deref(&self) -> &TestWorkspace {
        &self.base
    }
}

impl KeyedWorkspace {
    /// The JSON body of an enqueue call.
    pub fn order(&self) -> Value {
        json!({"definition": self.definition, "params": {"n": 1}})
    }
}

impl TestServer {
    /// Creates a workspace with `limit` slots, the published definition `order` and a key.
    pub async fn workspace(&self, limit: u32) -> KeyedWorkspace {
        let workspace = create_workspace(&*self.store, Plan::Free, Some(limit))
            .await
            .id;
        let definition = create_definition(&*self.store, workspace, "order").await;
        let version = self.publish(workspace, definition, None).await;
        KeyedWorkspace {
            base: TestWorkspace {
                workspace,
                definition,
                version,
            },
            key: self.key(KeyScope::Workspace(workspace)).await,
        }
    }

    /// Publishes a version of [`binding`] with this params schema.
    pub async fn publish(
        &self,
        workspace: WorkspaceId,
        definition: DefinitionId,
        params_schema: Option<Value>,
    ) -> VersionId {
        let body = binding();
        publish_version(
            &*self.store,
            workspace,
            definition,
            body,
            params_schema,
            None,
        )
        .await
        .id
    }

    /// Publishes a version with this graph through the API, as an administrator: workspaces may use the same queues.
    pub async fn publish_graph(&self, workspace: &KeyedWorkspace, graph: Value) {
        let versions = format!("/definitions/{}/versions", workspace.definition);
        let version = json!({ "body": { "graph": graph } });
        self.post(&workspace.path(&versions), &self.admin, version)
            .await
            .expect(201);
    }

    /// Enqueues a request through the API and returns its id.
    pub async fn enqueue(&self, workspace: &KeyedWorkspace) -> String {
        self.enqueue_as(workspace, json!({})).await
    }

    /// Enqueues a request with additional fields.
    pub async fn enqueue_as(&self, workspace: &KeyedWorkspace, fields: Value) -> String {
        let mut body = workspace.order();
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let path = workspace.path("/requests");
        let created = self.post(&path, &workspace.key, body).await.expect(201);
        created["id"].as_str().unwrap().to_owned()
    }

    /// Claims up to `batch` requests.
    pub async fn claim(&self, batch: u32) -> Vec<ClaimedRequest> {
        let claim = Claim {
            owner: DISPATCHER.to_owned(),
            batch,
            kept_max: None,
            lease: LEASE,
            lock: None,
        };
        match self.store.request_claim(&claim).await.unwrap() {
            ClaimOutcome::Claimed(claimed) => claimed.requests,
            ClaimOutcome::LockLost => panic!("the claim has no lock"),
        }
    }

    /// Enqueues a request and claims it.
    pub async fn enqueue_claimed(&self, workspace: &KeyedWorkspace) -> ClaimedRequest {
        let id = self.enqueue(workspace).await;
        let claimed = self.claim(100).await;
        let own = claimed.into_iter().find(|c| c.id.to_string() == id);
        own.expect("the request was not claimed")
    }

    /// Enqueues a request, claims it and marks it dispatched.
    pub async fn enqueue_running(&self, workspace: &KeyedWorkspace) -> ClaimedRequest {
        let claimed = self.enqueue_claimed(workspace).await;
        let claims = [ClaimRef::from(&claimed)];
        let dispatched = self.store.request_dispatched(DISPATCHER, &claims).await;
        dispatched.unwrap();
        claimed
    }

    /// Enqueues a request and ends its execution.
    pub async fn enqueue_ended(
        &self,
        workspace: &KeyedWorkspace,
        end: ExecutionEnd,
    ) -> ClaimedRequest {
        let running = self.enqueue_running(workspace).await;
        self.finish(running.execution, end).await;
        running
    }

    /// Ends an execution.
    pub async fn finish(&self, execution: ExecutionId, end: ExecutionEnd) {
        let finish = ExecutionFinish {
            execution,
            end,
            error: None,
        };
        let finished = self.store.execution_finish("reconciler", &[finish]).await;
        finished.unwrap();
    }

    /// Releases a claim with a delay in seconds.
    pub async fn release(&self, claimed: &ClaimedRequest, kind: ReleaseKind, seconds: u64) {
        let release = Release {
            claim: claimed.into(),
            kind,
            delay: Duration::from_secs(seconds),
            error: Some("rejected by the engine".to_owned()),
        };
        let released = self.store.request_release(DISPATCHER, &[release]).await;
        released.unwrap();
    }
}
