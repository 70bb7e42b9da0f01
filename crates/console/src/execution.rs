//! `leasehold execution`: shows executions and their nodes.

use crate::command::Execute;
use crate::command_error::{CommandResult, OrNotFound};
use crate::display;
use crate::input;
use crate::listing::Listing;
use crate::output::{Output, clean};
use crate::scope::{NameCache, WorkspaceFlag};
use crate::session::Session;
use clap::Subcommand;
use leasehold_client::api::execution::{Execution, ExecutionGraph, ExecutionNode};
use leasehold_core::{ExecutionId, ExecutionStatus};

/// Subcommands of `leasehold execution`.
#[derive(Subcommand, Clone, Debug)]
pub enum ExecutionAction {
    /// List the executions of a workspace, most recently admitted first.
    List {
        /// Only executions in this status.
        #[arg(long, value_parser = input::execution_status(), ignore_case = true)]
        status: Option<ExecutionStatus>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show an execution.
    Get {
        /// Execution id.
        id: ExecutionId,
    },
    /// Show the state of every node of an execution.
    Graph {
        /// Execution id.
        id: ExecutionId,
    },
    /// Show one node with its complete output.
    Node {
        /// Execution id.
        id: ExecutionId,
        /// Node id in the graph.
        node: String,
    },
}

const LIST_COMMAND: &str = "execution list";

impl Execute for ExecutionAction {
    async fn execute(self, session: &Session, scope: &WorkspaceFlag) -> CommandResult {
        match self {
            Self::List { status, listing } => list(session, scope, status, listing).await,
            Self::Get { id } => get(session, scope, id).await,
            Self::Graph { id } => {
                let workspace = scope.of_execution(session, id).await?;
                let graph = session.client.execution_graph(workspace, id).await;
                let graph = graph.or_not_found(|| format!("execution {id}"), LIST_COMMAND)?;
                print_graph(&session.out, &graph)
            }
            Self::Node { id, node } => {
                let workspace = scope.of_execution(session, id).await?;
                let found = session.client.execution_node(workspace, id, &node).await;
                let what = || format!("node `{node}` of execution {id}");
                print_node(&session.out, &found.or_not_found(what, "execution graph")?)
            }
        }
    }
}

async fn list(
    session: &Session,
    scope: &WorkspaceFlag,
    status: Option<ExecutionStatus>,
    listing: Listing,
) -> CommandResult {
    let workspace = scope.id(session).await?;
    let headings = ["ID", "STATUS", "DEFINITION", "STARTED", "DURATION", "ERROR"];
    let none = "no matching executions";
    let list = session.client.execution_list(workspace, status);
    let rows = async |items: &[Execution]| {
        let mut names = NameCache::default();
        let mut rows = Vec::new();
        for one in items {
            let (id, now) = (one.definition, jiff::Timestamp::now());
            rows.push(vec![
                one.id.to_string(),
                display::execution_status(&session.out, &one.status),
                clean(&names.definition_of(session, one.workspace, id).await),
                display::age(one.started_at, now),
                display::elapsed(one.started_at, one.finished_at.unwrap_or(now)),
                display::truncate(one.error.as_deref().unwrap_or_default()),
            ]);
        }
        Ok(rows)
    };
    listing.print(session, list, &headings, none, rows).await
}

async fn get(session: &Session, scope: &WorkspaceFlag, id: ExecutionId) -> CommandResult {
    let workspace = scope.of_execution(session, id).await?;
    let execution = session.client.execution_get(workspace, id).await;
    let execution = execution.or_not_found(|| format!("execution {id}"), LIST_COMMAND)?;
    if session.out.is_json() {
        return Ok(session.out.json(&execution)?);
    }
    let mut names = NameCache::default();
    let named = names.definition_of(session, workspace, execution.definition);
    Ok(session.out.fields(vec![
        ("execution", execution.id.to_string()),
        (
            "status",
            display::execution_status(&session.out, &execution.status),
        ),
        ("request", execution.request.to_string()),
        ("definition", clean(&named.await)),
        ("version", execution.version.to_string()),
        ("started", display::timestamp(execution.started_at)),
        (
            "finished",
            display::optional_timestamp(execution.finished_at),
        ),
        (
            "error",
            clean(execution.error.as_deref().unwrap_or_default()),
        ),
    ])?)
}

fn print_graph(out: &Output, graph: &ExecutionGraph) -> CommandResult {
    if out.is_json() {
        return Ok(out.json(graph)?);
    }
    if graph.nodes.is_empty() {
        return Ok(
            out.line("this execution is a workflow of your own Temporal workers; see Temporal for its history")?
        );
    }
    let headings = [
        "NODE", "TYPE", "STATE", "AFTER", "ATTEMPTS", "DURATION", "OUTPUT",
    ];
    let rows = graph.nodes.iter().map(|node| {
        let before = graph.edges.iter().filter(|edge| edge.to == node.id);
        let before: Vec<String> = before.map(|edge| clean(&edge.from)).collect();
        vec![
            clean(&node.id),
            clean(&node.kind),
            display::node_state(out, node.state),
            before.join(", "),
            node.attempts.to_string(),
            node_took(node),
            node_outcome(node),
        ]
    });
    Ok(out.table(&headings, rows.collect())?)
}

fn node_took(node: &ExecutionNode) -> String {
    match (node.started_at, node.finished_at) {
        (Some(from), Some(to)) => display::elapsed(from, to),
        _ => String::new(),
    }
}

/// The error or the output of a node, truncated to a table cell.
pub(crate) fn node_outcome(node: &ExecutionNode) -> String {
    match (&node.error, &node.output) {
        (Some(error), _) => display::truncate(error),
        (None, Some(output)) => display::json_cell(output),
        (None, None) => display::word_if(node.output_omitted, "too large: see `execution node`"),
    }
}

fn print_node(out: &Output, node: &ExecutionNode) -> CommandResult {
    if out.is_json() {
        return Ok(out.json(node)?);
    }
    let output = node.output.as_ref().map(|output| clean(output.as_str()));
    Ok(out.fields(vec![
        ("node", clean(&node.id)),
        ("type", clean(&node.kind)),
        ("state", display::node_state(out, node.state)),
        ("queue", clean(node.queue.as_deref().unwrap_or_default())),
        (
            "job",
            node.job.map(|job| job.to_string()).unwrap_or_default(),
        ),
        ("attempts", node.attempts.to_string()),
        ("started", display::optional_timestamp(node.started_at)),
        ("finished", display::optional_timestamp(node.finished_at)),
        ("error", clean(node.error.as_deref().unwrap_or_default())),
        ("output", output.unwrap_or_default()),
    ])?)
}
