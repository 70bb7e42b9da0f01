//! The overview of the whole server: read from the store at most once a second, for all callers.

use super::convert;
use crate::access::Access;
use crate::api_error::ApiResult;
use crate::body::Json;
use crate::openapi::CommonResponses;
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as AxumState;
use leasehold_api::overview::{EngineHealth, EngineState, Overview, QueueUse};
use leasehold_core::limits::{OVERVIEW_JOBS_MAX, OVERVIEW_MAX};
use leasehold_core::why::EngineFacts;
use leasehold_store as store;
use leasehold_store::workspace::WorkspaceOverview;
use std::time::{Duration, Instant};
use utoipa_axum::routes;

/// How long an overview is reused.
const CACHED_FOR: Duration = Duration::from_secs(1);

/// The last overview read from the store.
pub(crate) struct CachedOverview {
    read_at: Instant,
    workspaces: WorkspaceOverview,
    queues: Vec<store::queue::QueueUse>,
}

pub(super) fn routes() -> Routes {
    Routes::default().add(routes!(overview), Access::Admin)
}

/// Returns the current state of the whole server: engine, requests, busiest workspaces and queues. At most one second old.
#[utoipa::path(get, path = "/v1/overview", operation_id = "overview", tag = "about",
    responses((status = 200, body = Overview), CommonResponses))]
async fn overview(AxumState(state): AxumState<State>) -> ApiResult<Json<Overview>> {
    // Concurrent callers wait here and share the result of the first.
    let mut cached = state.overview.lock().await;
    let overview = match cached
        .take()
        .filter(|cached| cached.read_at.elapsed() < CACHED_FOR)
    {
        Some(recent) => cached.insert(recent),
        None => cached.insert(read(&state).await?),
    };
    let (workspaces, queues) = (&overview.workspaces, &overview.queues);
    Ok(Json(Overview {
        at: workspaces.at,
        engine: engine(&state),
        workspaces: workspaces.workspaces,
        requests: convert::counts(workspaces.requests),
        busiest: workspaces
            .busiest
            .iter()
            .cloned()
            .map(convert::workspace_state)
            .collect(),
        queues: queues.iter().map(queue).collect(),
    }))
}

async fn read(state: &State) -> ApiResult<CachedOverview> {
    let read_at = Instant::now();
    let workspaces = state.store.workspace_overview(OVERVIEW_MAX).await?;
    let queues = state.store.queue_overview(OVERVIEW_MAX, OVERVIEW_JOBS_MAX);
    Ok(CachedOverview {
        read_at,
        workspaces,
        queues: queues.await?,
    })
}

fn engine(state: &State) -> EngineState {
    let name = state.engine.as_ref().map_or("none", |engine| engine.name());
    let (state, error) = match state.watch.facts() {
        EngineFacts::Healthy => (EngineHealth::Well, None),
        EngineFacts::Down { error } => (EngineHealth::Down, Some(error)),
        EngineFacts::Missing => (EngineHealth::None, None),
        EngineFacts::NotDispatchedHere => (EngineHealth::NotDispatchedHere, None),
    };
    EngineState {
        name: name.to_owned(),
        state,
        error,
    }
}

fn queue(from: &store::queue::QueueUse) -> QueueUse {
    QueueUse {
        name: from.queue.name.clone(),
        limit: from.queue.settings.limit,
        paused: from.queue.settings.paused,
        waiting: from.waiting,
        more_waiting: from.more_waiting,
        running: from.running,
    }
}
