//! Counts state transitions from the results of store calls: the process whose call committed a transition counts it. Knows no database.

use super::recent_claims::RecentClaims;
use crate::metrics::{Kind, Metrics, Outcome, Reason, Status};
use leasehold_core::graph::GraphStop;
use leasehold_core::job::{JobClaim, JobFinish, JobFinished, JobRef, JobsClaimed, JobsRenewed};
use leasehold_core::{ExecutionId, FailureReason, JobId, JsonText, RequestId};
use leasehold_store::audit::AuditObserver;
use leasehold_store::change::ChangeObserver;
use leasehold_store::definition::DefinitionObserver;
use leasehold_store::drift::DriftObserver;
use leasehold_store::execution::{ExecutionFinish, ExecutionFinished, ExecutionObserver};
use leasehold_store::graph::{
    EndedExecution, GraphObserver, GraphStart, GraphStarted, GraphStopped,
};
use leasehold_store::installation::InstallationObserver;
use leasehold_store::instance::InstanceObserver;
use leasehold_store::job::{EnqueuedJob, ExpiredJob, JobObserver, JobsFinished, NewJob};
use leasehold_store::key::KeyObserver;
use leasehold_store::lock::{LockAcquired, LockObserver, LockRequest, LockToken};
use leasehold_store::notification::NotificationObserver;
use leasehold_store::prune::PruneObserver;
use leasehold_store::queue::QueueObserver;
use leasehold_store::request::{
    Cancel, Cancelled, Claim, ClaimOutcome, ClaimRef, Enqueue, Enqueued, Fail, Recovered, Redrive,
    RedriveMany, Redriven, Release, Released, RequestObserver, RequestsRenewed,
};
use leasehold_store::workspace::WorkspaceObserver;
use leasehold_store::{DatabaseObserver, SchemaObserver};
use prometheus_client::metrics::counter::Counter;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Observes a store and counts the transitions that its calls commit.
pub struct StoreEventCounters {
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
    /// Job claims that their holder has ended, or whose loss is counted. A renewal that does not find one of these has found no loss.
    ended_claims: RecentClaims,
}

impl StoreEventCounters {
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
            ended_claims: RecentClaims::default(),
            metrics,
        }
    }

    fn enqueued(&self, requests: usize) {
        self.metrics.enqueued.inc_by(requests as u64);
    }

    /// Counts a request that failed permanently.
    fn failed(&self, reason: FailureReason) {
        self.finished(Some(reason));
    }

    /// Counts a finished request, with a reason if it failed.
    fn finished(&self, reason: Option<FailureReason>) {
        let Some(reason) = reason else {
            self.ended_completed.inc();
            return;
        };
        self.ended_failed.inc();
        if let Some((_, counter)) = self.failed.iter().find(|(known, _)| *known == reason) {
            counter.inc();
        }
    }

    /// Counts and logs graphs that ended in the store; only this observer sees all of them.
    fn graphs_ended<'a>(&self, ended: impl IntoIterator<Item = &'a EndedExecution>) {
        for ended in ended {
            self.finished(ended.reason);
            tracing::info!(execution = %ended.execution, request = %ended.request, status = %ended.status, end = ?ended.end,
                "execution ended");
        }
    }

    /// Counts lost job leases: each once, by the first call that reports it.
    fn job_leases_lost(&self, claims: impl IntoIterator<Item = JobRef>) {
        let lost = self.ended_claims.insert(claims);
        self.job_losses.inc_by(lost as u64);
    }

    fn jobs_finished(&self, finishes: &[JobFinish], answer: &JobsFinished) {
        let claims_where = |wanted: fn(&JobFinished) -> bool| {
            let finished = finishes.iter().zip(&answer.jobs);
            let found = finished.filter(move |(_, finished)| wanted(finished));
            found.map(|(finish, _)| finish.claim)
        };
        // First, so that a repeated finish, which is answered with a lost lease, counts no loss.
        self.ended_claims
            .insert(claims_where(|finished| match finished {
                JobFinished::Completed | JobFinished::Failed | JobFinished::Queued { .. } => true,
                JobFinished::LeaseLost | JobFinished::NotWritten => false,
            }));
        self.job_leases_lost(claims_where(|finished| *finished == JobFinished::LeaseLost));
        let (mut completed, mut failed, mut queued, mut lost, mut unwritten) = (0, 0, 0, 0, 0_u64);
        for finished in &answer.jobs {
            match finished {
                JobFinished::Completed => completed += 1,
                JobFinished::Failed => failed += 1,
                JobFinished::Queued { .. } => queued += 1,
                JobFinished::LeaseLost => lost += 1,
                JobFinished::NotWritten => unwritten += 1,
            }
        }
        self.jobs_completed.inc_by(completed);
        self.jobs_failed.inc_by(failed);
        self.jobs_queued.inc_by(queued);
        self.jobs_lost.inc_by(lost);
        if let Some(error) = &answer.failure {
            tracing::warn!(
                error,
                jobs = unwritten,
                "failed to write results of some jobs; workers will retry"
            );
        }
    }
}

