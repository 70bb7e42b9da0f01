//! Refuses to serve with another engine than the one that open executions run in: to it they would be lost, and their slots free while they run.

use crate::settings::EngineKind;
use anyhow::{Result, bail};
use leasehold_console::Failure;
use leasehold_core::RequestStatus;
use leasehold_store::execution::Execution;
use leasehold_store::{Page, Store};

/// Open executions that are looked at; where an engine was changed, the first tell it.
const LOOKED_AT: u32 = 100;

pub(crate) async fn refuse(store: &dyn Store, kind: EngineKind) -> Result<()> {
    for execution in store.execution_list_active(Page::first(LOOKED_AT)).await? {
        if runs_elsewhere(store, kind, &execution).await? {
            let (other, flag) = match kind {
                EngineKind::Embedded => ("Temporal", "temporal"),
                EngineKind::Temporal => ("the embedded engine", "embedded"),
            };
            bail!(Failure::usage(format!(
                "execution {} runs in {other}, and others may too: serve with --engine {flag} until they have ended, or cancel their requests there",
                execution.id
            )));
        }
    }
    Ok(())
}

async fn runs_elsewhere(
    store: &dyn Store,
    kind: EngineKind,
    execution: &Execution,
) -> Result<bool> {
    let graph = store.graph_get(execution.id).await?;
    match kind {
        EngineKind::Temporal => Ok(graph.is_some_and(|graph| graph.state.end().is_none())),
        // A graph is there before its request is DISPATCHED.
        EngineKind::Embedded if graph.is_some() => Ok(false),
        EngineKind::Embedded => {
            let request = store.request_get(execution.workspace, execution.request);
            Ok(request
                .await?
                .is_some_and(|request| request.status == RequestStatus::Dispatched))
        }
    }
}
