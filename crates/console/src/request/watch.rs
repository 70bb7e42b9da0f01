//! `leasehold request watch`: polls a request and prints every transition until it finishes. Retries while the server restarts.

use super::LIST_COMMAND;
use crate::command_error::{CommandError, CommandResult, OrNotFound};
use crate::display;
use crate::execution::node_outcome;
use crate::exit::{Exit, Failure};
use crate::listing::note;
use crate::output::clean;
use crate::session::Session;
use leasehold_client::ClientError;
use leasehold_client::api::change::Event;
use leasehold_client::api::execution::ExecutionNode;
use leasehold_client::api::request::Request;
use leasehold_core::graph::NodeState;
use leasehold_core::{ExecutionId, Named, RequestId, RequestStatus, WorkspaceId};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::sleep;

/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(400);

/// What was printed already.
#[derive(Default)]
struct WatchState {
    events: usize,
    nodes: HashMap<String, NodeState>,
    unreachable: bool,
    /// Whether it was said that the first transitions are missing.
    is_pruned: bool,
}

/// Prints transitions until the request finishes.
pub(super) async fn watch_to_end(
    session: &Session,
    workspace: WorkspaceId,
    id: RequestId,
) -> CommandResult {
    let mut state = WatchState::default();
    loop {
        match poll(session, workspace, id, &mut state).await {
            Ok(Some(request)) => return print_end(session, &request),
            Ok(None) => {}
            // The server answered before: wait for its restart.
            Err(CommandError::Client(error)) if error.is_retryable() && state.events > 0 => {
                note_unreachable(&error, &mut state);
            }
            Err(error) => return Err(error),
        }
        sleep(POLL_INTERVAL).await;
    }
}

async fn poll(
    session: &Session,
    workspace: WorkspaceId,
    id: RequestId,
    state: &mut WatchState,
) -> CommandResult<Option<Request>> {
    // Reads the request before its timeline, so that the timeline of a finished request is complete.
    let request = session.client.request_get(workspace, id).await;
    let request = request.or_not_found(|| format!("request {id}"), LIST_COMMAND)?;
    let timeline = session.client.request_timeline(workspace, id).await?;
    let events = timeline.events;
    if std::mem::take(&mut state.unreachable) {
        note("server is reachable again");
    }
    if timeline.beginning_pruned && !std::mem::replace(&mut state.is_pruned, true) {
        note("the first transitions are older than the longest retention and were pruned");
    }
    let (last, before): (Vec<&Event>, Vec<&Event>) = events
        .iter()
        .skip(state.events)
        .partition(|event| is_end(&event.to));
    for event in before {
        print_event(session, event)?;
    }
    if let Some(execution) = request.execution {
        print_nodes(session, workspace, execution, state).await?;
    }
    let is_over = is_end(&request.status);
    if is_over || last.is_empty() {
        state.events = events.len();
    } else {
        state.events = events.len() - last.len();
    }
    Ok(is_over.then_some(request))
}

fn is_end(status: &Named<RequestStatus>) -> bool {
    status.known().is_some_and(RequestStatus::is_finished)
}

fn print_event(session: &Session, event: &Event) -> CommandResult {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json_line(event)?);
    }
    let reason = event.reason.as_deref().unwrap_or_default();
    let status = display::request_status(out, &event.to);
    let line = format!(
        "{}  {status}  {}",
        display::time_of_day(event.at),
        display::truncate(reason)
    );
    Ok(out.line(line.trim_end())?)
}

/// Prints the nodes whose state changed.
async fn print_nodes(
    session: &Session,
    workspace: WorkspaceId,
    execution: ExecutionId,
    state: &mut WatchState,
) -> CommandResult {
    let graph = session.client.execution_graph(workspace, execution).await;
    let nodes = match graph {
        Ok(graph) => graph.nodes,
        // The engine does not answer or does not know the execution yet; the request's own transitions suffice.
        Err(ClientError::Problem(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for node in nodes {
        let before = state.nodes.insert(node.id.clone(), node.state);
        if before != Some(node.state) && node.state != NodeState::Waiting {
            print_node(session, &node)?;
        }
    }
    Ok(())
}

fn print_node(session: &Session, node: &ExecutionNode) -> CommandResult {
    let out = &session.out;
    if out.is_json() {
        return Ok(out.json_line(&serde_json::json!({ "node": node }))?);
    }
    let at = node.finished_at.or(node.started_at);
    let at = at.map_or_else(|| " ".repeat(8), display::time_of_day);
    let state = display::node_state(out, node.state);
    let line = format!(
        "{at}    {}  {state}  {}",
        clean(&node.id),
        node_outcome(node)
    );
    Ok(out.line(line.trim_end())?)
}

fn print_end(session: &Session, request: &Request) -> CommandResult {
    let out = &session.out;
    let failed = request.status == RequestStatus::Failed;
    if out.is_json() {
        out.json_line(&serde_json::json!({ "request": request }))?;
    } else {
        let at = request.finished_at.unwrap_or(request.created_at);
        let (clock, took) = (
            display::time_of_day(at),
            display::elapsed(request.created_at, at),
        );
        let status = display::request_status(out, &request.status);
        out.line(format!("{clock}  {status}  after {took}"))?;
    }
    if !failed {
        return Ok(());
    }
    let id = request.id;
    let reason = request.failure_reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| {
        format!(" ({})", clean(&reason.to_string()))
    });
    let error = clean(request.last_error.as_deref().unwrap_or("no error message"));
    let message = format!(
        "request {id} failed{reason}: {error}; retry it with `leasehold request redrive {id}`"
    );
    Err(Failure::new(Exit::RequestFailed, message).into())
}

fn note_unreachable(error: &ClientError, state: &mut WatchState) {
    if !std::mem::replace(&mut state.unreachable, true) {
        note(&format!("server unreachable ({error}); retrying"));
    }
}
