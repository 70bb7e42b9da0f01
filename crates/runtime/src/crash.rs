//! After a crash of a process that was computing inputs of requests: notes it in the store, computes those inputs again, one at a time, and stops
//! executions of poisoned requests. Runs before the services start. ADR 22 explains why.

use crate::error::Result;
use leasehold_core::graph::{Machine, NodeState};
use leasehold_core::limits::RECOMPUTE_STACK_BYTES;
use leasehold_core::{Crashes, RequestId, RequestStatus, VersionBody};
use leasehold_engine::{Engine, Start};
use leasehold_store::Store;
use leasehold_store::request::{Crash, CrashedRequest};
use std::collections::HashMap;
use std::sync::Arc;

/// The error of a poisoned request.
pub(crate) fn poisoned_error(crashes: Crashes) -> String {
    let times = crashes.alone;
    format!(
        "the server crashed {times} times in a row while it computed the input of this request and nothing else"
    )
}

/// Notes a crash on the requests whose inputs the process was computing, and returns those that are open.
pub async fn note_crash(store: &dyn Store, crash: &Crash) -> Result<Vec<CrashedRequest>> {
    let requests = store.request_note_crash(crash).await?;
    for request in &requests {
        tracing::warn!(request = %request.id, workspace = %request.workspace, execution = %request.execution, process = crash.process,
            crashes = request.crashes.total, crashes_alone = request.crashes.alone,
            "a process crashed while it computed the input of a request");
    }
    Ok(requests)
}

/// Computes the inputs of requests again that are to be started, and those of their running nodes, one after the other, and stops the executions of running requests that are poisoned.
/// The caller computes nothing else meanwhile. The inputs are discarded: if computing one crashes this process too, its marker shows that it was alone.
pub async fn recompute(store: &dyn Store, engine: &Arc<dyn Engine>, requests: Vec<CrashedRequest>) {
    for request in requests {
        let (id, workspace) = (request.id, request.workspace);
        if let Err(error) = recompute_one(store, engine, request).await {
            tracing::warn!(%error, request = %id, %workspace, "failed to compute the input of a request again after a crash");
        }
    }
}

async fn recompute_one(
    store: &dyn Store,
    engine: &Arc<dyn Engine>,
    request: CrashedRequest,
) -> Result<()> {
    let (is_poisoned, status) = (request.crashes.is_poisoned(), request.status.known());
    match (status, is_poisoned) {
        (Some(RequestStatus::Dispatched), false) => {
            if let Some(start) = start_of(store, &request).await? {
                recompute_nodes(store, engine, start).await?;
            }
        }
        (Some(RequestStatus::Dispatched), true) => {
            let error = poisoned_error(request.crashes);
            engine.terminate(request.execution, &error).await?;
            tracing::error!(request = %request.id, workspace = %request.workspace, execution = %request.execution,
                    "request is poisoned; execution terminated");
        }
        // The dispatcher fails it, once it has made the start definite.
        (Some(RequestStatus::Pending | RequestStatus::Claimed), true) => {}
        (Some(RequestStatus::Pending | RequestStatus::Claimed), false) => {
            // Without the version the request fails when it is started.
            if let Some(start) = start_of(store, &request).await? {
                let (again, first) = (Arc::clone(engine), start.clone());
                compute(request.id, move || again.compute_input(&first)).await;
                // If its start is unknown, its nodes may be running.
                recompute_nodes(store, engine, start).await?;
            }
        }
        (Some(RequestStatus::Completed | RequestStatus::Failed) | None, _) => {}
    }
    Ok(())
}

/// Returns the start of a request; none if its version is gone.
async fn start_of(store: &dyn Store, request: &CrashedRequest) -> Result<Option<Start>> {
    tracing::info!(request = %request.id, workspace = %request.workspace, "computing the input of a request alone after a crash");
    let version = store.version_get(request.workspace, request.version);
    Ok(version.await?.map(|version| Start {
        execution: request.execution,
        request: request.id,
        workspace: request.workspace,
        definition: request.definition,
        version,
        priority: request.priority,
        params: request.params.clone(),
        crashed: true,
        trace: None,
        trace_context: request.trace_context.clone(),
    }))
}

/// Computes the inputs of the running nodes again, which a claim of their jobs computes; none if the store does not run the graph. Inputs of nodes that
/// follow are computed only when a worker delivers an output again, and then alone.
async fn recompute_nodes(store: &dyn Store, engine: &Arc<dyn Engine>, start: Start) -> Result<()> {
    let VersionBody::Graph(graph) = &start.version.body else {
        return Ok(());
    };
    let Some(run) = store.graph_get(start.execution).await? else {
        return Ok(());
    };
    // A published graph is valid.
    let Ok(machine) = Machine::new(graph.clone()) else {
        return Ok(());
    };
    let (machine, start) = (Arc::new(machine), Arc::new(start));
    let states = run.state.nodes().iter().enumerate();
    let running = states.filter(|(_, state)| **state == NodeState::Running);
    let running: Vec<usize> = running.map(|(node, _)| node).collect();
    for node in running {
        let mut outputs = HashMap::new();
        for needed in machine.needs(&[node]) {
            let output = store.graph_output(start.execution, needed).await?;
            outputs.extend(output.map(|output| (needed, output)));
        }
        let (engine, start, machine) = (engine.clone(), start.clone(), machine.clone());
        compute(start.request, move || {
            engine.compute_node_input(&start, &machine, node, &outputs);
        })
        .await;
    }
    Ok(())
}

/// Runs a computation on a thread with half of the usual stack, and waits for it.
async fn compute(request: RequestId, work: impl FnOnce() + Send + 'static) {
    let run = move || {
        let thread = std::thread::Builder::new()
            .name("leasehold-recompute".to_owned())
            .stack_size(RECOMPUTE_STACK_BYTES)
            .spawn(work);
        // A panic was reported when it happened. It harms no other request, so it is no crash.
        thread.map(|thread| drop(thread.join()))
    };
    match tokio::task::spawn_blocking(run).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, %request, "failed to start a thread; the input is computed when the request starts");
        }
        Err(error) => {
            tracing::warn!(%error, %request, "the computation was cancelled");
        }
    }
}
