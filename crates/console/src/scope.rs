//! Which workspace and which definition are meant: by name, by id, or by the key alone.

use crate::exit::{Exit, Failure};
use crate::session::Session;
use crate::trouble::{OrMissing, Outcome, missing};
use clap::Args;
use leasehold_client::api::key::Scope;
use leasehold_client::api::request::Request;
use leasehold_core::{DefinitionId, ExecutionId, RequestId, WorkspaceId};
use std::collections::HashMap;

/// The workspace that is meant if none is named.
const USUAL: &str = "default";

/// Which workspace.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct WorkspaceFlag {
    /// The workspace, by name or id [default: the key's own, else `default`].
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
    /// The workspace that is meant.
    pub(crate) async fn id(&self, session: &Session) -> Outcome<WorkspaceId> {
        match &self.workspace {
            Some(named) => session.workspace(named).await,
            None => session.own_workspace().await,
        }
    }

    /// The workspace of a request: an administrator need not name it.
    pub(crate) async fn of_request(
        &self,
        session: &Session,
        id: RequestId,
    ) -> Outcome<WorkspaceId> {
        if self.workspace.is_none() && session.is_admin().await? {
            let found = session.client.request_find(id).await;
            return Ok(found
                .or_missing(|| format!("request {id}"), "request list -A")?
                .workspace);
        }
        self.id(session).await
    }

    /// The same for an execution.
    pub(crate) async fn of_execution(
        &self,
        session: &Session,
        id: ExecutionId,
    ) -> Outcome<WorkspaceId> {
        if self.workspace.is_none() && session.is_admin().await? {
            let found = session.client.execution_find(id).await;
            let found = found.or_missing(|| format!("execution {id}"), "execution list")?;
            return Ok(found.workspace);
        }
        self.id(session).await
    }
}

impl Session {
    /// The workspace with this name or id.
    pub(crate) async fn workspace(&self, named: &str) -> Outcome<WorkspaceId> {
        if let Ok(id) = named.parse() {
            return Ok(id);
        }
        let gone = || missing(&format!("workspace `{named}`"), "workspace list");
        match &self.me().await?.scope {
            Scope::Admin => {
                let found = self.client.workspace_find(named).await?;
                Ok(found.ok_or_else(gone)?.id)
            }
            // Such a key sees its own and no other.
            Scope::Workspace { workspace } => {
                let own = self.client.workspace_get(*workspace).await?;
                if own.workspace.name == named {
                    return Ok(*workspace);
                }
                let message = format!("the key opens the workspace `{}` only", own.workspace.name);
                Err(Failure::new(Exit::Denied, message).into())
            }
            Scope::Worker { .. } => Err(workers_key().into()),
        }
    }

    async fn own_workspace(&self) -> Outcome<WorkspaceId> {
        match &self.me().await?.scope {
            Scope::Workspace { workspace } => Ok(*workspace),
            Scope::Worker { .. } => Err(workers_key().into()),
            Scope::Admin => {
                let found = self.client.workspace_find(USUAL).await?;
                let message = "no workspace is named, and there is none called `default`; say which with -w, \
                               `leasehold workspace list` shows what there is";
                let found = found.ok_or_else(|| Failure::new(Exit::NotFound, message))?;
                Ok(found.id)
            }
        }
    }

    /// The definition with this name or id in a workspace.
    pub(crate) async fn definition(
        &self,
        workspace: WorkspaceId,
        named: &str,
    ) -> Outcome<DefinitionId> {
        if let Ok(id) = named.parse() {
            return Ok(id);
        }
        let found = self.client.definition_find(workspace, named).await;
        let found = found.or_missing(|| format!("workspace {workspace}"), "workspace list")?;
        let gone = || missing(&format!("definition `{named}`"), "definition list");
        Ok(found.ok_or_else(gone)?.id)
    }
}

fn workers_key() -> Failure {
    let message = "the key is a worker's: it opens jobs of its queues, and no workspace; use an administrator's or a workspace's";
    Failure::new(Exit::Denied, message)
}

/// Names of what rows speak of by id, each asked for once. What cannot be named keeps its id.
#[derive(Default)]
pub(crate) struct Names {
    workspaces: HashMap<WorkspaceId, String>,
    definitions: HashMap<DefinitionId, String>,
}

impl Names {
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
