//! Writes job results: at once if no write is under way, else batched in the next write. Adds no batching delay.

use crate::leased_job::LeasedJob;
use crate::shared::Shared;
use crate::source::{SourceError, SourceResult};
use futures::future::join;
use leasehold_core::job::{JobEnd, JobFinish, JobRef, RetryMode};
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_core::retry::Backoff;
use leasehold_service::FailureStreak;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// The waits before a result is sent again that the source did not write while it wrote others.
const WAITS: Backoff = Backoff {
    base: Duration::from_millis(100),
    factor: 2.0,
    max: Duration::from_secs(3),
    jitter: 0.2,
};

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let (postpone, postponed) = mpsc::unbounded_channel();
    join(
        write_new(&shared, &postpone),
        Postponed::new(postponed).run(&shared),
    )
    .await;
}

async fn write_new(shared: &Shared, postpone: &mpsc::UnboundedSender<Vec<JobFinish>>) {
    let mut failures = FailureStreak::of("worker").action("write job results");
    loop {
        let finishes = shared.state.take_finishes(JOB_MAX_BATCH);
        if finishes.is_empty() {
            shared.state.result_ready.notified().await;
            continue;
        }
        let unwritten = write(shared, finishes, &mut failures).await;
        if !unwritten.is_empty() {
            // Fails only if the retries have ended, which is when this ends too.
            drop(postpone.send(unwritten));
        }
    }
}

/// Results that the source did not write while it wrote others, for example because their rows are locked. They are sent again in calls of their own, so that
/// they do not delay other results.
struct Postponed {
    received: mpsc::UnboundedReceiver<Vec<JobFinish>>,
    waiting: Vec<Waiting>,
    failures: FailureStreak,
    call_failures: FailureStreak,
}

struct Waiting {
    finish: JobFinish,
    tries: u32,
    due: Instant,
}

impl Waiting {
    fn after(finish: JobFinish, tries: u32) -> Self {
        Self {
            finish,
            tries,
            due: Instant::now() + WAITS.delay(tries, fastrand::f64()),
        }
    }
}

impl Postponed {
    fn new(received: mpsc::UnboundedReceiver<Vec<JobFinish>>) -> Self {
        Self {
            received,
            waiting: Vec::new(),
            failures: FailureStreak::of("worker").action("write some job results"),
            call_failures: FailureStreak::of("worker").action("write job results again"),
        }
    }

    async fn run(mut self, shared: &Shared) {
        let mut is_stopping = false;
        loop {
            let first_due = self.waiting.iter().map(|one| one.due).min();
            tokio::select! {
                received = self.received.recv() => match received {
                    Some(finishes) => {
                        let new = finishes.into_iter().map(|finish| Waiting::after(finish, 1));
                        self.waiting.extend(new);
                    }
                    None => return,
                },
                () = until(first_due) => self.send_due(shared).await,
                // A shutdown cuts the waits short, once.
                () = shared.stopping.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    let now = Instant::now();
                    self.waiting.iter_mut().for_each(|one| one.due = now);
                }
            }
        }
    }

    async fn send_due(&mut self, shared: &Shared) {
        let now = Instant::now();
        let (mut due, later): (Vec<_>, Vec<_>) =
            self.waiting.drain(..).partition(|one| one.due <= now);
        self.waiting = later;
        self.waiting
            .extend(due.split_off(due.len().min(JOB_MAX_BATCH)));
        let tries: HashMap<JobRef, u32> = due
            .iter()
            .map(|one| (one.finish.claim, one.tries))
            .collect();
        let finishes = drop_expired(shared, due.into_iter().map(|one| one.finish).collect());
        let unwritten = write(shared, finishes, &mut self.call_failures).await;
        if !unwritten.is_empty() {
            let error = format!("{} job results were not written", unwritten.len());
            self.failures.failed(&error);
        }
        self.waiting.extend(unwritten.into_iter().map(|finish| {
            let tries = tries.get(&finish.claim).map_or(1, |tries| tries + 1);
            Waiting::after(finish, tries)
        }));
        if self.waiting.is_empty() {
            self.failures.succeeded();
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
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
