//! What goes on in the whole server: read once a second at most, however many look.

use super::shown;
use crate::access::Access;
use crate::body::Json;
use crate::openapi::Common;
use crate::refusal::Outcome;
use crate::route::Routes;
use crate::state::State;
use axum::extract::State as Reached;
use leasehold_api::overview::{EngineHealth, EngineState, Overview, QueueUse};
use leasehold_core::limits::{OVERVIEW_JOBS_MAX, OVERVIEW_MAX};
use leasehold_core::why::EngineFacts;
use leasehold_store as store;
use leasehold_store::workspace::WorkspaceOverview;
use std::time::{Duration, Instant};
use utoipa_axum::routes;

/// How long what the store said counts.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// What the store said last, and when it was asked.
pub(crate) struct Seen {
    asked: Instant,
    workspaces: WorkspaceOverview,
    queues: Vec<store::queue::QueueUse>,
}

pub(super) fn routes() -> Routes {
    Routes::default().add(routes!(overview), Access::Admin)
}

/// What goes on now in the whole server: the engine, all requests, the busiest workspaces and queues. At most a second old.
#[utoipa::path(get, path = "/v1/overview", operation_id = "overview", tag = "about",
    responses((status = 200, body = Overview), Common))]
async fn overview(Reached(state): Reached<State>) -> Outcome<Json<Overview>> {
    // Whoever asks at the same time waits here, and is answered with what the first one found.
    let mut seen = state.overview.lock().await;
    let seen = match seen.take().filter(|seen| seen.asked.elapsed() < FRESH_FOR) {
        Some(fresh) => seen.insert(fresh),
        None => seen.insert(ask(&state).await?),
    };
    let (workspaces, queues) = (&seen.workspaces, &seen.queues);
    Ok(Json(Overview {
        at: workspaces.at,
        engine: engine(&state),
        workspaces: workspaces.workspaces,
        requests: shown::counts(workspaces.requests),
        busiest: workspaces
            .busiest
            .iter()
            .cloned()
            .map(shown::workspace_state)
            .collect(),
        queues: queues.iter().map(queue).collect(),
    }))
}

async fn ask(state: &State) -> Outcome<Seen> {
    let asked = Instant::now();
    let workspaces = state.store.workspace_overview(OVERVIEW_MAX).await?;
    let queues = state.store.queue_overview(OVERVIEW_MAX, OVERVIEW_JOBS_MAX);
    Ok(Seen {
        asked,
        workspaces,
        queues: queues.await?,
    })
}

fn engine(state: &State) -> EngineState {
    let name = state.engine.as_ref().map_or("none", |engine| engine.name());
    let (state, error) = match state.watch.facts() {
        EngineFacts::Well => (EngineHealth::Well, None),
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
