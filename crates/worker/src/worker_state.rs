//! The state that a worker's tasks share: prefetched jobs, results to write, leases, counters. Knows no store and no handler.

use crate::leased_job::{LeasedJob, StopState};
use crate::stats::Stats;
use leasehold_core::job::{ClaimedJob, JobEnd, JobFinish, JobFinished, JobRef};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Limit on leases as a multiple of `concurrency + prefetch`. Leases beyond running and prefetched jobs belong to results not yet written.
const MAX_LEASES_FACTOR: usize = 4;

pub(crate) struct WorkerState {
    concurrency: usize,
    prefetch: usize,
    inner: Mutex<Inner>,
    /// Notified when a result is ready to be written.
    pub(crate) result_ready: Notify,
    /// Notified when there may be capacity for more jobs.
    pub(crate) capacity: Notify,
    /// Notified when the last runner exits, and when the last result is written.
    pub(crate) idle: Notify,
}

/// The answers to one finish call that need more work.
#[derive(Default)]
pub(crate) struct FinishReport {
    /// Jobs whose lease was lost.
    pub(crate) lost: Vec<Arc<LeasedJob>>,
    /// Results to send again.
    pub(crate) unwritten: Vec<JobFinish>,
}

#[derive(Default)]
struct Inner {
    /// Claimed and not started. Not empty only while all runners are busy.
    prefetched: VecDeque<Arc<LeasedJob>>,
    leases: HashMap<JobRef, Arc<LeasedJob>>,
    finishes: Vec<JobFinish>,
    /// Number of runners.
    running: usize,
    /// Number of results being written.
    writing: usize,
    stopping: bool,
    stats: Stats,
}

impl WorkerState {
    pub(crate) fn new(concurrency: usize, prefetch: usize) -> Self {
        Self {
            concurrency,
            prefetch,
            inner: Mutex::default(),
            result_ready: Notify::new(),
            capacity: Notify::new(),
            idle: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.lock().stats
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.lock().stats);
    }

    /// Returns how many jobs to claim now; `prefetch` includes jobs that cannot start yet. Returns 0 while enough jobs are prefetched, because
    /// a claim of many jobs costs as much as a claim of few.
    pub(crate) fn claim_capacity(&self, prefetch: bool) -> usize {
        let inner = self.lock();
        let max_prefetched = if prefetch { self.prefetch } else { 0 };
        let max_leases = MAX_LEASES_FACTOR * (self.concurrency + self.prefetch);
        if inner.stopping
            || inner.prefetched.len() > self.prefetch / 2
            || inner.leases.len() >= max_leases
        {
            return 0;
        }
        let in_use = inner.running + inner.prefetched.len();
        (self.concurrency + max_prefetched).saturating_sub(in_use)
    }

    /// Adds claimed jobs. Returns the jobs to start, whose runners are already counted; the rest is prefetched.
    pub(crate) fn add_claimed(
        &self,
        jobs: Vec<ClaimedJob>,
        queue: &Arc<str>,
        claim_sent: Instant,
    ) -> Vec<Arc<LeasedJob>> {
        let jobs: Vec<Arc<LeasedJob>> = jobs
            .into_iter()
            .map(|job| Arc::new(LeasedJob::new(job, queue.clone(), claim_sent)))
            .collect();
        let mut inner = self.lock();
        inner.stats.claimed += jobs.len() as u64;
        let mut start = Vec::with_capacity(jobs.len().min(self.concurrency));
        for job in jobs {
            inner.leases.insert(job.claim(), job.clone());
            if inner.stopping {
                inner.return_job(&job);
            } else if inner.running < self.concurrency {
                inner.running += 1;
                start.push(job);
            } else {
                inner.prefetched.push_back(job);
            }
        }
        let stopping = inner.stopping;
        drop(inner);
        if stopping {
            self.result_ready.notify_one();
        }
        start
    }

    /// Records the end of a job (`None` if it does not count) and returns the runner's next job. Without a next job the runner exits.
    pub(crate) fn next(&self, job: &LeasedJob, end: Option<JobEnd>) -> Option<Arc<LeasedJob>> {
        let mut inner = self.lock();
        let has_result = end
            .filter(|_| job.stop_state() != StopState::LeaseLost)
            .map(|end| inner.finish(job, end))
            .is_some();
        let next = inner.prefetched.pop_front();
        if next.is_none() {
            inner.running -= 1;
        }
        let has_capacity = inner.prefetched.len() <= self.prefetch / 2;
        let is_idle = inner.running == 0;
        drop(inner);
        if has_result {
            self.result_ready.notify_one();
        }
        if has_capacity {
            self.capacity.notify_one();
        }
        if is_idle {
            self.idle.notify_one();
        }
        next
    }