impl RequestObserver for StoreEventCounters {
    fn request_enqueue(&self, _: &Enqueue, answer: &Enqueued) {
        if let Enqueued::All(requests) = answer {
            let new = requests.iter().filter(|request| request.inserted);
            self.enqueued(new.count());
        }
    }

    fn request_claim(&self, claim: &Claim, answer: &ClaimOutcome) {
        match (answer, &claim.lock) {
            (ClaimOutcome::Claimed(claimed), _) => {
                for rejected in &claimed.rejected {
                    self.failed(rejected.reason);
                }
            }
            (ClaimOutcome::LockLost, Some(lock)) => self.metrics.lock_lost(lock),
            (ClaimOutcome::LockLost, None) => {}
        }
    }

    fn request_renew(&self, _: &str, _: &[ClaimRef], _: Duration, answer: &RequestsRenewed) {
        self.request_renewals.inc_by(answer.renewed.len() as u64);
    }

    fn request_release(&self, _: &str, _: &[Release], answer: &Vec<Released>) {
        for released in answer {
            match released {
                Released::Exhausted => self.failed(FailureReason::DispatchExhausted),
                Released::Cancelled => self.failed(FailureReason::Cancelled),
                Released::Pending | Released::Busy | Released::LeaseLost => {}
            }
        }
    }

    fn request_fail(&self, _: &str, fail: &Fail, answer: &bool) {
        if *answer {
            self.failed(fail.reason);
        }
    }

    fn request_recover(&self, _: &str, _: u32, answer: &Vec<Recovered>) {
        self.metrics.recovered.inc_by(answer.len() as u64);
        self.request_expiries.inc_by(answer.len() as u64);
    }

    fn request_cancel(&self, _: &Cancel, answer: &Cancelled) {
        match answer {
            Cancelled::Cancelled => self.failed(FailureReason::Cancelled),
            Cancelled::Requested(_)
            | Cancelled::Running(_)
            | Cancelled::AlreadyFinished
            | Cancelled::NotFound => {}
        }
    }

    fn request_redrive(&self, _: &Redrive, answer: &Redriven) {
        if matches!(answer, Redriven::Enqueued(_)) {
            self.enqueued(1);
        }
    }

    fn request_redrive_many(&self, _: &RedriveMany, answer: &Vec<(RequestId, RequestId)>) {
        self.enqueued(answer.len());
    }
}

impl ExecutionObserver for StoreEventCounters {
    fn execution_finish(&self, _: &str, _: &[ExecutionFinish], answer: &Vec<ExecutionFinished>) {
        for finished in answer {
            match finished {
                ExecutionFinished::Finished { reason, .. } => self.finished(*reason),
                ExecutionFinished::AlreadyFinished
                | ExecutionFinished::Busy
                | ExecutionFinished::NotFound => {}
            }
        }
    }
}

impl LockObserver for StoreEventCounters {
    fn lock_acquire(&self, request: &LockRequest, answer: &LockAcquired) {
        match answer {
            LockAcquired::Acquired { token, .. } => {
                self.metrics.set_lock_held(token, request.at_most_for);
            }
            LockAcquired::Held { .. } => self.metrics.lock_refused(&request.name),
        }
    }

    fn lock_extend(&self, token: &LockToken, at_most_for: Duration, answer: &bool) {
        match answer {
            true => self.metrics.set_lock_held(token, at_most_for),
            false => self.metrics.lock_lost(token),
        }
    }

    fn lock_release(&self, token: &LockToken, _: Duration, answer: &bool) {
        match answer {
            true => self.metrics.lock_released(token),
            false => self.metrics.lock_lost(token),
        }
    }
}

impl JobObserver for StoreEventCounters {
    fn job_enqueue(&self, jobs: &[NewJob], answer: &Vec<EnqueuedJob>) {
        let mut rest = jobs.iter().zip(answer).peekable();
        // Jobs of one call mostly go to one queue, so each run of the same queue is counted once.
        while let Some((first, enqueued)) = rest.next() {
            let mut new = u64::from(!enqueued.existing);
            while let Some((_, enqueued)) = rest.next_if(|(job, _)| job.queue == first.queue) {
                new += u64::from(!enqueued.existing);
            }
            self.metrics.jobs_enqueued(&first.queue, new);
        }
    }

