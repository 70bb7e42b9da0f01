//! Jobs in the model: one row each with an explicit status. Knows no requests.

mod claim;
mod finish;
mod sweep;
mod turns;

pub(super) use super::claim::until;

use turns::{GroupCall, Groups};

use super::Model;
use super::queue_access::Sharing;
use super::state::constraint_error;
use async_trait::async_trait;
use leasehold_core::job::{
    JobClaim, JobEvent, JobFinish, JobRef, JobStatus, JobsClaimed, JobsRenewed,
};
use leasehold_core::{ExecutionId, JobId, JsonText, Timestamp};
use leasehold_store::job::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobStart, JobStore,
    JobsFinished, JobsPruned, NewJob,
};
use leasehold_store::queue::Queue;
use leasehold_store::{Page, Result};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;

/// The lease of a running job.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) worker: String,
    pub(super) claimed_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

/// A job's row.
#[derive(Clone, Debug)]
pub(super) struct JobRow {
    pub(super) new: NewJob,
    /// The payload that a claim returns; none: that of `new`.
    pub(super) claim_payload: Option<JsonText>,
    /// The graph node that the job runs.
    pub(super) node: Option<(ExecutionId, usize)>,
    pub(super) status: JobStatus,
    pub(super) created_at: Timestamp,
    pub(super) run_at: Timestamp,
    pub(super) attempts: u32,
    pub(super) token: i64,
    /// Set while running.
    pub(super) lease: Option<Lease>,
    pub(super) progress: Option<JsonText>,
    pub(super) result: Option<JsonText>,
    pub(super) last_error: Option<String>,
    pub(super) finished_at: Option<Timestamp>,
}

/// The job that holds a deduplication key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) job: JobId,
    /// None: until the job has ended.
    pub(super) until: Option<Timestamp>,
}

/// All jobs and queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    pub(super) queues: BTreeMap<String, Queue>,
    /// By queue; a queue without an entry is the installation's and shared with none.
    pub(super) sharing: BTreeMap<String, Sharing>,
    pub(super) rows: BTreeMap<JobId, JobRow>,
    /// By queue and key.
    pub(super) keys: BTreeMap<(String, String), Key>,
    /// Nodes whose job lost its last lease, with the error: their graph has not been updated yet.
    pub(super) exhausted: BTreeMap<(ExecutionId, usize), String>,
    /// Job ids that the store chose for nodes; the model adopts them.
    pub(super) chosen: BTreeMap<(ExecutionId, usize), JobId>,
    pub(super) limit: Option<u32>,
    pub(super) last_id: i64,
    pub(super) last_token: i64,
    /// By queue; a queue without an entry has no groups.
    pub(super) groups: BTreeMap<String, Groups>,
    pub(super) group_call: GroupCall,
    /// Whether a job may have become available since the last notification.
    pub(super) notify: bool,
}

/// `now` plus `by`, with the microsecond precision of databases.
pub(super) fn later(now: Timestamp, by: Duration) -> Timestamp {
    now + Duration::from_micros(u64::try_from(by.as_micros()).unwrap_or(u64::MAX))
}

impl Jobs {
    /// Enqueues jobs; `choose` maps the next id and the index in the call to the id to use.
    pub(super) fn enqueue(
        &mut self,
        new: &[NewJob],
        now: Timestamp,
        choose: &mut dyn FnMut(JobId, usize) -> JobId,
    ) -> Vec<EnqueuedJob> {
        let mut answers = Vec::new();
        for (index, new) in new.iter().enumerate() {
            self.queue(&new.queue, now);
            let holder = new
                .dedup
                .as_ref()
                .and_then(|d| self.holder(new, &d.key, now));
            if let Some(id) = holder {
                answers.push(EnqueuedJob { id, existing: true });
                continue;
            }
            let id = choose(JobId(self.last_id + 1), index);
            self.last_id = self.last_id.max(id.0);
            self.insert(id, new, now);
            let existing = false;
            answers.push(EnqueuedJob { id, existing });
        }
        answers
    }

    /// Enqueues jobs unless one has a key of invalid length.
    pub(super) fn enqueue_checked(
        &mut self,
        new: &[NewJob],
        now: Timestamp,
    ) -> Result<Vec<EnqueuedJob>> {
        let mut keys = new.iter().filter_map(|job| job.dedup.as_ref());
        if keys.any(|dedup| !(1..=255).contains(&dedup.key.chars().count())) {
            return Err(constraint_error("job_key_length"));
        }
        Ok(self.enqueue(new, now, &mut |next, _| next))
    }

    /// Enqueues the job of a node.
    pub(super) fn enqueue_node(
        &mut self,
        new: &NewJob,
        claim_payload: JsonText,
        node: (ExecutionId, usize),
        now: Timestamp,
    ) -> JobId {
        self.queue(&new.queue, now);
        let next = JobId(self.last_id + 1);
        let id = self.chosen.get(&node).copied().unwrap_or(next);
        self.last_id = self.last_id.max(id.0);
        self.insert(id, new, now);
        self.rows.entry(id).and_modify(|row| {
            row.node = Some(node);
            row.claim_payload = Some(claim_payload);
        });
        id
    }

    /// The job that holds a key in the queue of `new`.
    fn holder(&self, new: &NewJob, key: &str, now: Timestamp) -> Option<JobId> {
        let key = self.keys.get(&(new.queue.clone(), key.to_owned()))?;
        key.until.is_none_or(|until| until > now).then_some(key.job)
    }

