//! The nodes of an execution: combines the graph with the engine's state of each node.

use crate::api_error::{ApiError, ApiResult};
use crate::state::State;
use leasehold_api::execution::{ExecutionEdge, ExecutionNode};
use leasehold_core::graph::{Graph, Node, NodeRun};
use leasehold_core::queue;
use leasehold_core::{ExecutionId, VersionBody};

/// Returns all nodes, in the order of the graph's list.
pub(super) async fn all(
    state: &State,
    execution: ExecutionId,
    body: &VersionBody,
    graph: &Graph,
) -> ApiResult<Vec<ExecutionNode>> {
    let runs = match &state.engine {
        Some(engine) => engine.nodes(execution, body).await?,
        None => None,
    };
    // Nodes unknown to the engine have not started.
    let runs = runs.unwrap_or_else(|| {
        let nodes = graph.nodes.iter();
        nodes.map(|node| NodeRun::waiting(node.id())).collect()
    });
    Ok(graph.nodes.iter().zip(runs).map(to_api_node).collect())
}

/// Returns one node with its output.
pub(super) async fn one(
    state: &State,
    execution: ExecutionId,
    body: &VersionBody,
    id: &str,
) -> ApiResult<ExecutionNode> {
    let VersionBody::Graph(graph) = body else {
        return Err(ApiError::not_found("node"));
    };
    let at = graph.nodes.iter().position(|node| node.id() == id);
    let at = at.ok_or_else(|| ApiError::not_found("node"))?;
    let mut node = all(state, execution, body, graph).await?.swap_remove(at);
    if node.output_omitted
        && let Some(engine) = &state.engine
    {
        node.output = engine.output(execution, body, at).await?;
        node.output_omitted = false;
    }
    Ok(node)
}

pub(super) fn edges(body: &VersionBody) -> Vec<ExecutionEdge> {
    let VersionBody::Graph(graph) = body else {
        return Vec::new();
    };
    let edge = |edge: &leasehold_core::graph::Edge| ExecutionEdge {
        from: edge.from.clone(),
        to: edge.to.clone(),
    };
    graph.edges.iter().map(edge).collect()
}

fn to_api_node((node, run): (&Node, NodeRun)) -> ExecutionNode {
    let queue = node.kind.queue();
    let queue = (!queue.starts_with(queue::RESERVED)).then(|| queue.to_owned());
    ExecutionNode {
        id: run.id,
        kind: node.kind.type_name().to_owned(),
        state: run.state,
        queue,
        job: run.job,
        attempts: run.attempts,
        output: run.output,
        output_omitted: run.output_omitted,
        error: run.error,
        started_at: run.started_at,
        finished_at: run.finished_at,
    }
}
