//! Writes job results: at once if no write is under way, else batched in the next write. Adds no batching delay.

use crate::leased_job::LeasedJob;
use crate::shared::Shared;
use crate::source::{SourceError, SourceResult};
use leasehold_core::job::{JobEnd, JobFinish, RetryMode};
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_service::FailureStreak;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut failures = FailureStreak::of("worker").action("write job results");
    let mut postponed = Postponed::new();
    loop {
        let mut finishes = drop_expired(&shared, postponed.take_due());
        let max = JOB_MAX_BATCH - finishes.len().min(JOB_MAX_BATCH);
        finishes.extend(shared.state.take_finishes(max));
        if finishes.is_empty() {
            tokio::select! {
                () = shared.state.result_ready.notified() => {}
                () = postponed.due() => {}
            }
        } else {
            let unwritten = write(&shared, finishes, &mut failures).await;
            postponed.add(unwritten);
        }
    }
}

/// Results that the source did not write while it wrote others, for example because their rows are locked. They do not delay other results.
struct Postponed {
    finishes: Vec<JobFinish>,
    retry_at: Instant,
    failures: FailureStreak,
}

impl Postponed {
    fn new() -> Self {
        Self {
            finishes: Vec::new(),
            retry_at: Instant::now(),
            failures: FailureStreak::of("worker").action("write some job results"),
        }
    }

    fn add(&mut self, unwritten: Vec<JobFinish>) {
        if !unwritten.is_empty() {
            let error = format!("{} job results were not written", unwritten.len());
            self.retry_at = Instant::now() + self.failures.failed(&error);
            self.finishes.extend(unwritten);
        } else if self.finishes.is_empty() {
            self.failures.succeeded();
        }
    }

    fn take_due(&mut self) -> Vec<JobFinish> {
        if Instant::now() < self.retry_at {
            return Vec::new();
        }
        std::mem::take(&mut self.finishes)
    }

    /// Waits until the results are sent again.
    async fn due(&self) {
        if self.finishes.is_empty() {
            std::future::pending::<()>().await;
        }
        sleep_until(self.retry_at).await;
    }
}

/// Writes results in one statement, and retries while the source is unavailable. Returns those that were not written and may be sent again.
async fn write(
    shared: &Shared,
    mut finishes: Vec<JobFinish>,
    failures: &mut FailureStreak,
) -> Vec<JobFinish> {
    while !finishes.is_empty() {
        match send(shared, &finishes).await {
            Ok(unwritten) => {
                failures.succeeded();
                return unwritten;
            }
            Err(error) if error.is_retryable() => {
                finishes = backoff(shared, finishes, failures.failed(&error)).await;
            }
            Err(error) if finishes.len() == 1 => {
                write_as_failure(shared, finishes, error).await;
                break;
            }
            Err(_) => {
                // One result that the store rejects must not block the others.
                let mut unwritten = Vec::new();
                for finish in finishes {
                    unwritten.extend(Box::pin(write(shared, vec![finish], failures)).await);
                }
                return unwritten;
            }
        }
    }
    Vec::new()
}

/// Waits before a retry. Returns the results whose lease is still valid by the local clock.
async fn backoff(shared: &Shared, finishes: Vec<JobFinish>, wait: Duration) -> Vec<JobFinish> {
    tokio::select! {
        () = sleep(wait) => {}
        // A shutdown cuts this wait short; the next failure waits in full.
        () = shared.stopping.cancelled(), if !shared.stopping.is_cancelled() => {}
    }
    drop_expired(shared, finishes)
}

/// Sends results once. Returns those that were not written and may be sent again.
async fn send(shared: &Shared, finishes: &[JobFinish]) -> SourceResult<Vec<JobFinish>> {
    let answers = shared.source.finish(&shared.options.name, finishes).await?;
    let report = shared.state.record_finished(finishes, &answers);
    for job in report.lost {
        log_lost(shared, &job, "result_rejected");
    }
    Ok(report.unwritten)
}

/// Drops results whose lease has expired by the local clock. Returns the others.
fn drop_expired(shared: &Shared, finishes: Vec<JobFinish>) -> Vec<JobFinish> {
    let now = Instant::now();
    let (leased, expired): (Vec<_>, Vec<_>) = finishes.into_iter().partition(|finish| {
        let job = shared.state.lease(finish.claim);
        job.is_some_and(|job| job.is_leased(now))
    });
    for finish in &expired {
        if let Some(job) = shared.state.lease(finish.claim) {
            log_lost(shared, &job, "expired_before_result_written");
        }
    }
    shared.state.drop_finishes(&expired);
    leased
}

/// Fails the attempt of a job whose result the store rejects permanently (for example a value that no column holds).
async fn write_as_failure(shared: &Shared, mut finishes: Vec<JobFinish>, error: SourceError) {
    if let Some(finish) = finishes.first_mut() {
        tracing::error!(job = %finish.claim.job, %error, "store rejected the job result; attempt counts as failed");
        finish.end = JobEnd::Failed {
            error: format!("the store rejected the job result: {error}"),
            retry_mode: RetryMode::Policy,
        };
    }
    match send(shared, &finishes).await {
        Ok(unwritten) => shared.state.drop_finishes(&unwritten),
        Err(error) => {
            tracing::error!(%error, "failed to write the failure of a rejected job result; lease will expire");
            shared.state.drop_finishes(&finishes);
        }
    }
}

fn log_lost(shared: &Shared, job: &LeasedJob, reason: &'static str) {
    tracing::warn!(job = %job.claimed.id, queue = %job.queue, kind = job.claimed.kind, token = job.claimed.token,
        attempt = job.claimed.attempt, worker = %shared.options.name, reason, "lease lost; job result dropped");
}
