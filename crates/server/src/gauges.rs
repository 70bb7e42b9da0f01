//! What is not counted but asked for when somebody scrapes: not too often, and never waited for long. Knows no metric's name.

use crate::state::State;
use leasehold_core::limits::{OVERVIEW_JOBS_MAX, OVERVIEW_MAX};
use leasehold_core::why::EngineFacts;
use leasehold_store::Result;
use leasehold_telemetry::Sight;
use std::time::{Duration, Instant};
use tokio::sync::MutexGuard;
use tokio::time::timeout;

/// How long what the store said counts, at least.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// A store that has not answered by then counts as away.
const PATIENCE: Duration = Duration::from_secs(2);
/// With very many workspaces a look at all of them takes its time. Prometheus waits for ten seconds.
const LOOKS_FOR: Duration = Duration::from_secs(6);
/// A look counts for so many times as long as it took, so that those who scrape keep no database busy.
const RESTS: u32 = 10;
const RESTS_AT_MOST: Duration = Duration::from_secs(60);

/// When to ask again.
#[derive(Default)]
pub(crate) struct Scraped {
    store: Option<Instant>,
    sight: Option<Instant>,
}

/// Asks, unless somebody has just asked. While the answer is held nobody changes what was said.
pub(crate) async fn fresh(state: &State) -> MutexGuard<'_, Scraped> {
    let mut scraped = state.scraped.lock().await;
    let metrics = &state.telemetry.metrics;
    if is_due(scraped.store) {
        let answers = matches!(timeout(PATIENCE, state.store.now()).await, Ok(Ok(_)));
        metrics.store_answers(answers);
        if !answers {
            scraped.sight = None;
        } else if is_due(scraped.sight) {
            scraped.sight = Some(look(state).await);
        }
        scraped.store = Some(Instant::now() + FRESH_FOR);
        let up = match state.watch.facts() {
            EngineFacts::Well | EngineFacts::NotDispatchedHere => Some(true),
            EngineFacts::Down { .. } => Some(false),
            EngineFacts::Missing => None,
        };
        metrics.engine_seen(up, state.watch.allowance());
    }
    scraped
}

fn is_due(at: Option<Instant>) -> bool {
    at.is_none_or(|at| Instant::now() >= at)
}

/// Looks at everything; says until when that counts.
async fn look(state: &State) -> Instant {
    let begun = Instant::now();
    let metrics = &state.telemetry.metrics;
    match timeout(LOOKS_FOR, ask(state)).await {
        Ok(Ok(sight)) => metrics.store_seen(&sight),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the store's gauges are left out");
            metrics.store_unseen();
        }
        Err(_elapsed) => {
            tracing::debug!("the store's gauges are left out: it did not answer in time");
            metrics.store_unseen();
        }
    }
    let rest = (begun.elapsed() * RESTS).clamp(FRESH_FOR, RESTS_AT_MOST);
    Instant::now() + rest
}

async fn ask(state: &State) -> Result<Sight> {
    let wanted = state.telemetry.metrics.workspaces_wanted();
    let queues = state.store.queue_overview(OVERVIEW_MAX, OVERVIEW_JOBS_MAX);
    let workspaces = state.store.workspace_overview(wanted);
    let oldest = state.store.request_oldest();
    let (workspaces, queues, oldest) = tokio::try_join!(workspaces, queues, oldest)?;
    Ok(Sight {
        workspaces,
        queues,
        oldest,
    })
}