    fn insert(&mut self, id: JobId, new: &NewJob, now: Timestamp) {
        let run_at = match new.start {
            JobStart::Now => now,
            JobStart::At(at) => at.max(now),
            JobStart::In(wait) => later(now, wait),
        };
        if let Some(dedup) = &new.dedup {
            let key = Key {
                job: id,
                until: dedup.window.map(|window| later(now, window)),
            };
            let of = (new.queue.clone(), dedup.key.clone());
            self.keys.insert(of, key);
        }
        let row = JobRow {
            claim_payload: None,
            new: new.clone(),
            node: None,
            status: JobStatus::Queued,
            created_at: now,
            run_at,
            attempts: 0,
            token: 0,
            lease: None,
            progress: None,
            result: None,
            last_error: None,
            finished_at: None,
        };
        assert!(self.rows.insert(id, row).is_none(), "job {id} is new");
        self.note_inserted(id);
        self.notify = true;
    }

    /// Applies a transition to a job.
    pub(super) fn step(&mut self, id: JobId, event: JobEvent, now: Timestamp) -> &mut JobRow {
        let row = self.rows.get_mut(&id).expect("the job exists");
        row.status = match row.status.after(event) {
            Ok(status) => status,
            Err(illegal) => panic!("invalid transition of job {id} in the model: {illegal}"),
        };
        if row.status != JobStatus::Running {
            row.lease = None;
            self.notify = true;
        }
        if event.refunds_attempt() {
            row.attempts -= 1;
        }
        if row.status.is_finished() {
            row.finished_at = Some(now);
            row.progress = None;
            self.keys
                .retain(|_, key| key.job != id || key.until.is_some());
        }
        self.note_step(id, event);
        self.rows.get_mut(&id).expect("the job exists")
    }

    /// Requeues a job.
    pub(super) fn requeue(&mut self, id: JobId, event: JobEvent, run_at: Timestamp) {
        self.step(id, event, run_at).run_at = run_at;
    }

    pub(super) fn get(&self, id: JobId, now: Timestamp) -> Option<Job> {
        let row = self.rows.get(&id)?;
        let settings = self.settings(&row.new.queue);
        let lease = row.lease.as_ref();
        let key = row
            .new
            .dedup
            .as_ref()
            .filter(|dedup| self.holder(&row.new, &dedup.key, now) == Some(id));
        Some(Job {
            id,
            queue: row.new.queue.clone(),
            kind: row.new.kind.clone(),
            group: row.new.group.clone(),
            status: row.status.into(),
            priority: row.new.priority,
            payload: row.new.payload.clone(),
            run_at: row.run_at,
            attempts: row.attempts,
            retry: settings.retry_of(row.new.max_attempts, row.new.backoff),
            timeout: row.new.timeout.or(settings.timeout),
            dedup_key: key.map(|dedup| dedup.key.clone()),
            claimed_by: lease.map(|lease| lease.worker.clone()),
            claimed_at: lease.map(|lease| lease.claimed_at),
            lease_expires_at: lease.map(|lease| lease.expires_at),
            token: row.token,
            progress: row.progress.clone(),
            result: row.result.clone(),
            last_error: row.last_error.clone(),
            trace_context: row.new.trace_context.clone(),
            created_at: row.created_at,
            execution: row.node.map(|(execution, _)| execution),
            finished_at: row.finished_at,
        })
    }

    pub(super) fn list(&self, filter: &JobFilter, page: Page<JobId>, now: Timestamp) -> Vec<Job> {
        let rows = usize::try_from(page.rows()).unwrap_or(0);
        let newest = self.rows.iter().rev();
        let passing = newest.filter(|(id, row)| {
            page.after.is_none_or(|after| **id < after)
                && filter.queue.as_ref().is_none_or(|q| *q == row.new.queue)
                && filter.status.is_none_or(|status| status == row.status)
        });
        passing
            .take(rows)
            .filter_map(|(id, _)| self.get(*id, now))
            .collect()
    }
}

#[async_trait]
impl JobStore for Model {
    async fn job_enqueue(&self, new: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
        self.jobs(|jobs, now| jobs.enqueue_checked(new, now))
    }

    async fn job_key_holders(&self, jobs: &[NewJob]) -> Result<Vec<Option<JobId>>> {
        let holder = |held: &Jobs, new: &NewJob, now| {
            let dedup = new.dedup.as_ref()?;
            held.holder(new, &dedup.key, now)
        };
        Ok(self.jobs(|held, now| jobs.iter().map(|new| holder(held, new, now)).collect()))
    }

    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        Ok(self.jobs(|jobs, now| jobs.claim_first(claim, now)))
    }

    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<JobsRenewed> {
        Ok(JobsRenewed {
            renewed: self.jobs(|jobs, now| jobs.renew(worker, claims, lease, now)),
            busy: Vec::new(),
        })
    }

    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished> {
        Ok(self.finish_jobs(worker, finishes))
    }

    async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool> {
        Ok(self.jobs(|jobs, now| jobs.progress(worker, claim, progress, now)))
    }

    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>> {
        Ok(self.jobs(|jobs, now| jobs.requeue_expired(limit, now)))
    }

    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled> {
        Ok(self.jobs(|jobs, now| jobs.cancel(id, now)))
    }

    async fn job_get(&self, id: JobId) -> Result<Option<Job>> {
        Ok(self.jobs(|jobs, now| jobs.get(id, now)))
    }

    async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>> {
        Ok(self.jobs(|jobs, now| jobs.list(filter, page, now)))
    }

    async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned> {
        Ok(self.jobs(|jobs, now| jobs.prune(prune, now)))
    }

    async fn job_notification_arm(&self) -> Result<bool> {
        Ok(true)
    }

    fn subscribe_jobs(&self) -> watch::Receiver<u64> {
        self.job_notifications.subscribe()
    }
}
