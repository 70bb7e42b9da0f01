//! Ends, every second, the graphs that time has ended: their timeout has passed, or a node's last lease ran out. Says so once each; survives a store that
//! is away.

use leasehold_core::ExecutionEnd;
use leasehold_core::retry::Backoff;
use leasehold_store::Store;
use leasehold_store::graph::EndedExecution;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Graphs ended by one call: one transaction stays short.
const BATCH: u32 = 100;
const REMIND_EVERY: Duration = Duration::from_secs(60);
/// Quick enough that a restarted database is noticed in seconds, slow enough not to hammer it.
const WAITS: Backoff = Backoff {
    base: Duration::from_millis(200),
    factor: 2.0,
    max: Duration::from_secs(3),
    jitter: 0.2,
};

pub(crate) struct Settler {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) identity: String,
    pub(crate) interval: Duration,
}

/// Since when the store fails.
struct Failing {
    since: Instant,
    said: Instant,
    times: u32,
}

impl Settler {
    /// Looks until told to stop. A look that is cut off has happened or not, and the next does the rest.
    pub(crate) async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.look_on()).await;
    }

    async fn look_on(&self) {
        let mut failing = None;
        loop {
            let wait = match self.store.graph_settle(&self.identity, BATCH).await {
                Ok(settled) => {
                    fine(failing.take());
                    settled.iter().for_each(log);
                    if settled.len() < BATCH as usize {
                        self.interval
                    } else {
                        Duration::ZERO
                    }
                }
                Err(error) => failed(&mut failing, &error),
            };
            sleep(wait).await;
        }
    }
}

fn log(settled: &EndedExecution) {
    let why = match settled.end {
        ExecutionEnd::TimedOut => "its timeout has passed",
        ExecutionEnd::Completed
        | ExecutionEnd::Failed
        | ExecutionEnd::Cancelled
        | ExecutionEnd::Terminated
        | ExecutionEnd::Lost => "a node was given up when the lease of its last attempt ran out",
    };
    tracing::warn!(execution = %settled.execution, request = %settled.request, status = %settled.status, end = ?settled.end, error = settled.error,
        "execution ended: {why}");
}

/// Takes note of a failure; returns how long to wait before the next try.
fn failed(failing: &mut Option<Failing>, error: &leasehold_store::Error) -> Duration {
    let now = Instant::now();
    let failing = failing.get_or_insert_with(|| {
        tracing::error!(%error, "graphs that time has ended cannot be looked for; trying again");
        Failing {
            since: now,
            said: now,
            times: 0,
        }
    });
    failing.times = failing.times.saturating_add(1);
    if now - failing.said >= REMIND_EVERY {
        failing.said = now;
        let seconds = (now - failing.since).as_secs();
        tracing::error!(%error, seconds, "graphs that time has ended still cannot be looked for");
    }
    WAITS.delay(failing.times, fastrand::f64())
}

fn fine(failing: Option<Failing>) {
    if let Some(failing) = failing {
        let seconds = failing.since.elapsed().as_secs();
        tracing::info!(seconds, "graphs that time has ended are looked for again");
    }
}
