//! Creates the missing workspaces, definitions and queues of the demo over HTTP. Leaves existing ones unchanged.

use super::fixtures::{DEMO_WORKSPACES, DemoWorkspace, LIMITED_QUEUE, Workload};
use crate::command_error::CommandResult;
use crate::exit::{Exit, Failure};
use leasehold_client::Client;
use leasehold_client::api::Code;
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::queue::QueueChange;
use leasehold_client::api::workspace::NewWorkspace;
use leasehold_core::{DefinitionId, VersionBody, WorkspaceId};

/// Ends executions that no demo worker serves any more.
const EXECUTION_TIMEOUT_MS: u64 = 10 * 60 * 1_000;

/// The requests of one definition.
#[derive(Clone, Copy)]
pub(super) struct RequestStream {
    pub(super) workspace: WorkspaceId,
    pub(super) name: &'static str,
    pub(super) definition: DefinitionId,
    pub(super) kind: &'static str,
    pub(super) rate_per_second: f64,
}

/// Creates what is missing; returns one stream per definition, in the order of the fixtures.
pub(super) async fn create_missing(client: &Client) -> CommandResult<Vec<RequestStream>> {
    let (queue, limit) = LIMITED_QUEUE;
    match client.queue_get(queue).await {
        Ok(_) => {}
        Err(error) if error.code() == Some(Code::NotFound) => {
            let change = QueueChange {
                limit: Some(Some(limit)),
                ..QueueChange::default()
            };
            client.queue_update(queue, &change).await?;
        }
        Err(error) => return Err(error.into()),
    }
    let mut streams = Vec::new();
    for demo in DEMO_WORKSPACES {
        let workspace = find_or_create_workspace(client, demo).await?;
        for workload in demo.workloads {
            streams.push(RequestStream {
                workspace,
                name: demo.name,
                definition: find_or_create_definition(client, workspace, workload).await?,
                kind: workload.definition,
                rate_per_second: workload.rate_per_second,
            });
        }
    }
    Ok(streams)
}

async fn find_or_create_workspace(
    client: &Client,
    demo: &DemoWorkspace,
) -> CommandResult<WorkspaceId> {
    if let Some(found) = client.workspace_find(demo.name).await? {
        return Ok(found.id);
    }
    let new = NewWorkspace {
        name: demo.name.to_owned(),
        plan: demo.plan,
        max_concurrent_executions: None,
    };
    Ok(client.workspace_create(&new).await?.id)
}

async fn find_or_create_definition(
    client: &Client,
    workspace: WorkspaceId,
    workload: &Workload,
) -> CommandResult<DefinitionId> {
    let name = workload.definition;
    let found = match client.definition_find(workspace, name).await? {
        Some(found) => found,
        None => {
            let new = NewDefinition {
                name: name.to_owned(),
            };
            client.definition_create(workspace, &new).await?
        }
    };
    // Keeps a version that the user published.
    if found.current_version.is_none() {
        let new = NewVersion {
            body: body(workload)?,
            params_schema: None,
            execution_timeout_ms: Some(EXECUTION_TIMEOUT_MS),
        };
        client.version_publish(workspace, found.id, &new).await?;
    }
    Ok(found.id)
}

fn body(workload: &Workload) -> Result<VersionBody, Failure> {
    let text = format!(r#"{{"graph": {}}}"#, workload.graph);
    serde_json::from_str(&text).map_err(|error| {
        Failure::new(
            Exit::Failed,
            format!("invalid demo graph `{}`: {error}", workload.definition),
        )
    })
}
