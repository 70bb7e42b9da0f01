//! Creates workspaces, definitions and versions in a store. Panics if the store fails; knows no requests.

use leasehold_core::{DefinitionId, Plan, VersionBody, WorkspaceId};
use leasehold_store::definition::{
    DefinitionCreated, NewDefinition, NewVersion, Publisher, Version, VersionPublished,
};
use leasehold_store::workspace::{NewWorkspace, Workspace, WorkspaceCreated};
use leasehold_store::{Store, fresh_id};
use serde_json::Value;
use std::time::Duration;

/// The body of a version that is bound to a workflow of the engine: type `Order`, task queue `orders`.
pub fn binding() -> VersionBody {
    VersionBody::Binding {
        workflow_type: "Order".to_owned(),
        task_queue: "orders".to_owned(),
    }
}

/// Creates a workspace with a unique name.
///
/// # Panics
/// When the store fails.
pub async fn create_workspace(
    store: &dyn Store,
    plan: Plan,
    limit_override: Option<u32>,
) -> Workspace {
    let id: WorkspaceId = fresh_id();
    let new = NewWorkspace {
        id,
        name: format!("workspace {id}"),
        plan,
        limit_override,
    };
    match store
        .workspace_create(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap()
    {
        WorkspaceCreated::Created(workspace) => workspace,
        WorkspaceCreated::NameTaken => {
            panic!("failed to create workspace: name {:?} is taken", new.name)
        }
    }
}

/// Creates a definition without a version.
///
/// # Panics
/// When the store fails or rejects the definition.
pub async fn create_definition(
    store: &dyn Store,
    workspace: WorkspaceId,
    name: &str,
) -> DefinitionId {
    let new = NewDefinition {
        id: fresh_id(),
        workspace,
        name: name.to_owned(),
    };
    match store
        .definition_create(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap()
    {
        DefinitionCreated::Created(definition) => definition.id,
        other => panic!("failed to create definition {name:?}: {other:?}"),
    }
}

/// Publishes the next version of a definition.
///
/// # Panics
/// When the store fails or the definition is unknown.
pub async fn publish_version(
    store: &dyn Store,
    workspace: WorkspaceId,
    definition: DefinitionId,
    body: VersionBody,
    params_schema: Option<Value>,
    execution_timeout: Option<Duration>,
) -> Version {
    let new = NewVersion {
        id: fresh_id(),
        workspace,
        definition,
        body,
        params_schema,
        execution_timeout,
        publisher: Publisher::Administrator,
    };
    let published = store
        .version_publish(&new, &leasehold_store::Actor::Local)
        .await
        .unwrap();
    match published {
        VersionPublished::Published(version) => *version,
        other => panic!("failed to publish a version of definition {definition}: {other:?}"),
    }
}
