//! What the outcomes of store calls mean for the metrics: each transition is counted by who heard that it was committed. Knows no database.

use crate::metrics::{Kind, Metrics, Outcome, Reason, Status};
use leasehold_core::FailureReason;
use leasehold_core::job::JobFinished;
use leasehold_store::execution::ExecutionFinished;
use leasehold_store::graph::EndedExecution;
use leasehold_store::job::{EnqueuedJob, JobsFinished, NewJob};
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use leasehold_store::request::{Cancelled, Claim, ClaimOutcome, Enqueued, Released};
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;
use std::time::Duration;

/// Counts outcomes, in series that were found once.
pub(super) struct Tally {
    metrics: Arc<Metrics>,
    failed: Vec<(FailureReason, Counter)>,
    ended_failed: Counter,
    ended_completed: Counter,
    request_renewals: Counter,
    request_expiries: Counter,
    job_renewals: Counter,
    job_losses: Counter,
    job_expiries: Counter,
    jobs_completed: Counter,
    jobs_failed: Counter,
    jobs_queued: Counter,
    jobs_lost: Counter,
}

impl Tally {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        let all = &metrics;
        let reason = |of: FailureReason| {
            let reason = of.as_str();
            (of, all.failed.get_or_create_owned(&Reason { reason }))
        };
        let ended = |status| all.finished.get_or_create_owned(&Status { status });
        let renewed = |kind| all.renewed.get_or_create_owned(&Kind { kind });
        let lost = |kind| all.lost.get_or_create_owned(&Kind { kind });
        let expired = |kind| all.expired.get_or_create_owned(&Kind { kind });
        let job = |outcome| all.jobs_finished.get_or_create_owned(&Outcome { outcome });
        Self {
            failed: FailureReason::ALL.into_iter().map(reason).collect(),
            ended_failed: ended("failed"),
            ended_completed: ended("completed"),
            request_renewals: renewed("request"),
            request_expiries: expired("request"),
            job_renewals: renewed("job"),
            job_losses: lost("job"),
            job_expiries: expired("job"),
            jobs_completed: job("completed"),
            jobs_failed: job("failed"),
            jobs_queued: job("queued"),
            jobs_lost: job("lease_lost"),
            metrics,
        }
    }

    pub(super) fn enqueued(&self, came: &Enqueued) {
        if let Enqueued::All(requests) = came {
            let new = requests.iter().filter(|request| request.inserted);
            self.enqueued_anew(new.count());
        }
    }

    pub(super) fn enqueued_anew(&self, requests: usize) {
        self.metrics.enqueued.inc_by(requests as u64);
    }

    pub(super) fn claimed(&self, claim: &Claim, came: &ClaimOutcome) {
        match (came, &claim.lock) {
            (ClaimOutcome::Claimed(claimed), _) => {
                for rejected in &claimed.rejected {
                    self.failed(rejected.reason);
                }
            }
            (ClaimOutcome::LockLost, Some(lock)) => self.metrics.lock_lost(lock),
            (ClaimOutcome::LockLost, None) => {}
        }
    }

    pub(super) fn renewed(&self, requests: usize) {
        self.request_renewals.inc_by(requests as u64);
    }

    pub(super) fn released(&self, came: &[Released]) {
        for released in came {
            match released {
                Released::Exhausted => self.failed(FailureReason::DispatchExhausted),
                Released::Cancelled => self.failed(FailureReason::Cancelled),
                Released::Pending | Released::LeaseLost => {}
            }
        }
    }

    pub(super) fn recovered(&self, requests: usize) {
        self.metrics.recovered.inc_by(requests as u64);
        self.request_expiries.inc_by(requests as u64);
    }

    pub(super) fn cancelled(&self, came: Cancelled) {
        match came {
            Cancelled::Cancelled => self.failed(FailureReason::Cancelled),
            Cancelled::Wished(_)
            | Cancelled::Running(_)
            | Cancelled::AlreadyFinished
            | Cancelled::NotFound => {}
        }
    }

    pub(super) fn finished(&self, came: &[ExecutionFinished]) {
        for finished in came {
            match finished {
                ExecutionFinished::Finished { reason, .. } => self.ended(*reason),
                ExecutionFinished::AlreadyFinished | ExecutionFinished::NotFound => {}
            }
        }
    }

    /// A request failed for good.
    pub(super) fn failed(&self, reason: FailureReason) {
        self.ended(Some(reason));
    }

    /// A request has ended, with a reason if it failed.
    fn ended(&self, reason: Option<FailureReason>) {
        let Some(reason) = reason else {
            self.ended_completed.inc();
            return;
        };
        self.ended_failed.inc();
        if let Some((_, counter)) = self.failed.iter().find(|(known, _)| *known == reason) {
            counter.inc();
        }
    }

    /// Graphs that time ended; whoever asks for them says why.
    pub(super) fn graphs_settled(&self, came: &[EndedExecution]) {
        for settled in came {
            self.ended(settled.reason);
        }
    }

    /// Graphs that ended in the store. Nobody else hears of all of them, so it is said here.
    pub(super) fn graphs_ended<'a>(&self, came: impl IntoIterator<Item = &'a EndedExecution>) {
        for ended in came {
            self.ended(ended.reason);
            tracing::info!(execution = %ended.execution, request = %ended.request, status = %ended.status, end = ?ended.end,
                "execution ended");
        }
    }

    pub(super) fn lock_acquired(&self, asked: &LockRequest, came: &LockAcquired) {
        match came {
            LockAcquired::Acquired { token, .. } => {
                self.metrics.lock_kept(token, asked.at_most_for);
            }
            LockAcquired::Held { .. } => self.metrics.lock_refused(&asked.name),
        }
    }

    pub(super) fn lock_extended(&self, token: &LockToken, at_most_for: Duration, held: bool) {
        match held {
            true => self.metrics.lock_kept(token, at_most_for),
            false => self.metrics.lock_lost(token),
        }
    }

    pub(super) fn lock_released(&self, token: &LockToken, held: bool) {
        match held {
            true => self.metrics.lock_given_back(token),
            false => self.metrics.lock_lost(token),
        }
    }

    pub(super) fn jobs_enqueued(&self, jobs: &[NewJob], came: &[EnqueuedJob]) {
        let mut rest = jobs.iter().zip(came).peekable();
        // Jobs of one call mostly go to one queue, so the name is looked up once for all that stand together.
        while let Some((first, enqueued)) = rest.next() {
            let mut new = u64::from(!enqueued.existing);
            while let Some((_, enqueued)) = rest.next_if(|(job, _)| job.queue == first.queue) {
                new += u64::from(!enqueued.existing);
            }
            self.metrics.jobs_enqueued(&first.queue, new);
        }
    }

    pub(super) fn jobs_claimed(&self, queue: &str, jobs: usize) {
        if jobs > 0 {
            self.metrics.jobs_claimed(queue, jobs as u64);
        }
    }

    pub(super) fn jobs_renewed(&self, jobs: usize) {
        self.job_renewals.inc_by(jobs as u64);
    }

    pub(super) fn jobs_expired(&self, jobs: usize) {
        self.job_expiries.inc_by(jobs as u64);
    }

    pub(super) fn jobs_finished(&self, came: &JobsFinished) {
        let (mut completed, mut failed, mut queued, mut lost) = (0, 0, 0, 0);
        for finished in &came.jobs {
            match finished {
                JobFinished::Completed => completed += 1,
                JobFinished::Failed => failed += 1,
                JobFinished::Queued { .. } => queued += 1,
                JobFinished::LeaseLost => lost += 1,
            }
        }
        self.jobs_completed.inc_by(completed);
        self.jobs_failed.inc_by(failed);
        self.jobs_queued.inc_by(queued);
        self.jobs_lost.inc_by(lost);
        self.job_losses.inc_by(lost);
        self.graphs_ended(&came.ended);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::metrics::Format;
    use leasehold_store::request::EnqueuedRequest;

    /// What a metric without labels shows after these outcomes.
    fn shown(name: &str, counted: impl FnOnce(&Tally)) -> f64 {
        let tally = Tally::new(Arc::new(Metrics::default()));
        counted(&tally);
        let text = tally.metrics.shown(Format::Prometheus).unwrap();
        let mut values = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        values.next().unwrap().parse().unwrap()
    }

    #[test]
    fn only_inserted_requests_count_as_enqueued() {
        let requests = [true, false, true].map(|inserted| EnqueuedRequest {
            id: leasehold_store::fresh_id(),
            inserted,
        });
        let came = Enqueued::All(requests.to_vec());
        let name = "leasehold_requests_enqueued_total";
        assert_eq!(shown(name, |tally| tally.enqueued(&came)), 2.0);
    }
}
