//! `leasehold request watch`: every step of a request and its nodes as it is seen, until it has ended. Lives through a restart of the server.

use super::LOOK;
use crate::execution::came_to;
use crate::exit::{Exit, Failure};
use crate::listing::note;
use crate::output::clean;
use crate::session::Session;
use crate::shown;
use crate::trouble::{OrMissing, Outcome, Trouble};
use leasehold_client::ClientError;
use leasehold_client::api::change::Event;
use leasehold_client::api::execution::ExecutionNode;
use leasehold_client::api::request::Request;
use leasehold_core::graph::NodeState;
use leasehold_core::{ExecutionId, RequestId, RequestStatus, WorkspaceId};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::sleep;

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// What was told already.
#[derive(Default)]
struct Told {
    events: usize,
    nodes: HashMap<String, NodeState>,
    away: bool,
}

/// Tells until it has ended.
pub(super) async fn until_it_ends(
    session: &Session,
    workspace: WorkspaceId,
    id: RequestId,
) -> Outcome {
    let mut told = Told::default();
    loop {
        match look(session, workspace, id, &mut told).await {
            Ok(Some(request)) => return ended(session, &request),
            Ok(None) => {}
            // It was there: it comes back, and the request with it.
            Err(Trouble::Client(error)) if error.is_retryable() && told.events > 0 => {
                away(&error, &mut told);
            }
            Err(trouble) => return Err(trouble),
        }
        sleep(LOOK_EVERY).await;
    }
}

async fn look(
    session: &Session,
    workspace: WorkspaceId,
    id: RequestId,
    told: &mut Told,
) -> Outcome<Option<Request>> {
    // Read before its steps, so that none of them is missing when it has ended.
    let request = session.client.request_get(workspace, id).await;
    let request = request.or_missing(|| format!("request {id}"), LOOK)?;
    let events = session.client.request_timeline(workspace, id).await?;
    if std::mem::take(&mut told.away) {
        note("the server answers again");
    }
    let (last, before): (Vec<&Event>, Vec<&Event>) = events
        .iter()
        .skip(told.events)
        .partition(|event| is_end(event.to));
    for event in before {
        step(session, event)?;
    }
    if let Some(execution) = request.execution {
        nodes(session, workspace, execution, told).await?;
    }
    let is_over = is_end(request.status);
    if is_over || last.is_empty() {
        told.events = events.len();
    } else {
        told.events = events.len() - last.len();
    }
    Ok(is_over.then_some(request))
}

fn is_end(status: RequestStatus) -> bool {
    matches!(status, RequestStatus::Completed | RequestStatus::Failed)
}

fn step(session: &Session, event: &Event) -> Outcome {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json_line(event)?);
    }
    let reason = event.reason.as_deref().unwrap_or_default();
    let status = shown::request_status(out, event.to);
    let line = format!(
        "{}  {status}  {}",
        shown::clock(event.at),
        shown::cut(reason)
    );
    Ok(out.line(line.trim_end())?)
}

/// Nodes whose state is not the one that was told.
async fn nodes(
    session: &Session,
    workspace: WorkspaceId,
    execution: ExecutionId,
    told: &mut Told,
) -> Outcome {
    let graph = session.client.execution_graph(workspace, execution).await;
    let nodes = match graph {
        Ok(graph) => graph.nodes,
        // Its engine does not answer, or knows nothing of it yet: the request itself says enough.
        Err(ClientError::Problem(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for node in nodes {
        let before = told.nodes.insert(node.id.clone(), node.state);
        if before != Some(node.state) && node.state != NodeState::Waiting {
            node_step(session, &node)?;
        }
    }
    Ok(())
}

fn node_step(session: &Session, node: &ExecutionNode) -> Outcome {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json_line(&serde_json::json!({ "node": node }))?);
    }
    let at = node.finished_at.or(node.started_at);
    let at = at.map_or_else(|| " ".repeat(8), shown::clock);
    let state = shown::node_state(out, node.state);
    let line = format!("{at}    {}  {state}  {}", clean(&node.id), came_to(node));
    Ok(out.line(line.trim_end())?)
}

fn ended(session: &Session, request: &Request) -> Outcome {
    let out = &session.out;
    let failed = request.status == RequestStatus::Failed;
    if out.is_json() {
        out.json_line(&serde_json::json!({ "request": request }))?;
    } else {
        let at = request.finished_at.unwrap_or(request.created_at);
        let (clock, took) = (shown::clock(at), shown::took(request.created_at, at));
        let status = shown::request_status(out, request.status);
        out.line(format!("{clock}  {status}  after {took}"))?;
    }
    if !failed {
        return Ok(());
    }
    let id = request.id;
    let reason = request.failure_reason;
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let error = clean(request.last_error.as_deref().unwrap_or("it failed"));
    let message = format!(
        "request {id} failed{reason}: {error}; `leasehold request redrive {id}` tries it again"
    );
    Err(Failure::new(Exit::RequestFailed, message).into())
}

fn away(error: &ClientError, told: &mut Told) {
    if !std::mem::replace(&mut told.away, true) {
        note(&format!(
            "the server does not answer ({error}); waiting for it"
        ));
    }
}