    fn job_claim(&self, claim: &JobClaim, answer: &JobsClaimed) {
        if !answer.jobs.is_empty() {
            let jobs = answer.jobs.len() as u64;
            self.metrics.jobs_claimed(&claim.queue, jobs);
        }
    }

    fn job_renew(&self, _: &str, claims: &[JobRef], _: Duration, answer: &JobsRenewed) {
        self.job_renewals.inc_by(answer.renewed.len() as u64);
        // A job is in the answer at most once.
        if claims.len() > answer.renewed.len() + answer.busy.len() {
            self.job_leases_lost(lost_claims(claims, answer));
        }
    }

    fn job_progress(&self, _: &str, claim: JobRef, _: &JsonText, answer: &bool) {
        if !answer {
            self.job_leases_lost([claim]);
        }
    }

    fn job_finish(&self, _: &str, finishes: &[JobFinish], answer: &JobsFinished) {
        self.jobs_finished(finishes, answer);
        self.graphs_ended(&answer.ended);
    }

    fn job_requeue_expired(&self, _: u32, answer: &Vec<ExpiredJob>) {
        self.job_expiries.inc_by(answer.len() as u64);
    }
}

impl GraphObserver for StoreEventCounters {
    fn graph_start(&self, _: &GraphStart, answer: &GraphStarted) {
        if let GraphStarted::Ended(ended) = answer {
            self.graphs_ended([ended]);
        }
    }

    fn graph_stop(&self, _: ExecutionId, _: GraphStop, _: &str, _: &str, answer: &GraphStopped) {
        if let GraphStopped::Stopped(ended) = answer {
            self.graphs_ended([ended]);
        }
    }

    /// Counts expired graphs; the timeout sweeper logs them.
    fn graph_expire(&self, _: &str, _: u32, answer: &Vec<EndedExecution>) {
        for expired in answer {
            self.finished(expired.reason);
        }
    }
}

/// Returns the claims whose lease a renewal did not find.
fn lost_claims(claims: &[JobRef], answer: &JobsRenewed) -> Vec<JobRef> {
    // If a worker lost a job and claimed it again, only the highest token holds the lease.
    let mut highest: HashMap<JobId, i64> = HashMap::with_capacity(claims.len());
    for claim in claims {
        let token = highest.entry(claim.job).or_insert(claim.token);
        *token = claim.token.max(*token);
    }
    let held: HashSet<JobId> = answer.renewed.iter().chain(&answer.busy).copied().collect();
    let is_held =
        |claim: &JobRef| held.contains(&claim.job) && highest.get(&claim.job) == Some(&claim.token);
    let lost = claims.iter().filter(|claim| !is_held(claim));
    lost.copied().collect()
}

// Only the calls of these ports are counted, in `StoreMetrics`.
impl DatabaseObserver for StoreEventCounters {}
impl SchemaObserver for StoreEventCounters {}
impl WorkspaceObserver for StoreEventCounters {}
impl DefinitionObserver for StoreEventCounters {}
impl DriftObserver for StoreEventCounters {}
impl KeyObserver for StoreEventCounters {}
impl AuditObserver for StoreEventCounters {}
impl InstallationObserver for StoreEventCounters {}
impl InstanceObserver for StoreEventCounters {}
impl ChangeObserver for StoreEventCounters {}
impl NotificationObserver for StoreEventCounters {}
impl PruneObserver for StoreEventCounters {}
impl QueueObserver for StoreEventCounters {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::metrics::ExpositionFormat;
    use leasehold_store::request::EnqueuedRequest;

    /// Returns the value of a metric without labels after these outcomes.
    fn value_after(name: &str, count: impl FnOnce(&StoreEventCounters)) -> f64 {
        let counters = StoreEventCounters::new(Arc::new(Metrics::default()));
        count(&counters);
        let text = counters
            .metrics
            .render(ExpositionFormat::Prometheus)
            .unwrap();
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
        let answer = Enqueued::All(requests.to_vec());
        let enqueue = Enqueue {
            workspace: leasehold_store::fresh_id(),
            requests: Vec::new(),
            by: "test".to_owned(),
        };
        let name = "leasehold_requests_enqueued_total";
        assert_eq!(
            value_after(name, |counters| counters.request_enqueue(&enqueue, &answer)),
            2.0
        );
    }
}
