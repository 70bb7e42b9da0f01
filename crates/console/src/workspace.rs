//! `leasehold workspace`: making, showing, changing and deleting workspaces.

use crate::command::Act;
use crate::exit::Failure;
use crate::input;
use crate::listing::Listing;
use crate::output::clean;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use crate::shown;
use crate::trouble::{OrMissing, Outcome};
use clap::Subcommand;
use leasehold_client::api::workspace::{NewWorkspace, Workspace, WorkspaceChange, WorkspaceState};
use leasehold_core::{Plan, WorkspaceId};
use serde_json::json;

/// What to do with workspaces.
#[derive(Subcommand, Clone, Debug)]
pub enum WorkspaceAction {
    /// Lists workspaces.
    List(Listing),
    /// Shows a workspace with its slots and its requests.
    Get {
        /// Its name or id.
        workspace: String,
    },
    /// Makes a workspace.
    Create {
        /// Its name, unique.
        name: String,
        #[arg(long, help = input::plan_help(), value_parser = input::plan(), ignore_case = true, default_value = "FREE")]
        plan: Plan,
        /// How many executions may run at once, instead of the plan's number.
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Changes its plan or its limit; what runs is left to finish.
    Set {
        /// Its name or id.
        workspace: String,
        /// Another plan.
        #[arg(long, value_parser = input::plan(), ignore_case = true)]
        plan: Option<Plan>,
        /// Another limit, instead of the plan's number.
        #[arg(long, value_name = "N", conflicts_with = "no_limit")]
        limit: Option<u32>,
        /// The plan's number again.
        #[arg(long)]
        no_limit: bool,
    },
    /// Admits nothing more, until it is resumed; what runs is left to finish.
    Pause {
        /// Its name or id.
        workspace: String,
    },
    /// Admits again.
    Resume {
        /// Its name or id.
        workspace: String,
    },
    /// Deletes a workspace: what waits fails when its turn comes, what runs runs on.
    Delete {
        /// Its name or id.
        workspace: String,
    },
}

const LOOK: &str = "workspace list";

impl Act for WorkspaceAction {
    async fn act(self, session: &Session, _: &WorkspaceFlag) -> Outcome {
        match self {
            Self::List(listing) => list(session, listing).await,
            Self::Get { workspace } => get(session, &workspace).await,
            Self::Create { name, plan, limit } => {
                let new = NewWorkspace {
                    name,
                    plan,
                    max_concurrent_executions: limit,
                };
                let made = session.client.workspace_create(&new).await?;
                told(session, &made, "made")
            }
            Self::Set {
                workspace,
                plan,
                limit,
                no_limit,
            } => {
                let limit = limit.map(Some).or(no_limit.then_some(None));
                let change = WorkspaceChange {
                    plan,
                    max_concurrent_executions: limit,
                    paused: None,
                };
                if change == WorkspaceChange::default() {
                    let message = "say what to change: --plan, --limit or --no-limit";
                    return Err(Failure::usage(message).into());
                }
                update(session, &workspace, change, "changed").await
            }
            Self::Pause { workspace } => update(session, &workspace, paused(true), "paused").await,
            Self::Resume { workspace } => {
                update(session, &workspace, paused(false), "resumed").await
            }
            Self::Delete { workspace } => {
                let id = session.workspace(&workspace).await?;
                let deleted = session.client.workspace_delete(id).await;
                deleted.or_missing(|| format!("workspace `{workspace}`"), LOOK)?;
                let document = json!({ "deleted": workspace });
                let sentence = format!("workspace {} is deleted", clean(&workspace));
                Ok(session.out.told(&document, &sentence)?)
            }
        }
    }
}

fn paused(paused: bool) -> WorkspaceChange {
    WorkspaceChange {
        paused: Some(paused),
        ..WorkspaceChange::default()
    }
}

async fn list(session: &Session, listing: Listing) -> Outcome {
    let headings = ["NAME", "PLAN", "LIMIT", "STATE", "MADE", "ID"];
    let none = "there are no workspaces; `leasehold workspace create NAME` makes one";
    let list = session.client.workspace_list();
    let rows = async |items: &[Workspace]| Ok(items.iter().map(row).collect());
    listing.print(session, list, &headings, none, rows).await
}

fn row(workspace: &Workspace) -> Vec<String> {
    vec![
        clean(&workspace.name),
        workspace.plan.to_string(),
        workspace.max_concurrent_executions.to_string(),
        shown::yes(workspace.paused, "paused"),
        shown::age(workspace.created_at, jiff::Timestamp::now()),
        workspace.id.to_string(),
    ]
}

async fn get(session: &Session, named: &str) -> Outcome {
    let id = session.workspace(named).await?;
    let state = read(session, id, named).await?;
    if session.out.is_json() {
        return Ok(session.out.json(&state)?);
    }
    let WorkspaceState {
        workspace,
        slots,
        requests,
    } = &state;
    let source = if workspace.overridden {
        ", its own"
    } else {
        ", the plan's"
    };
    Ok(session.out.fields(vec![
        ("workspace", clean(&workspace.name)),
        ("id", workspace.id.to_string()),
        ("plan", workspace.plan.to_string()),
        ("limit", format!("{} at once{source}", slots.limit)),
        (
            "slots",
            format!("{} of {} in use", slots.in_use, slots.limit),
        ),
        ("state", shown::yes(workspace.paused, "paused")),
        ("made", shown::moment(workspace.created_at)),
        ("pending", requests.pending.to_string()),
        ("claimed", requests.claimed.to_string()),
        ("dispatched", requests.dispatched.to_string()),
        ("completed", requests.completed.to_string()),
        ("failed", requests.failed.to_string()),
    ])?)
}

async fn read(session: &Session, id: WorkspaceId, named: &str) -> Outcome<WorkspaceState> {
    let state = session.client.workspace_get(id).await;
    state.or_missing(|| format!("workspace `{named}`"), LOOK)
}

async fn update(session: &Session, named: &str, change: WorkspaceChange, done: &str) -> Outcome {
    let id = session.workspace(named).await?;
    let changed = session.client.workspace_update(id, &change).await;
    let changed = changed.or_missing(|| format!("workspace `{named}`"), LOOK)?;
    told(session, &changed, done)
}

fn told(session: &Session, workspace: &Workspace, done: &str) -> Outcome {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(workspace)?);
    }
    let name = clean(&workspace.name);
    let limit = workspace.max_concurrent_executions;
    let plan = workspace.plan;
    Ok(out.line(format!(
        "workspace {name} is {done}: plan {plan}, {limit} at once"
    ))?)
}
