//! What is not counted but asked for when somebody scrapes: not too often, and never waited for long. Knows no metric's name.

use crate::state::State;
use leasehold_core::limits::{OVERVIEW_JOBS_MAX, OVERVIEW_MAX};
use leasehold_core::why::EngineFacts::Down;
use leasehold_store::{Result, Store};
use leasehold_telemetry::Sight;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long what the store said counts, at least.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// A store that has not answered by then counts as away.
const PATIENCE: Duration = Duration::from_secs(2);
/// With very many workspaces a look at all of them takes its time, and Prometheus waits for ten seconds: what takes longer is shown by the next scrape.
const LOOKS_FOR: Duration = Duration::from_secs(6);
/// A look counts for so many times as long as it took, so that those who scrape keep no database busy.
const RESTS: u32 = 10;
const RESTS_AT_MOST: Duration = Duration::from_secs(60);
/// What was seen last is shown for so long while nothing newer is.
const BELIEVED_FOR: Duration = Duration::from_secs(120);

/// What scrapes have found out so far.
#[derive(Default)]
pub(crate) struct Scraped {
    /// When to ask again whether the store answers.
    store: Option<Instant>,
    /// A look that is under way. It is never cut off: an abandoned statement would keep its connection from others.
    looking: Option<JoinHandle<Result<Looked>>>,
    look_again: Option<Instant>,
    seen: Option<Instant>,
    /// Why nothing was seen lately.
    trouble: Option<String>,
    /// Whether that was said.
    said: bool,
}

struct Looked {
    sight: Sight,
    took: Duration,
}

/// Asks, unless somebody has just asked. While the answer is held nobody changes what was said.
pub(crate) async fn fresh(state: &State) -> MutexGuard<'_, Scraped> {
    let mut scraped = state.scraped.lock().await;
    let metrics = &state.telemetry.metrics;
    if is_due(scraped.store) {
        let answers = matches!(timeout(PATIENCE, state.store.now()).await, Ok(Ok(_)));
        metrics.store_answers(answers);
        if answers {
            scraped.look(state).await;
        } else {
            (scraped.seen, scraped.look_again) = (None, None);
        }
        scraped.store = Some(Instant::now() + FRESH_FOR);
        let allowance = state.watch.allowance();
        let down = matches!(state.watch.facts(), Down { .. });
        metrics.engine_seen(allowance.map(|_| !down), allowance);
    }
    scraped
}

fn is_due(at: Option<Instant>) -> bool {
    at.is_none_or(|at| Instant::now() >= at)
}

impl Scraped {
    async fn look(&mut self, state: &State) {
        let metrics = &state.telemetry.metrics;
        if self.looking.is_none() && is_due(self.look_again) {
            let looking = look(state.store.clone(), metrics.workspaces_wanted());
            self.looking = Some(tokio::spawn(looking));
        }
        if let Some(looking) = &mut self.looking
            && let Ok(ended) = timeout(LOOKS_FOR, looking).await
        {
            self.looking = None;
            let now = Instant::now();
            match ended.map_err(|error| error.to_string()) {
                Ok(Ok(Looked { sight, took })) => {
                    metrics.store_seen(&sight);
                    (self.seen, self.trouble, self.said) = (Some(now), None, false);
                    self.look_again = Some(now + (took * RESTS).clamp(FRESH_FOR, RESTS_AT_MOST));
                }
                Ok(Err(error)) => self.trouble = Some(error.to_string()),
                Err(error) => self.trouble = Some(error),
            }
        }
        if self.seen.is_none_or(|at| at.elapsed() > BELIEVED_FOR) {
            metrics.store_unseen();
            if !std::mem::replace(&mut self.said, true) {
                let error = self.trouble.as_deref().unwrap_or("looking takes too long");
                tracing::warn!(error, "the store's gauges are left out");
            }
        }
    }
}

async fn look(store: Arc<dyn Store>, wanted: u32) -> Result<Looked> {
    let begun = Instant::now();
    let queues = store.queue_overview(OVERVIEW_MAX, OVERVIEW_JOBS_MAX);
    let workspaces = store.workspace_overview(wanted);
    let oldest = store.request_oldest();
    let (workspaces, queues, oldest) = tokio::try_join!(workspaces, queues, oldest)?;
    Ok(Looked {
        sight: Sight {
            workspaces,
            queues,
            oldest,
        },
        took: begun.elapsed(),
    })
}
