//! `leasehold workspace`: creates, shows, updates and deletes workspaces.

use crate::command::Execute;
use crate::command_error::{CommandResult, OrNotFound};
use crate::display;
use crate::exit::Failure;
use crate::input;
use crate::listing::Listing;
use crate::output::clean;
use crate::scope::WorkspaceFlag;
use crate::session::Session;
use clap::Subcommand;
use leasehold_client::api::workspace::{NewWorkspace, Workspace, WorkspaceChange, WorkspaceState};
use leasehold_core::{Plan, WorkspaceId};
use serde_json::json;

/// Subcommands of `leasehold workspace`.
#[derive(Subcommand, Clone, Debug)]
pub enum WorkspaceAction {
    /// List workspaces.
    List(Listing),
    /// Show a workspace, its slots and its request counts.
    Get {
        /// Workspace name or id.
        workspace: String,
    },
    /// Create a workspace.
    Create {
        /// Unique name.
        name: String,
        #[arg(long, help = input::plan_help(), value_parser = input::plan(), ignore_case = true, default_value = "FREE")]
        plan: Plan,
        /// Maximum number of concurrent executions, instead of the plan's limit.
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Change the plan or the limits; running executions continue.
    Set {
        /// Workspace name or id.
        workspace: String,
        /// New plan.
        #[arg(long, value_parser = input::plan(), ignore_case = true)]
        plan: Option<Plan>,
        /// Maximum number of concurrent executions, instead of the plan's limit.
        #[arg(long, value_name = "N", conflicts_with = "no_limit")]
        limit: Option<u32>,
        /// Use the plan's limit again.
        #[arg(long)]
        no_limit: bool,
        /// Maximum number of PENDING requests, instead of 1,000,000.
        #[arg(long, value_name = "N", conflicts_with = "no_max_pending")]
        max_pending: Option<u64>,
        /// Allow 1,000,000 PENDING requests again.
        #[arg(long)]
        no_max_pending: bool,
        /// Maximum bytes of open requests and executions, instead of the plan's.
        #[arg(long, value_name = "BYTES", conflicts_with = "no_max_open_bytes")]
        max_open_bytes: Option<u64>,
        /// Use the plan's maximum of open bytes again.
        #[arg(long)]
        no_max_open_bytes: bool,
    },
    /// Stop admitting requests until resumed; running executions continue.
    Pause {
        /// Workspace name or id.
        workspace: String,
    },
    /// Resume a paused workspace.
    Resume {
        /// Workspace name or id.
        workspace: String,
    },
    /// Delete a workspace; pending requests fail when their turn comes, running executions continue.
    Delete {
        /// Workspace name or id.
        workspace: String,
    },
}

const LIST_COMMAND: &str = "workspace list";

impl Execute for WorkspaceAction {
    async fn execute(self, session: &Session, _: &WorkspaceFlag) -> CommandResult {
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
                print_workspace(session, &made, "created")
            }
            Self::Set {
                workspace,
                plan,
                limit,
                no_limit,
                max_pending,
                no_max_pending,
                max_open_bytes,
                no_max_open_bytes,
            } => {
                let change = WorkspaceChange {
                    plan,
                    max_concurrent_executions: overriding(limit, no_limit),
                    max_pending: overriding(max_pending, no_max_pending),
                    max_open_bytes: overriding(max_open_bytes, no_max_open_bytes),
                    paused: None,
                };
                if change == WorkspaceChange::default() {
                    let message = "nothing to change: pass --plan, --limit, --max-pending, --max-open-bytes or one of their --no- forms";
                    return Err(Failure::usage(message).into());
                }
                update(session, &workspace, change, "updated").await
            }
            Self::Pause { workspace } => update(session, &workspace, paused(true), "paused").await,
            Self::Resume { workspace } => {
                update(session, &workspace, paused(false), "resumed").await
            }
            Self::Delete { workspace } => {
                let id = session.workspace(&workspace).await?;
                let deleted = session.client.workspace_delete(id).await;
                deleted.or_not_found(|| format!("workspace `{workspace}`"), LIST_COMMAND)?;
                let document = json!({ "deleted": workspace });
                let sentence = format!("deleted workspace {}", clean(&workspace));
                Ok(session.out.print_result(&document, &sentence)?)
            }
        }
    }
}

