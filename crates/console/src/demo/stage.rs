//! Sets the stage: makes what is not there yet, over HTTP. What is there stays as whoever looks at it left it.

use super::cast::{Habit, LIMITED_QUEUE, RESIDENTS, Resident};
use crate::exit::{Exit, Failure};
use crate::trouble::Outcome;
use leasehold_client::Client;
use leasehold_client::api::Code;
use leasehold_client::api::definition::{NewDefinition, NewVersion};
use leasehold_client::api::queue::QueueChange;
use leasehold_client::api::workspace::NewWorkspace;
use leasehold_core::{DefinitionId, VersionBody, WorkspaceId};

/// An execution that takes longer is given up: then no worker of the demo is there any more.
const EXECUTION_TIMEOUT_MS: u64 = 10 * 60 * 1_000;

/// A definition that is asked for.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub(super) workspace: WorkspaceId,
    pub(super) name: &'static str,
    pub(super) definition: DefinitionId,
    pub(super) kind: &'static str,
    pub(super) each_second: f64,
}

/// Everything that is asked for, in the order of the cast.
pub(super) async fn set(client: &Client) -> Outcome<Vec<Stream>> {
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
    for resident in RESIDENTS {
        let workspace = workspace(client, resident).await?;
        for habit in resident.runs {
            streams.push(Stream {
                workspace,
                name: resident.name,
                definition: definition(client, workspace, habit).await?,
                kind: habit.definition,
                each_second: habit.each_second,
            });
        }
    }
    Ok(streams)
}

async fn workspace(client: &Client, resident: &Resident) -> Outcome<WorkspaceId> {
    if let Some(found) = client.workspace_find(resident.name).await? {
        return Ok(found.id);
    }
    let new = NewWorkspace {
        name: resident.name.to_owned(),
        plan: resident.plan,
        max_concurrent_executions: None,
    };
    Ok(client.workspace_create(&new).await?.id)
}

async fn definition(
    client: &Client,
    workspace: WorkspaceId,
    habit: &Habit,
) -> Outcome<DefinitionId> {
    let name = habit.definition;
    let found = match client.definition_find(workspace, name).await? {
        Some(found) => found,
        None => {
            let new = NewDefinition {
                name: name.to_owned(),
            };
            client.definition_create(workspace, &new).await?
        }
    };
    // A version that somebody published over it is theirs to try.
    if found.current_version.is_none() {
        let new = NewVersion {
            body: body(habit)?,
            params_schema: None,
            execution_timeout_ms: Some(EXECUTION_TIMEOUT_MS),
        };
        client.version_publish(workspace, found.id, &new).await?;
    }
    Ok(found.id)
}

fn body(habit: &Habit) -> Result<VersionBody, Failure> {
    let text = format!(r#"{{"graph": {}}}"#, habit.graph);
    serde_json::from_str(&text).map_err(|error| {
        Failure::new(
            Exit::Failed,
            format!("the demo's graph `{}`: {error}", habit.definition),
        )
    })
}
