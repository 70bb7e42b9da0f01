//! Runs handlers, one job after the other. A worker has one runner per concurrent job. A panic, a timeout or a lost lease ends the attempt, not the runner.

use crate::context::JobContext;
use crate::leased_job::{LeasedJob, StopState};
use crate::outcome::{JobError, failed};
use crate::shared::Shared;
use leasehold_core::job::JobEnd;
use leasehold_service::catch_panic;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Runs a job, then prefetched jobs until there are none.
pub(crate) async fn run(shared: Arc<Shared>, mut job: Arc<LeasedJob>) {
    loop {
        let end = attempt(&shared, &job).await;
        match shared.state.next(&job, end) {
            Some(next) => job = next,
            None => return,
        }
        // Handlers that never await must not starve other tasks.
        tokio::task::coop::consume_budget().await;
    }
}

/// Runs one attempt. Returns how it ended, or `None` if the lease was lost and the end does not count.
async fn attempt(shared: &Arc<Shared>, job: &Arc<LeasedJob>) -> Option<JobEnd> {
    // A process that was suspended, or waited long for its claim, must not start a job that another worker may hold. No work has begun, so
    // the job is returned; the store rejects the return if the lease is lost.
    if !job.is_leased(Instant::now()) {
        return Some(JobEnd::Returned);
    }
    let end = match catch_panic(watch(shared, job)).await {
        Ok(end) => end,
        Err(panic) => {
            // Cancels the tasks that the handler has spawned.
            job.cancel.cancel();
            shared.state.count(|stats| stats.panicked += 1);
            Some(failed(JobError::new(panic.to_string())))
        }
    };
    if job.stop_state() == StopState::LeaseLost {
        return None;
    }
    if let Some(JobEnd::Failed { error, retry_mode }) = &end {
        tracing::debug!(job = %job.claimed.id, queue = %job.queue, kind = job.claimed.kind, attempt = job.claimed.attempt,
            ?retry_mode, error, "attempt failed");
    }
    end
}

/// Runs the handler until it returns, is cancelled, or times out. Drops the handler here, where panics are caught.
async fn watch(shared: &Arc<Shared>, job: &Arc<LeasedJob>) -> Option<JobEnd> {
    let timeout = job.claimed.timeout;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let context = JobContext::new(job.clone(), shared.clone(), deadline);
    let Some(mut work) = shared.handlers.call(&job.claimed.kind, context) else {
        let worker = &shared.options.name;
        return Some(shared.unknown_kinds.snooze(job, worker));
    };
    tokio::select! {
        biased;
        end = &mut work => return Some(end),
        () = job.cancel.cancelled() => {}
        () = until(deadline) => return Some(timed_out(shared, job, timeout)),
    }
    match job.stop_state() {
        // Another worker may run the job already, so the handler gets no grace period.
        StopState::LeaseLost => None,
        // The lease is still valid: a result within the grace period counts.
        StopState::Active | StopState::Stopping => tokio::select! {
            biased;
            end = &mut work => Some(end),
            () = until(deadline) => Some(timed_out(shared, job, timeout)),
            () = sleep(shared.options.cancel_grace) => Some(JobEnd::Returned),
        },
    }
}

fn timed_out(shared: &Shared, job: &LeasedJob, timeout: Option<Duration>) -> JobEnd {
    job.cancel.cancel();
    shared.state.count(|stats| stats.timed_out += 1);
    let timeout = timeout.unwrap_or_default();
    failed(JobError::new(format!("timed out after {timeout:?}")))
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