/// Returns the change of a limit: a new override, its removal, or none.
fn overriding<T>(limit: Option<T>, removed: bool) -> Option<Option<T>> {
    limit.map(Some).or(removed.then_some(None))
}

fn paused(paused: bool) -> WorkspaceChange {
    WorkspaceChange {
        paused: Some(paused),
        ..WorkspaceChange::default()
    }
}

async fn list(session: &Session, listing: Listing) -> CommandResult {
    let headings = [
        "NAME",
        "PLAN",
        "LIMIT",
        "MAX PENDING",
        "MAX OPEN BYTES",
        "STATE",
        "CREATED",
        "ID",
    ];
    let none = "no workspaces; create one with `leasehold workspace create NAME`";
    let list = session.client.workspace_list();
    let rows = async |items: &[Workspace]| Ok(items.iter().map(row).collect());
    listing.print(session, list, &headings, none, rows).await
}

fn row(workspace: &Workspace) -> Vec<String> {
    vec![
        clean(&workspace.name),
        workspace.plan.to_string(),
        workspace.max_concurrent_executions.to_string(),
        workspace.max_pending.to_string(),
        display::bytes(workspace.max_open_bytes),
        display::word_if(workspace.paused, "paused"),
        display::age(workspace.created_at, jiff::Timestamp::now()),
        workspace.id.to_string(),
    ]
}

async fn get(session: &Session, named: &str) -> CommandResult {
    let id = session.workspace(named).await?;
    let state = read(session, id, named).await?;
    if session.out.is_json() {
        return Ok(session.out.json(&state)?);
    }
    let WorkspaceState {
        workspace,
        slots,
        requests,
        open_bytes,
    } = &state;
    let source = if workspace.overridden {
        "override"
    } else {
        "plan"
    };
    Ok(session.out.fields(vec![
        ("workspace", clean(&workspace.name)),
        ("id", workspace.id.to_string()),
        ("plan", workspace.plan.to_string()),
        ("limit", format!("{} ({source})", slots.limit)),
        (
            "slots",
            format!("{} of {} in use", slots.in_use, slots.limit),
        ),
        ("state", display::word_if(workspace.paused, "paused")),
        ("created", display::timestamp(workspace.created_at)),
        (
            "open bytes",
            format!(
                "{} of {}",
                display::bytes(open_bytes.unwrap_or_default()),
                display::bytes(workspace.max_open_bytes)
            ),
        ),
        (
            "pending",
            format!("{} of {}", requests.pending, workspace.max_pending),
        ),
        ("claimed", requests.claimed.to_string()),
        ("dispatched", requests.dispatched.to_string()),
        ("completed", requests.completed.to_string()),
        ("failed", requests.failed.to_string()),
    ])?)
}

async fn read(session: &Session, id: WorkspaceId, named: &str) -> CommandResult<WorkspaceState> {
    let state = session.client.workspace_get(id).await;
    state.or_not_found(|| format!("workspace `{named}`"), LIST_COMMAND)
}

async fn update(
    session: &Session,
    named: &str,
    change: WorkspaceChange,
    done: &str,
) -> CommandResult {
    let id = session.workspace(named).await?;
    let changed = session.client.workspace_update(id, &change).await;
    let changed = changed.or_not_found(|| format!("workspace `{named}`"), LIST_COMMAND)?;
    print_workspace(session, &changed, done)
}

fn print_workspace(session: &Session, workspace: &Workspace, done: &str) -> CommandResult {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json(workspace)?);
    }
    let name = clean(&workspace.name);
    let limit = workspace.max_concurrent_executions;
    let plan = workspace.plan;
    Ok(out.line(format!(
        "workspace {name} {done}: plan {plan}, limit {limit}"
    ))?)
}
