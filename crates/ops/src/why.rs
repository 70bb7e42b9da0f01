//! Why a request is not running now: finds out what there is to know of it, and lets the core judge. Changes nothing.

use leasehold_core::limits::PLACE_MAX;
use leasehold_core::why::{self, Ahead, EngineFacts, Facts, Why};
use leasehold_core::{ExecutionId, ExecutionStatus, RequestId, RequestStatus, WorkspaceId};
use leasehold_engine::Engine;
use leasehold_store::execution::{ActiveKey, Execution, ExecutionFilter};
use leasehold_store::request::Request;
use leasehold_store::{Page, Result, Store};
use std::time::Duration;

/// Executions that are named as holders of slots.
const HOLDERS_MAX: u32 = 100;
/// Executions that ended well whose times are looked at.
const HISTORY_MAX: u32 = 20;
/// How long an engine may take to say who asks for its work.
const PATIENCE: Duration = Duration::from_secs(2);

/// Explains a request; none if there is no such one. `engine` is asked for pollers where that matters, and what it does not answer
/// in time is left out.
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
    let facts = match request.status {
        RequestStatus::Pending => waiting(store, &request, known).await?,
        RequestStatus::Dispatched => Facts {
            pollers: pollers(store, engine, &request).await?,
            ..bare(store, &request, known).await?
        },
        RequestStatus::Claimed | RequestStatus::Completed | RequestStatus::Failed => {
            bare(store, &request, known).await?
        }
    };
    Ok(Some(why::explain(&facts)))
}

/// What the request itself says.
async fn bare(store: &dyn Store, request: &Request, engine: EngineFacts) -> Result<Facts> {
    Ok(Facts {
        status: request.status,
        now: store.now().await?,
        run_at: request.run_at,
        attempt_count: request.attempt_count,
        last_error: request.last_error.clone(),
        cancel_requested: request.cancel_requested_at.is_some(),
        execution: request.execution,
        workspace_exists: true,
        paused: false,
        limit: 0,
        holders: Vec::new(),
        in_use: 0,
        ahead: None,
        usual_time: None,
        engine,
        pollers: None,
    })
}

/// What a request waits for beside its own time.
async fn waiting(store: &dyn Store, request: &Request, engine: EngineFacts) -> Result<Facts> {
    let id = request.workspace;
    let workspace = store.workspace_get(id).await?;
    let slots = store.workspace_slots(id).await?;
    let place = store.request_place(id, request.id, PLACE_MAX + 1).await?;
    Ok(Facts {
        workspace_exists: workspace.as_ref().is_some_and(|w| w.deleted_at.is_none()),
        paused: workspace.is_some_and(|workspace| workspace.paused),
        limit: slots.map_or(0, |slots| slots.limit),
        in_use: slots.map_or(0, |slots| slots.in_use),
        holders: holders(store, id).await?,
        ahead: place.map(|place| match place {
            place if place > PLACE_MAX => Ahead::MoreThan(PLACE_MAX),
            place => Ahead::Exactly(place),
        }),
        usual_time: usual_time(store, id).await?,
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

/// The mean time of the last executions of the workspace that ended well.
async fn usual_time(store: &dyn Store, workspace: WorkspaceId) -> Result<Option<Duration>> {
    let filter = ExecutionFilter {
        workspace,
        status: Some(ExecutionStatus::Completed),
        definition: None,
    };
    let ended = store
        .execution_list(&filter, Page::first(HISTORY_MAX))
        .await?;
    let times: Vec<Duration> = ended.iter().filter_map(time_taken).collect();
    let count = u32::try_from(times.len()).unwrap_or(u32::MAX);
    Ok((count > 0).then(|| times.iter().sum::<Duration>() / count))
}

fn time_taken(execution: &Execution) -> Option<Duration> {
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
    let asked = tokio::time::timeout(PATIENCE, engine.pollers(&version.body)).await;
    Ok(asked.ok().and_then(std::result::Result::ok).flatten())
}
