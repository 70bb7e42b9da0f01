//! Writes down how claims ended: what there is at once, and what came meanwhile together after that. It never waits for company.

use crate::held::Held;
use crate::shared::Shared;
use crate::source::{SourceError, SourceResult};
use leasehold_core::job::{Again, JobEnd, JobFinish};
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_service::FailureStreak;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Runs until it is aborted.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut failures = FailureStreak::of("worker").action("write down how jobs ended");
    loop {
        let ends = shared.desk.ends(JOB_MAX_BATCH);
        if ends.is_empty() {
            shared.desk.results.notified().await;
        } else {
            write(&shared, ends, &mut failures).await;
        }
    }
}

/// Writes ends down in one statement, again and again while that can help.
async fn write(shared: &Shared, mut ends: Vec<JobFinish>, failures: &mut FailureStreak) {
    while !ends.is_empty() {
        match send(shared, &ends).await {
            Ok(left) if left.is_empty() => {
                failures.succeeded();
                return;
            }
            Ok(left) => {
                let (count, all) = (left.len(), ends.len());
                let error = format!("{count} of {all} ends were not written");
                ends = rest(shared, left, failures.failed(&error)).await;
            }
            Err(error) if error.is_retryable() => {
                ends = rest(shared, ends, failures.failed(&error)).await;
            }
            Err(error) if ends.len() == 1 => return unwritable(shared, ends, error).await,
            Err(_) => {
                // One that cannot be written must not keep the others from it.
                for end in ends {
                    Box::pin(write(shared, vec![end], failures)).await;
                }
                return;
            }
        }
    }
}

/// Waits before these ends are sent again. Returns those whose lease can still be believed in.
async fn rest(shared: &Shared, ends: Vec<JobFinish>, wait: Duration) -> Vec<JobFinish> {
    tokio::select! {
        () = sleep(wait) => {}
        // A worker that stops has no time to lose; the next failure rests again.
        () = shared.stopping.cancelled(), if !shared.stopping.is_cancelled() => {}
    }
    still_held(shared, ends)
}

/// Sends ends once. Returns those that were not written and may be sent again.
async fn send(shared: &Shared, ends: &[JobFinish]) -> SourceResult<Vec<JobFinish>> {
    let answers = shared.source.finish(&shared.options.name, ends).await?;
    let written = shared.desk.written(ends, &answers);
    for held in written.lost {
        say_lost(shared, &held, "its end was refused");
    }
    Ok(written.left)
}

/// Those whose lease can still be believed in; the others are given up.
fn still_held(shared: &Shared, ends: Vec<JobFinish>) -> Vec<JobFinish> {
    let now = Instant::now();
    let (held, gone): (Vec<_>, Vec<_>) = ends.into_iter().partition(|end| {
        let lease = shared.desk.lease(end.claim);
        lease.is_some_and(|held| held.holds(now))
    });
    for end in &gone {
        if let Some(held) = shared.desk.lease(end.claim) {
            say_lost(shared, &held, "it ran out before its end was written down");
        }
    }
    shared.desk.given_up(&gone);
    held
}

/// An end that the store will never take (a result that no column holds): written down as a failure that says so.
async fn unwritable(shared: &Shared, mut ends: Vec<JobFinish>, error: SourceError) {
    if let Some(end) = ends.first_mut() {
        tracing::error!(job = %end.claim.job, %error, "the end of a job cannot be written down; it counts as failed");
        end.end = JobEnd::Failed {
            error: format!("its end cannot be written down: {error}"),
            again: Again::Policy,
        };
    }
    match send(shared, &ends).await {
        Ok(left) => shared.desk.given_up(&left),
        Err(error) => {
            tracing::error!(%error, "nor can that be written down; its lease runs out by itself");
            shared.desk.given_up(&ends);
        }
    }
}

fn say_lost(shared: &Shared, held: &Held, why: &'static str) {
    tracing::warn!(job = %held.job.id, queue = %held.queue, kind = held.job.kind, token = held.job.token,
        attempt = held.job.attempt, worker = %shared.options.name, why, "lease lost; what the handler answered is dropped");
}
