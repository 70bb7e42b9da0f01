//! Refuses to start with another engine than the one of open executions: the new engine would report them as lost and free their slots.

use crate::settings::EngineKind;
use anyhow::{Result, bail};
use leasehold_console::Failure;
use leasehold_core::RequestStatus;
use leasehold_store::execution::Execution;
use leasehold_store::{Page, Store};

/// Number of open executions to check; after a change of the engine the first ones show it.
const SAMPLE_SIZE: u32 = 100;

pub(crate) async fn check(store: &dyn Store, kind: EngineKind) -> Result<()> {
    for execution in store
        .execution_list_active(Page::first(SAMPLE_SIZE))
        .await?
    {
        if runs_in_other_engine(store, kind, &execution).await? {
            let (other, flag) = match kind {
                EngineKind::Embedded => ("Temporal", "temporal"),
                EngineKind::Temporal => ("the embedded engine", "embedded"),
            };
            bail!(Failure::usage(format!(
                "cannot start with this engine: execution {} is open in {other}; start with --engine {flag} until all open executions have finished, or cancel their requests there",
                execution.id
            )));
        }
    }
    Ok(())
}

async fn runs_in_other_engine(
    store: &dyn Store,
    kind: EngineKind,
    execution: &Execution,
) -> Result<bool> {
    let graph = store.graph_get(execution.id).await?;
    match kind {
        EngineKind::Temporal => Ok(graph.is_some_and(|graph| graph.state.end().is_none())),
        // The graph is written before the request becomes DISPATCHED.
        EngineKind::Embedded if graph.is_some() => Ok(false),
        EngineKind::Embedded => {
            let request = store.request_get(execution.workspace, execution.request);
            Ok(request
                .await?
                .is_some_and(|request| request.status == RequestStatus::Dispatched))
        }
    }
}
