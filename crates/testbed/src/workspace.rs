//! A workspace with a published definition, and helpers to enqueue, read and cancel through a store. Knows no database.

use crate::definition::{binding, create_definition, create_workspace, publish_version};
use leasehold_core::{DefinitionId, Plan, RequestId, VersionBody, VersionId, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::request::{Cancel, Cancelled, Counts, Enqueue, Enqueued, NewRequest, Request};
use leasehold_store::workspace::{SlotUse, Workspace, WorkspaceChange};
use leasehold_store::{Store, fresh_id};
use serde_json::{Value, json};
use std::time::Duration;

/// The author of enqueues and cancellations.
pub const USER: &str = "user";

/// A workspace with one published definition. Its methods panic when the store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestWorkspace {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its definition.
    pub definition: DefinitionId,
    /// The definition's current version.
    pub version: VersionId,
}

/// Options of a [`TestWorkspace`].
#[derive(Clone, Debug)]
pub struct WorkspaceOptions {
    /// The workspace's plan.
    pub plan: Plan,
    /// The limit override; none for the limit of the plan.
    pub limit: Option<u32>,
    /// The body of the definition's version.
    pub body: VersionBody,
    /// The timeout of an execution.
    pub execution_timeout: Option<Duration>,
}

impl Default for WorkspaceOptions {
    fn default() -> Self {
        Self {
            plan: Plan::Free,
            limit: None,
            body: binding(),
            execution_timeout: None,
        }
    }
}

impl TestWorkspace {
    /// Creates a workspace with `limit` slots and a definition of [`binding`].
    pub async fn new(store: &dyn Store, limit: u32) -> Self {
        let options = WorkspaceOptions {
            limit: Some(limit),
            ..WorkspaceOptions::default()
        };
        Self::with(store, options).await
    }

    /// Creates a workspace with these options.
    pub async fn with(store: &dyn Store, options: WorkspaceOptions) -> Self {
        let workspace = create_workspace(store, options.plan, options.limit).await;
        Self::define(store, workspace.id, options.body, options.execution_timeout).await
    }

    /// Creates a definition with one version in an existing workspace.
    pub async fn define(
        store: &dyn Store,
        workspace: WorkspaceId,
        body: VersionBody,
        execution_timeout: Option<Duration>,
    ) -> Self {
        let name = format!("definition {}", fresh_id::<DefinitionId>());
        let definition = create_definition(store, workspace, &name).await;
        let version =
            publish_version(store, workspace, definition, body, None, execution_timeout).await;
        Self {
            workspace,
            definition,
            version: version.id,
        }
    }

    /// Returns the HTTP API path of the workspace followed by `below`.
    pub fn path(&self, below: &str) -> String {
        format!("/v1/workspaces/{}{below}", self.workspace)
    }

    /// A request with default options and params.
    pub fn request(&self) -> NewRequest {
        self.request_with(json!({"order": 7}))
    }

    /// A request with default options and these params.
    pub fn request_with(&self, params: Value) -> NewRequest {
        NewRequest::new(fresh_id(), self.definition, params)
    }

    /// Enqueues these requests in one call and returns their ids.
    pub async fn enqueue(&self, store: &dyn Store, requests: Vec<NewRequest>) -> Vec<RequestId> {
        match self.try_enqueue(store, requests).await {
            Enqueued::All(all) => all.into_iter().map(|request| request.id).collect(),
            other => panic!("failed to enqueue: {other:?}"),
        }
    }

    /// Enqueues these requests in one call and returns the outcome.
    pub async fn try_enqueue(&self, store: &dyn Store, requests: Vec<NewRequest>) -> Enqueued {
        let enqueue = Enqueue {
            workspace: self.workspace,
            requests,
            by: USER.to_owned(),
        };
        store.request_enqueue(&enqueue).await.unwrap()
    }

    /// Cancels a request; with `force`, terminates a running execution.
    pub async fn cancel(&self, store: &dyn Store, request: RequestId, force: bool) -> Cancelled {
        let cancel = Cancel {
            workspace: self.workspace,
            request,
            force,
            by: USER.to_owned(),
        };
        store.request_cancel(&cancel).await.unwrap()
    }

    /// Reads a request.
    pub async fn get(&self, store: &dyn Store, id: RequestId) -> Request {
        let found = store.request_get(self.workspace, id).await.unwrap();
        found.unwrap_or_else(|| panic!("request {id} not found"))
    }

    /// Reads the timeline of a request.
    pub async fn timeline(&self, store: &dyn Store, id: RequestId) -> Vec<Event> {
        store.request_timeline(self.workspace, id).await.unwrap()
    }

    /// Counts the requests of the workspace by status.
    pub async fn counts(&self, store: &dyn Store) -> Counts {
        store.request_counts(self.workspace).await.unwrap()
    }

    /// Reads the limit and use of the workspace's slots.
    pub async fn slots(&self, store: &dyn Store) -> SlotUse {
        let slots = store.workspace_slots(self.workspace).await.unwrap();
        slots.unwrap_or_else(|| panic!("workspace {} not found", self.workspace))
    }

    /// Updates the workspace.
    pub async fn update(&self, store: &dyn Store, change: &WorkspaceChange) -> Workspace {
        let updated = store
            .workspace_update(self.workspace, change, &leasehold_store::Actor::Local)
            .await;
        let updated = updated.unwrap();
        updated.unwrap_or_else(|| panic!("workspace {} not found", self.workspace))
    }

    /// Sets the limit override of the workspace.
    pub async fn set_limit(&self, store: &dyn Store, limit: u32) {
        let change = WorkspaceChange {
            limit_override: Some(Some(limit)),
            ..WorkspaceChange::default()
        };
        self.update(store, &change).await;
    }
}
