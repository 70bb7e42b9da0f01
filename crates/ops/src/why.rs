//! Why a request is not running now: collects the facts from store and engine, and lets the core decide. Changes nothing.

use leasehold_core::limits::POSITION_MAX;
use leasehold_core::why::{self, Ahead, EngineFacts, Facts, Why};
use leasehold_core::{ExecutionId, ExecutionStatus, RequestId, RequestStatus, WorkspaceId};
use leasehold_engine::Engine;
use leasehold_store::execution::{ActiveKey, Execution, ExecutionFilter};
use leasehold_store::request::Request;
use leasehold_store::{Page, Result, Store};
use std::time::Duration;

/// The maximum number of slot holders to list.
const HOLDERS_MAX: u32 = 100;
/// Recent completed executions for the mean duration.
const HISTORY_MAX: u32 = 20;
/// Timeout of the engine's answer about pollers.
const POLLERS_TIMEOUT: Duration = Duration::from_secs(2);

/// Explains why a request is not running; none if the request does not exist. Asks `engine` for pollers of a dispatched request; without an answer
/// in time, pollers are unknown.
pub async fn explain(
    store: &dyn Store,
    engine: Option<&dyn Engine>,
    known: EngineFacts,
    workspace: WorkspaceId,
    id: RequestId,
) -> Result<Option<Why>> {
    let Some(request) = store.request_get(workspace, id).await? else {
        return Ok(None);
    };
    let facts = match request.status.known() {
        Some(RequestStatus::Pending) => waiting(store, &request, known).await?,
        Some(RequestStatus::Dispatched) => Facts {
            pollers: pollers(store, engine, &request).await?,
            ..bare(store, &request, known).await?
        },
        Some(RequestStatus::Claimed | RequestStatus::Completed | RequestStatus::Failed) | None => {
            bare(store, &request, known).await?
        }
    };
    Ok(Some(why::explain(&facts)))
}

/// Returns the facts of the request itself.
async fn bare(store: &dyn Store, request: &Request, engine: EngineFacts) -> Result<Facts> {
    Ok(Facts {
        status: request.status.clone(),
        now: store.now().await?,
        run_at: request.run_at,
        attempt_count: request.attempt_count,
        last_error: request.last_error.clone(),
        cancel_requested: request.cancel_requested_at.is_some(),
        execution: request.execution,
        workspace_exists: true,
        definition_exists: true,
        paused: false,
        limit: 0,
        holders: Vec::new(),
        in_use: 0,
        ahead: None,
        typical_duration: None,
        engine,
        pollers: None,
    })
}

/// Returns the facts of a pending request and its workspace.
async fn waiting(store: &dyn Store, request: &Request, engine: EngineFacts) -> Result<Facts> {
    let id = request.workspace;
    let workspace = store.workspace_get(id).await?;
    let slots = store.workspace_slots(id).await?;
    let definition = store.definition_get(id, request.definition).await?;
    let ahead = store
        .request_position(id, request.id, POSITION_MAX + 1)
        .await?;
    Ok(Facts {
        workspace_exists: workspace.as_ref().is_some_and(|w| w.deleted_at.is_none()),
        definition_exists: definition.is_some(),
        paused: workspace.is_some_and(|workspace| workspace.paused),
        limit: slots.map_or(0, |slots| slots.limit),
        in_use: slots.map_or(0, |slots| slots.in_use),
        holders: holders(store, id).await?,
        ahead: ahead.map(|ahead| match ahead {
            ahead if ahead > POSITION_MAX => Ahead::MoreThan(POSITION_MAX),
            ahead => Ahead::Exactly(ahead),
        }),
        typical_duration: typical_duration(store, id).await?,
        ..bare(store, request, engine).await?
    })
}

async fn holders(store: &dyn Store, workspace: WorkspaceId) -> Result<Vec<ExecutionId>> {
    let before_all = ActiveKey {
        workspace,
        admission: i64::MIN,
    };
    let page = Page::after(before_all, HOLDERS_MAX);
    let running = store.execution_list_active(page).await?;
    let own = running.into_iter().take_while(|e| e.workspace == workspace);
    Ok(own.map(|execution| execution.id).collect())
}

/// Returns the mean duration of the last completed executions of the workspace.
async fn typical_duration(store: &dyn Store, workspace: WorkspaceId) -> Result<Option<Duration>> {
    let filter = ExecutionFilter {
        workspace,
        status: Some(ExecutionStatus::Completed),
        definition: None,
    };
    let ended = store
        .execution_list(&filter, Page::first(HISTORY_MAX))
        .await?;
    let times: Vec<Duration> = ended.iter().filter_map(duration).collect();
    let count = u32::try_from(times.len()).unwrap_or(u32::MAX);
    Ok((count > 0).then(|| times.iter().sum::<Duration>() / count))
}

fn duration(execution: &Execution) -> Option<Duration> {
    let time = execution.finished_at?.duration_since(execution.started_at);
    time.try_into().ok()
}

async fn pollers(
    store: &dyn Store,
    engine: Option<&dyn Engine>,
    request: &Request,
) -> Result<Option<usize>> {
    let Some(engine) = engine else {
        return Ok(None);
    };
    let version = store
        .version_get(request.workspace, request.version)
        .await?;
    let Some(version) = version else {
        return Ok(None);
    };
    let answer = tokio::time::timeout(POLLERS_TIMEOUT, engine.pollers(&version.body)).await;
    Ok(answer.ok().and_then(std::result::Result::ok).flatten())
}
