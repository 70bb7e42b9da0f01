//! The nodes of an execution: combines the graph with the engine's state of each node. An engine that hangs delays only these calls, and a limited number of them.

use crate::api_error::{ApiError, ApiResult};
use crate::call_owner::{self, Owner};
use crate::call_task;
use crate::state::State;
use leasehold_api::execution::{ExecutionEdge, ExecutionNode};
use leasehold_core::graph::{Graph, Node, NodeRun};
use leasehold_core::key::Payloads;
use leasehold_core::limits::ENGINE_READ_MAX_SECONDS;
use leasehold_core::queue;
use leasehold_core::{ExecutionId, VersionBody};
use std::time::Duration;
use tokio::time::timeout;

/// Returns all nodes, in the order of the graph's list.
pub(super) async fn all(
    state: &State,
    execution: ExecutionId,
    body: &VersionBody,
    graph: &Graph,
    payloads: Payloads,
) -> ApiResult<Vec<ExecutionNode>> {
    let runs = match state.engine.clone() {
        Some(engine) => {
            let body = body.clone();
            let nodes = async move { engine.nodes(execution, &body).await };
            ask(state, nodes).await?
        }
        None => None,
    };
    // Nodes unknown to the engine have not started.
    let runs = runs.unwrap_or_else(|| {
        let nodes = graph.nodes.iter();
        nodes.map(|node| NodeRun::waiting(node.id())).collect()
    });
    let nodes = graph.nodes.iter().zip(runs);
    let nodes = nodes.map(|(node, run)| to_api_node(node, run, payloads));
    Ok(nodes.collect())
}

/// Returns one node with its output.
pub(super) async fn one(
    state: &State,
    execution: ExecutionId,
    body: &VersionBody,
    id: &str,
    payloads: Payloads,
) -> ApiResult<ExecutionNode> {
    let VersionBody::Graph(graph) = body else {
        return Err(ApiError::not_found("node"));
    };
    let at = graph.nodes.iter().position(|node| node.id() == id);
    let at = at.ok_or_else(|| ApiError::not_found("node"))?;
    let mut nodes = all(state, execution, body, graph, payloads).await?;
    let mut node = nodes.swap_remove(at);
    if node.output_omitted
        && let Some(engine) = state.engine.clone()
    {
        let body = body.clone();
        let output = async move { engine.output(execution, &body, at).await };
        node.output = ask(state, output).await?;
        node.output_omitted = false;
    }
    Ok(node)
}

/// Waits for the engine's answer within the time limit, as one of the calls that may wait at once: until the engine has answered, even if it was given up,
/// because it may read from the store. Holds no turn of a list meanwhile.
async fn ask<T: Send + 'static>(
    state: &State,
    answer: impl Future<Output = leasehold_engine::Result<T>> + Send + 'static,
) -> ApiResult<T> {
    let owner = call_owner::current().unwrap_or(Owner::Anonymous);
    let permit = state.engine_reads.acquire(owner).await;
    let answer = call_task::run(async move {
        let _permit = permit;
        answer.await
    });
    match timeout(Duration::from_secs(ENGINE_READ_MAX_SECONDS), answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(ApiError::engine_timeout(ENGINE_READ_MAX_SECONDS)),
    }
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

fn to_api_node(node: &Node, run: NodeRun, payloads: Payloads) -> ExecutionNode {
    let hidden = payloads == Payloads::Hidden;
    let queue = node.kind.queue();
    let queue = (!queue.starts_with(queue::RESERVED)).then(|| queue.to_owned());
    ExecutionNode {
        id: run.id,
        kind: node.kind.type_name().to_owned(),
        state: run.state,
        queue,
        job: run.job,
        attempts: run.attempts,
        output: run.output.filter(|_| !hidden),
        output_omitted: run.output_omitted && !hidden,
        error: run.error.filter(|_| !hidden),
        payload_hidden: hidden,
        started_at: run.started_at,
        finished_at: run.finished_at,
    }
}
