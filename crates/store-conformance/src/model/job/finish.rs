//! The operations of a lease holder in the model: renew, report progress, finish.

use super::{Jobs, later};
use leasehold_core::job::{
    JobEnd, JobEvent, JobFinish, JobFinished, JobRef, RetryMode, bounded_wait, jitter,
};
use leasehold_core::lease::bounded;
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::text::clip;
use leasehold_core::{JobId, JsonText, Timestamp};
use std::time::Duration;

impl Jobs {
    /// Whether a worker holds this claim and its lease has not expired.
    fn holds(&self, worker: &str, claim: JobRef, now: Timestamp) -> bool {
        self.rows.get(&claim.job).is_some_and(|row| {
            row.token == claim.token
                && row
                    .lease
                    .as_ref()
                    .is_some_and(|lease| lease.worker == worker && lease.expires_at > now)
        })
    }

    pub(in crate::model) fn renew(
        &mut self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
        now: Timestamp,
    ) -> Vec<JobId> {
        let held = claims.iter().filter(|c| self.holds(worker, **c, now));
        let held: Vec<JobId> = held.map(|claim| claim.job).collect();
        for id in &held {
            let row = self.rows.get_mut(id);
            if let Some(held) = row.and_then(|row| row.lease.as_mut()) {
                held.expires_at = later(now, bounded(lease));
            }
        }
        held
    }

    pub(in crate::model) fn progress(
        &mut self,
        worker: &str,
        claim: JobRef,
        progress: &JsonText,
        now: Timestamp,
    ) -> bool {
        let held = self.holds(worker, claim, now);
        if let Some(row) = self.rows.get_mut(&claim.job).filter(|_| held) {
            row.progress = Some(progress.clone());
        }
        held
    }

    /// Finishes a claim of a plain job or of a node.
    pub(in crate::model) fn finish(
        &mut self,
        worker: &str,
        finish: &JobFinish,
        now: Timestamp,
    ) -> JobFinished {
        if !self.holds(worker, finish.claim, now) {
            return JobFinished::LeaseLost;
        }
        let id = finish.claim.job;
        match &finish.end {
            JobEnd::Completed { result } => {
                self.step(id, JobEvent::Complete, now).result = result.clone();
                self.drop_unless_kept(id);
                JobFinished::Completed
            }
            JobEnd::Failed { error, retry_mode } => {
                let wait = self.wait_after(id, *retry_mode);
                let event = wait.map_or(JobEvent::Fail, |_| JobEvent::Retry);
                let row = self.step(id, event, now);
                row.last_error = Some(clip(error, ERROR_MAX_CHARS));
                match wait {
                    None => JobFinished::Failed,
                    Some(wait) => {
                        row.run_at = later(now, bounded_wait(wait));
                        JobFinished::Queued { run_at: row.run_at }
                    }
                }
            }
            JobEnd::Snoozed(wait) => {
                let run_at = later(now, bounded_wait(*wait));
                self.requeue(id, JobEvent::Snooze, run_at);
                JobFinished::Queued { run_at }
            }
            JobEnd::Returned => {
                self.requeue(id, JobEvent::Return, now);
                JobFinished::Queued { run_at: now }
            }
        }
    }

    /// The delay before the next attempt of a failed job; none after the last attempt.
    fn wait_after(&self, id: JobId, retry_mode: RetryMode) -> Option<Duration> {
        let row = &self.rows[&id];
        let settings = self.settings(&row.new.queue);
        let retry = settings.retry_of(row.new.max_attempts, row.new.backoff);
        match retry_mode {
            RetryMode::Policy => retry.after_failure(row.attempts, jitter(id, row.token)),
            RetryMode::After(wait) => (row.attempts < retry.max_attempts).then_some(wait),
            RetryMode::Never => None,
        }
    }

    fn drop_unless_kept(&mut self, id: JobId) {
        let queue = &self.rows[&id].new.queue;
        if !self.settings(queue).keep_completed {
            self.rows.remove(&id);
        }
    }
}
