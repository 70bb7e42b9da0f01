//! `leasehold execution`: what runs and ran, node by node.

use crate::command::Act;
use crate::input;
use crate::listing::Listing;
use crate::output::{Output, clean};
use crate::scope::{Names, WorkspaceFlag};
use crate::session::Session;
use crate::shown;
use crate::trouble::{OrMissing, Outcome};
use clap::Subcommand;
use leasehold_client::api::execution::{Execution, ExecutionGraph, ExecutionNode};
use leasehold_core::{ExecutionId, ExecutionStatus};

/// What to do with executions.
#[derive(Subcommand, Clone, Debug)]
pub enum ExecutionAction {
    /// Lists executions of a workspace, last admitted first.
    List {
        /// Only those in this status.
        #[arg(long, value_parser = input::execution_status(), ignore_case = true)]
        status: Option<ExecutionStatus>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Shows an execution.
    Get {
        /// Its id.
        id: ExecutionId,
    },
    /// Shows where each node of an execution is.
    Graph {
        /// Its id.
        id: ExecutionId,
    },
    /// Shows one node with its whole output.
    Node {
        /// The execution's id.
        id: ExecutionId,
        /// The node's id in the graph.
        node: String,
    },
}

const LOOK: &str = "execution list";

impl Act for ExecutionAction {
    async fn act(self, session: &Session, scope: &WorkspaceFlag) -> Outcome {
        match self {
            Self::List { status, listing } => list(session, scope, status, listing).await,
            Self::Get { id } => get(session, scope, id).await,
            Self::Graph { id } => {
                let workspace = scope.of_execution(session, id).await?;
                let graph = session.client.execution_graph(workspace, id).await;
                let graph = graph.or_missing(|| format!("execution {id}"), LOOK)?;
                print_graph(&session.out, &graph)
            }
            Self::Node { id, node } => {
                let workspace = scope.of_execution(session, id).await?;
                let found = session.client.execution_node(workspace, id, &node).await;
                let what = || format!("node `{node}` of execution {id}");
                print_node(&session.out, &found.or_missing(what, "execution graph")?)
            }
        }
    }
}

async fn list(
    session: &Session,
    scope: &WorkspaceFlag,
    status: Option<ExecutionStatus>,
    listing: Listing,
) -> Outcome {
    let workspace = scope.id(session).await?;
    let headings = ["ID", "STATUS", "DEFINITION", "STARTED", "TOOK", "ERROR"];
    let none = "there are no such executions";
    let list = session.client.execution_list(workspace, status);
    let rows = async |items: &[Execution]| {
        let mut names = Names::default();
        let mut rows = Vec::new();
        for one in items {
            let (id, now) = (one.definition, jiff::Timestamp::now());
            rows.push(vec![
                one.id.to_string(),
                shown::execution_status(&session.out, one.status),
                clean(&names.definition_of(session, one.workspace, id).await),
                shown::age(one.started_at, now),
                shown::took(one.started_at, one.finished_at.unwrap_or(now)),
                shown::cut(one.error.as_deref().unwrap_or_default()),
            ]);
        }
        Ok(rows)
    };
    listing.print(session, list, &headings, none, rows).await
}

async fn get(session: &Session, scope: &WorkspaceFlag, id: ExecutionId) -> Outcome {
    let workspace = scope.of_execution(session, id).await?;
    let execution = session.client.execution_get(workspace, id).await;
    let execution = execution.or_missing(|| format!("execution {id}"), LOOK)?;
    if session.out.is_json() {
        return Ok(session.out.json(&execution)?);
    }
    let mut names = Names::default();
    let named = names.definition_of(session, workspace, execution.definition);
    Ok(session.out.fields(vec![
        ("execution", execution.id.to_string()),
        (
            "status",
            shown::execution_status(&session.out, execution.status),
        ),
        ("request", execution.request.to_string()),
        ("definition", clean(&named.await)),
        ("version", execution.version.to_string()),
        ("started", shown::moment(execution.started_at)),
        ("ended", shown::maybe(execution.finished_at)),
        (
            "error",
            clean(execution.error.as_deref().unwrap_or_default()),
        ),
    ])?)
}

fn print_graph(out: &Output, graph: &ExecutionGraph) -> Outcome {
    if out.is_json() {
        return Ok(out.json(graph)?);
    }
    if graph.nodes.is_empty() {
        return Ok(
            out.line("it runs a workflow of your own Temporal workers: its nodes are there")?
        );
    }
    let headings = ["NODE", "TYPE", "STATE", "AFTER", "TRIES", "TOOK", "OUTPUT"];
    let rows = graph.nodes.iter().map(|node| {
        let before = graph.edges.iter().filter(|edge| edge.to == node.id);
        let before: Vec<String> = before.map(|edge| clean(&edge.from)).collect();
        vec![
            clean(&node.id),
            clean(&node.kind),
            shown::node_state(out, node.state),
            before.join(", "),
            node.attempts.to_string(),
            node_took(node),
            came_to(node),
        ]
    });
    Ok(out.table(&headings, rows.collect())?)
}

fn node_took(node: &ExecutionNode) -> String {
    match (node.started_at, node.finished_at) {
        (Some(from), Some(to)) => shown::took(from, to),
        _ => String::new(),
    }
}

/// What a node came to, in a few words.
pub(crate) fn came_to(node: &ExecutionNode) -> String {
    match (&node.error, &node.output) {
        (Some(error), _) => shown::cut(error),
        (None, Some(output)) => shown::json_cell(output),
        (None, None) => shown::yes(node.output_omitted, "large: see `execution node`"),
    }
}

fn print_node(out: &Output, node: &ExecutionNode) -> Outcome {
    if out.is_json() {
        return Ok(out.json(node)?);
    }
    let output = node.output.as_ref().map(|output| clean(output.as_str()));
    Ok(out.fields(vec![
        ("node", clean(&node.id)),
        ("type", clean(&node.kind)),
        ("state", shown::node_state(out, node.state)),
        ("queue", clean(node.queue.as_deref().unwrap_or_default())),
        (
            "job",
            node.job.map(|job| job.to_string()).unwrap_or_default(),
        ),
        ("tries", node.attempts.to_string()),
        ("begun", shown::maybe(node.started_at)),
        ("ended", shown::maybe(node.finished_at)),
        ("error", clean(node.error.as_deref().unwrap_or_default())),
        ("output", output.unwrap_or_default()),
    ])?)
}
