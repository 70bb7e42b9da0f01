//! After a crash of a process that was computing inputs of requests: notes it in the store, computes those inputs again, one at a time, and stops
//! executions of poisoned requests. Runs before the services start. ADR 22 explains why.

use crate::error::Result;
use leasehold_core::limits::RECOMPUTE_STACK_BYTES;
use leasehold_core::{Crashes, RequestStatus};
use leasehold_engine::{Engine, Start};
use leasehold_store::Store;
use leasehold_store::request::{Crash, CrashedRequest};
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

/// Computes the inputs of requests again that are to be started, one after the other, and stops the executions of running requests that are poisoned.
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
    let (is_poisoned, status) = (request.crashes.is_poisoned(), request.status);
    match (status, is_poisoned) {
        // The worker of the node delivers its output again; only then there is an input to compute, which is computed alone.
        (RequestStatus::Dispatched, false) => {}
        (RequestStatus::Dispatched, true) => {
            let error = poisoned_error(request.crashes);
            engine.terminate(request.execution, &error).await?;
            tracing::error!(request = %request.id, workspace = %request.workspace, execution = %request.execution,
                    "request is poisoned; execution terminated");
        }
        // The dispatcher fails it, once it has made the start definite.
        (RequestStatus::Pending | RequestStatus::Claimed, true) => {}
        (RequestStatus::Pending | RequestStatus::Claimed, false) => {
            recompute_start(store, engine, request).await?;
        }
        (RequestStatus::Completed | RequestStatus::Failed, _) => {}
    }
    Ok(())
}

async fn recompute_start(
    store: &dyn Store,
    engine: &Arc<dyn Engine>,
    request: CrashedRequest,
) -> Result<()> {
    let version = store.version_get(request.workspace, request.version);
    // Without the version the request fails when it is started.
    let Some(version) = version.await? else {
        return Ok(());
    };
    tracing::info!(request = %request.id, workspace = %request.workspace, "computing the input of a request alone after a crash");
    let start = Start {
        execution: request.execution,
        request: request.id,
        workspace: request.workspace,
        definition: request.definition,
        version,
        priority: request.priority,
        params: request.params,
        crashed: true,
        trace: None,
        trace_context: request.trace_context,
    };
    let engine = Arc::clone(engine);
    let compute = move || {
        let thread = std::thread::Builder::new()
            .name("leasehold-recompute".to_owned())
            .stack_size(RECOMPUTE_STACK_BYTES)
            .spawn(move || engine.compute_input(&start));
        // A panic was reported when it happened. It harms no other request, so it is no crash.
        thread.map(|thread| drop(thread.join()))
    };
    match tokio::task::spawn_blocking(compute).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, request = %request.id, "failed to start a thread; the input is computed when the request starts");
        }
        Err(error) => {
            tracing::warn!(%error, request = %request.id, "the computation was cancelled");
        }
    }
    Ok(())
}
