//! Runs handlers, one after the other: each runner is one of the jobs that run at once. A panic, a late or a lost job ends the attempt, not the runner.

use crate::context::JobContext;
use crate::held::{Fate, Held};
use crate::outcome::{JobError, failed};
use crate::shared::Shared;
use futures::FutureExt;
use leasehold_core::job::JobEnd;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Works on a job, then on whatever waits, until nothing does.
pub(crate) async fn run(shared: Arc<Shared>, mut held: Arc<Held>) {
    loop {
        let end = attempt(&shared, &held).await;
        match shared.desk.next(&held, end) {
            Some(next) => held = next,
            None => return,
        }
        // Handlers that never wait must not keep everything else from running.
        tokio::task::coop::consume_budget().await;
    }
}

/// How the attempt ended; none if that does not count.
async fn attempt(shared: &Arc<Shared>, held: &Arc<Held>) -> Option<JobEnd> {
    // A process that stood still, or waited long for its claim, must not start what others may have by now. Nothing was begun, so where
    // the store knows better and the lease holds, it is given back.
    if !held.holds(Instant::now()) {
        return Some(JobEnd::GivenBack);
    }
    let end = match AssertUnwindSafe(watch(shared, held)).catch_unwind().await {
        Ok(end) => end,
        Err(panic) => {
            // Whatever the handler has set going elsewhere stops too.
            held.cancel.cancel();
            shared.desk.count(|stats| stats.panicked += 1);
            Some(failed(JobError::new(format!(
                "panicked: {}",
                said(&*panic)
            ))))
        }
    };
    if held.fate() == Fate::Lost {
        return None;
    }
    if let Some(JobEnd::Failed { error, again }) = &end {
        tracing::debug!(job = %held.job.id, queue = %held.queue, kind = held.job.kind, attempt = held.job.attempt,
            ?again, error, "attempt failed");
    }
    end
}

/// Runs the handler until it answers, is told to stop, or its time is up. It is dropped here, inside the net for panics.
async fn watch(shared: &Arc<Shared>, held: &Arc<Held>) -> Option<JobEnd> {
    let timeout = held.job.timeout;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let context = JobContext::new(held.clone(), shared.clone(), deadline);
    let mut work = shared.handlers.call(&held.job.kind, context);
    tokio::select! {
        biased;
        end = &mut work => return Some(end),
        () = held.cancel.cancelled() => {}
        () = until(deadline) => return Some(timed_out(shared, held, timeout)),
    }
    match held.fate() {
        // Somebody else may be at it already, so not a moment longer.
        Fate::Lost => None,
        // Its lease is still held: what it manages to finish counts.
        Fate::Kept | Fate::Stopped => tokio::select! {
            biased;
            end = &mut work => Some(end),
            () = until(deadline) => Some(timed_out(shared, held, timeout)),
            () = sleep(shared.options.cancel_grace) => Some(JobEnd::GivenBack),
        },
    }
}

fn timed_out(shared: &Shared, held: &Held, timeout: Option<Duration>) -> JobEnd {
    held.cancel.cancel();
    shared.desk.count(|stats| stats.timed_out += 1);
    let timeout = timeout.unwrap_or_default();
    failed(JobError::new(format!("timed out after {timeout:?}")))
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "without a message"
    }
}
