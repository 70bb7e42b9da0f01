//! Gauges read from the store on a scrape: rate-limited, and with a time limit. Knows no metric's name.

use crate::state::State;
use leasehold_core::limits::{OVERVIEW_JOBS_MAX, OVERVIEW_MAX};
use leasehold_store::{Result, Store};
use leasehold_telemetry::StoreSnapshot;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Minimum age of the last sample before the store is read again.
const MIN_SAMPLE_AGE: Duration = Duration::from_secs(1);
/// Time limit after which the store counts as unavailable.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a scrape waits for a sample. With very many workspaces a sample takes longer than Prometheus' timeout of ten seconds; the next scrape then shows it.
const SAMPLE_WAIT: Duration = Duration::from_secs(6);
/// A sample is reused for this many times as long as it took, so that scrapes cannot keep the database busy.
const REUSE_FACTOR: u32 = 10;
const REUSE_MAX: Duration = Duration::from_secs(60);
/// How long the last sample is shown while no newer one is available.
const SAMPLE_MAX_AGE: Duration = Duration::from_secs(120);

/// The state between scrapes.
#[derive(Default)]
pub(crate) struct ScrapeState {
    /// When to check again whether the store is available.
    next_check: Option<Instant>,
    /// A sample in progress. It is never cancelled: an abandoned statement would keep its connection busy.
    sampling: Option<JoinHandle<Result<StoreSample>>>,
    next_sample: Option<Instant>,
    sampled_at: Option<Instant>,
    /// The last error of a sample.
    error: Option<String>,
    /// Whether that error was logged.
    logged: bool,
}

struct StoreSample {
    sight: StoreSnapshot,
    took: Duration,
}

/// Refreshes the gauges unless they are recent. While the guard is held, no other scrape changes them.
pub(crate) async fn refresh(state: &State) -> MutexGuard<'_, ScrapeState> {
    let mut scrape = state.scrape.lock().await;
    let metrics = &state.telemetry.metrics;
    if is_due(scrape.next_check) {
        let answers = matches!(timeout(STORE_TIMEOUT, state.store.now()).await, Ok(Ok(_)));
        metrics.set_store_up(answers);
        if answers {
            scrape.sample(state).await;
        } else {
            (scrape.sampled_at, scrape.next_sample) = (None, None);
        }
        scrape.next_check = Some(Instant::now() + MIN_SAMPLE_AGE);
        metrics.set_engine_gauges(state.watch.snapshot().as_ref());
    }
    scrape
}

fn is_due(at: Option<Instant>) -> bool {
    at.is_none_or(|at| Instant::now() >= at)
}

impl ScrapeState {
    async fn sample(&mut self, state: &State) {
        let metrics = &state.telemetry.metrics;
        if self.sampling.is_none() && is_due(self.next_sample) {
            let sampling = read_sample(state.store.clone(), metrics.busiest_limit());
            self.sampling = Some(tokio::spawn(sampling));
        }
        if let Some(sampling) = &mut self.sampling
            && let Ok(ended) = timeout(SAMPLE_WAIT, sampling).await
        {
            self.sampling = None;
            let now = Instant::now();
            match ended.map_err(|error| error.to_string()) {
                Ok(Ok(StoreSample { sight, took })) => {
                    metrics.set_store_gauges(&sight);
                    (self.sampled_at, self.error, self.logged) = (Some(now), None, false);
                    self.next_sample =
                        Some(now + (took * REUSE_FACTOR).clamp(MIN_SAMPLE_AGE, REUSE_MAX));
                }
                Ok(Err(error)) => self.error = Some(error.to_string()),
                Err(error) => self.error = Some(error),
            }
        }
        if self
            .sampled_at
            .is_none_or(|at| at.elapsed() > SAMPLE_MAX_AGE)
        {
            metrics.clear_store_gauges();
            if !std::mem::replace(&mut self.logged, true) {
                let error = self
                    .error
                    .as_deref()
                    .unwrap_or("reading the store takes too long");
                tracing::warn!(
                    error,
                    "failed to read gauges from the store; /metrics omits them"
                );
            }
        }
    }
}

async fn read_sample(store: Arc<dyn Store>, wanted: u32) -> Result<StoreSample> {
    let begun = Instant::now();
    let queues = store.queue_overview(OVERVIEW_MAX, OVERVIEW_JOBS_MAX);
    let workspaces = store.workspace_overview(wanted);
    let oldest = store.request_oldest();
    let (workspaces, queues, oldest) = tokio::try_join!(workspaces, queues, oldest)?;
    Ok(StoreSample {
        sight: StoreSnapshot {
            workspaces,
            queues,
            oldest,
        },
        took: begun.elapsed(),
    })
}