    /// Removes a lost lease. Returns whether the loss is new.
    pub(crate) fn lose_lease(&self, job: &LeasedJob) -> bool {
        // Under the lock, so that a result is either written or lost, not both.
        let mut inner = self.lock();
        if job.is_done() || !job.mark_lost() {
            return false;
        }
        inner.leases.remove(&job.claim());
        inner.stats.lost += 1;
        let before = inner.prefetched.len();
        inner
            .prefetched
            .retain(|prefetched| prefetched.claim() != job.claim());
        let has_capacity = inner.prefetched.len() < before;
        drop(inner);
        if has_capacity {
            self.capacity.notify_one();
        }
        true
    }

    /// Takes up to `max` results to write.
    pub(crate) fn take_finishes(&self, max: usize) -> Vec<JobFinish> {
        let mut inner = self.lock();
        let finishes = if inner.finishes.len() <= max {
            std::mem::take(&mut inner.finishes)
        } else {
            inner.finishes.drain(..max).collect()
        };
        inner.writing += finishes.len();
        finishes
    }

    /// Returns the leased job of a claim.
    pub(crate) fn lease(&self, claim: JobRef) -> Option<Arc<LeasedJob>> {
        self.lock().leases.get(&claim).cloned()
    }

    pub(crate) fn leases(&self) -> Vec<Arc<LeasedJob>> {
        self.lock().leases.values().cloned().collect()
    }

    /// Records the answers to a finish call.
    pub(crate) fn record_finished(
        &self,
        finishes: &[JobFinish],
        answers: &[JobFinished],
    ) -> FinishReport {
        let mut inner = self.lock();
        let mut report = FinishReport::default();
        for (finish, answer) in finishes.iter().zip(answers) {
            let stats = &mut inner.stats;
            let mut is_lost = false;
            match (answer, &finish.end) {
                (JobFinished::Completed, _) => stats.completed += 1,
                (JobFinished::Failed, _) => stats.failed += 1,
                (JobFinished::Queued { .. }, JobEnd::Snoozed(_)) => stats.snoozed += 1,
                (JobFinished::Queued { .. }, JobEnd::Returned) => stats.returned += 1,
                (JobFinished::Queued { .. }, JobEnd::Failed { .. } | JobEnd::Completed { .. }) => {
                    stats.retried += 1;
                }
                (JobFinished::LeaseLost, _) => {
                    stats.lost += 1;
                    is_lost = true;
                }
                (JobFinished::NotWritten, _) => {
                    report.unwritten.push(finish.clone());
                    continue;
                }
            }
            let job = inner.leases.remove(&finish.claim);
            report.lost.extend(job.filter(|_| is_lost));
        }
        inner.stats.finish_calls += 1;
        self.finishes_done(inner, finishes.len() - report.unwritten.len());
        report
    }

    /// Drops results that will not be written; their leases expire.
    pub(crate) fn drop_finishes(&self, finishes: &[JobFinish]) {
        let mut inner = self.lock();
        for finish in finishes {
            inner.leases.remove(&finish.claim);
        }
        inner.stats.lost += finishes.len() as u64;
        self.finishes_done(inner, finishes.len());
    }

    fn finishes_done(&self, mut inner: MutexGuard<'_, Inner>, count: usize) {
        inner.writing -= count;
        let is_idle = inner.writing == 0 && inner.finishes.is_empty();
        drop(inner);
        self.capacity.notify_one();
        if is_idle {
            self.idle.notify_one();
        }
    }

    /// Returns when the claim of the oldest prefetched job was sent.
    pub(crate) fn prefetched_since(&self) -> Option<Instant> {
        self.lock().prefetched.front().map(|job| job.claim_sent)
    }

    /// Returns all prefetched jobs to their queues.
    pub(crate) fn return_prefetched(&self) {
        self.return_prefetched_where(|_| true);
    }

    /// Returns the prefetched jobs of one queue.
    pub(crate) fn return_prefetched_of(&self, queue: &str) {
        self.return_prefetched_where(|job| &*job.queue == queue);
    }

    /// Stops accepting and starting jobs, and returns the prefetched ones.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.return_prefetched();
    }

    fn return_prefetched_where(&self, is_returned: impl Fn(&LeasedJob) -> bool) {
        let mut inner = self.lock();
        let (returned, kept): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut inner.prefetched)
            .into_iter()
            .partition(|job| is_returned(job));
        inner.prefetched = kept;
        for job in &returned {
            inner.return_job(job);
        }
        drop(inner);
        if !returned.is_empty() {
            self.result_ready.notify_one();
        }
    }

    /// Returns the number of runners.
    pub(crate) fn running(&self) -> usize {
        self.lock().running
    }

    /// Returns the number of results not yet written.
    pub(crate) fn unwritten(&self) -> usize {
        let inner = self.lock();
        inner.writing + inner.finishes.len()
    }
}

impl Inner {
    fn finish(&mut self, job: &LeasedJob, end: JobEnd) {
        job.set_done();
        self.finishes.push(JobFinish {
            claim: job.claim(),
            end,
        });
    }

    fn return_job(&mut self, job: &LeasedJob) {
        self.finish(job, JobEnd::Returned);
    }
}
