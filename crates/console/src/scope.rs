//! Resolves workspaces and definitions by name, by id, or from the key.

use crate::command_error::{CommandResult, OrNotFound, not_found};
use crate::exit::{Exit, Failure};
use crate::session::Session;
use clap::Args;
use leasehold_client::api::key::Scope;
use leasehold_client::api::request::Request;
use leasehold_core::{DefinitionId, ExecutionId, RequestId, WorkspaceId};
use std::collections::HashMap;

/// The workspace for administrator keys if none is named.
const DEFAULT_WORKSPACE: &str = "default";

/// The `--workspace` flag.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct WorkspaceFlag {
    /// Workspace name or id [default: the workspace of the key, else `default`].
    #[arg(
        long,
        short,
        global = true,
        value_name = "NAME|ID",
        env = "LEASEHOLD_WORKSPACE",
        hide_env = true
    )]
    workspace: Option<String>,
}

impl WorkspaceFlag {
    /// Resolves the flag to an id.
    pub(crate) async fn id(&self, session: &Session) -> CommandResult<WorkspaceId> {
        match &self.workspace {
            Some(named) => session.workspace(named).await,
            None => session.default_workspace().await,
        }
    }

    /// The workspace of a request. Administrators need not name it.
    pub(crate) async fn of_request(
        &self,
        session: &Session,
        id: RequestId,
    ) -> CommandResult<WorkspaceId> {
        if self.workspace.is_none() && session.is_admin().await? {
            let found = session.client.request_find(id).await;
            return Ok(found
                .or_not_found(|| format!("request {id}"), "request list -A")?
                .workspace);
        }
        self.id(session).await
    }

    /// The workspace of an execution. Administrators need not name it.
    pub(crate) async fn of_execution(
        &self,
        session: &Session,
        id: ExecutionId,
    ) -> CommandResult<WorkspaceId> {
        if self.workspace.is_none() && session.is_admin().await? {
            let found = session.client.execution_find(id).await;
            let found = found.or_not_found(|| format!("execution {id}"), "execution list")?;
            return Ok(found.workspace);
        }
        self.id(session).await
    }
}

impl Session {
    /// Finds a workspace by name or id.
    pub(crate) async fn workspace(&self, named: &str) -> CommandResult<WorkspaceId> {
        if let Ok(id) = named.parse() {
            return Ok(id);
        }
        let not_found = || not_found(&format!("workspace `{named}`"), "workspace list");
        match &self.me().await?.scope {
            Scope::Admin => {
                let found = self.client.workspace_find(named).await?;
                Ok(found.ok_or_else(not_found)?.id)
            }
            // A workspace key sees only its own workspace.
            Scope::Workspace { workspace } => {
                let own = self.client.workspace_get(*workspace).await?;
                if own.workspace.name == named {
                    return Ok(*workspace);
                }
                let message = format!(
                    "access denied: this key is limited to workspace `{}`",
                    own.workspace.name
                );
                Err(Failure::new(Exit::Denied, message).into())
            }
            Scope::Worker { .. } | Scope::Metrics => Err(worker_key_denied().into()),
        }
    }

    async fn default_workspace(&self) -> CommandResult<WorkspaceId> {
        match &self.me().await?.scope {
            Scope::Workspace { workspace } => Ok(*workspace),
            Scope::Worker { .. } | Scope::Metrics => Err(worker_key_denied().into()),
            Scope::Admin => {
                let found = self.client.workspace_find(DEFAULT_WORKSPACE).await?;
                let message = "no workspace given and workspace `default` does not exist; set --workspace, \
                               or list workspaces with `leasehold workspace list`";
                let found = found.ok_or_else(|| Failure::new(Exit::NotFound, message))?;
                Ok(found.id)
            }
        }
    }

    /// Finds a definition by name or id.
    pub(crate) async fn definition(
        &self,
        workspace: WorkspaceId,
        named: &str,
    ) -> CommandResult<DefinitionId> {
        if let Ok(id) = named.parse() {
            return Ok(id);
        }
        let found = self.client.definition_find(workspace, named).await;
        let found = found.or_not_found(|| format!("workspace {workspace}"), "workspace list")?;
        let not_found = || not_found(&format!("definition `{named}`"), "definition list");
        Ok(found.ok_or_else(not_found)?.id)
    }
}

fn worker_key_denied() -> Failure {
    let message = "access denied: a worker key has access to the jobs of its queues only; use an administrator or workspace key";
    Failure::new(Exit::Denied, message)
}

/// Looks up the names of workspaces and definitions, each once. Falls back to the id.
#[derive(Default)]
pub(crate) struct NameCache {
    workspaces: HashMap<WorkspaceId, String>,
    definitions: HashMap<DefinitionId, String>,
}

impl NameCache {
    pub(crate) async fn workspace(&mut self, session: &Session, id: WorkspaceId) -> String {
        if let Some(name) = self.workspaces.get(&id) {
            return name.clone();
        }
        let found = session.client.workspace_get(id).await;
        let name = found.map_or_else(|_| id.to_string(), |state| state.workspace.name);
        self.workspaces.insert(id, name.clone());
        name
    }

    pub(crate) async fn definition(&mut self, session: &Session, request: &Request) -> String {
        let id = request.definition;
        self.definition_of(session, request.workspace, id).await
    }

    pub(crate) async fn definition_of(
        &mut self,
        session: &Session,
        workspace: WorkspaceId,
        id: DefinitionId,
    ) -> String {
        if let Some(name) = self.definitions.get(&id) {
            return name.clone();
        }
        let found = session.client.definition_get(workspace, id).await;
        let name = found.map_or_else(|_| id.to_string(), |definition| definition.name);
        self.definitions.insert(id, name.clone());
        name
    }
}
