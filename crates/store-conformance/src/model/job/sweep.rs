//! Maintenance of jobs in the model: expired leases, cancellation, pruning.

use super::Jobs;
use leasehold_core::job::{JobEvent, JobRef};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{JobId, JobStatus, Timestamp};
use leasehold_store::graph::ABANDONED;
use leasehold_store::job::{ExpiredJob, JobCancelled, JobPrune, JobsPruned};

impl Jobs {
    /// Jobs whose lease has ended.
    pub(in crate::model) fn expired(&self, now: Timestamp) -> Vec<JobId> {
        let all = self.rows.iter();
        all.filter(|(_, row)| row.lease.as_ref().is_some_and(|l| l.expires_at <= now))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Requeues or fails these jobs with expired leases.
    pub(in crate::model) fn requeue_expired_jobs(
        &mut self,
        ids: &[JobId],
        now: Timestamp,
    ) -> Vec<ExpiredJob> {
        ids.iter()
            .map(|id| self.requeue_expired_job(*id, now))
            .collect()
    }

    fn requeue_expired_job(&mut self, id: JobId, now: Timestamp) -> ExpiredJob {
        let row = &self.rows[&id];
        let queue = row.new.queue.clone();
        let worker = row.lease.as_ref().map(|lease| lease.worker.clone());
        let worker = worker.unwrap_or_default();
        let settings = self.settings(&queue);
        let retry = settings.retry_of(row.new.max_attempts, row.new.backoff);
        let claim = JobRef {
            job: id,
            token: row.token,
        };
        let event = match row.attempts < retry.max_attempts {
            true => JobEvent::Expire,
            false => JobEvent::Exhaust,
        };
        let row = self.step(id, event, now);
        row.last_error = Some(format!("the lease of {worker} expired"));
        if event == JobEvent::Expire {
            row.run_at = now;
        }
        let (status, node, error) = (row.status, row.node, row.last_error.clone());
        if let (JobEvent::Exhaust, Some(node)) = (event, node) {
            self.exhausted.insert(node, error.unwrap_or_default());
        }
        ExpiredJob {
            claim,
            queue,
            worker,
            status,
        }
    }

    pub(in crate::model) fn requeue_expired(
        &mut self,
        limit: u32,
        now: Timestamp,
    ) -> Vec<ExpiredJob> {
        let mut expired = self.expired(now);
        expired.truncate(limit.min(SWEEP_MAX_BATCH) as usize);
        self.requeue_expired_jobs(&expired, now)
    }

    /// Ends a job whose execution has ended, whatever its status: deletes it if it was never claimed, and fails it otherwise. Returns whether it
    /// was ever claimed.
    pub(in crate::model) fn abandon(&mut self, id: JobId, now: Timestamp) -> bool {
        let event = match self.rows.get(&id).map(|row| (row.status, row.token)) {
            Some((JobStatus::Queued, 0)) => {
                self.rows.remove(&id);
                return false;
            }
            Some((JobStatus::Queued, _)) => JobEvent::Cancel,
            Some((JobStatus::Running, _)) => JobEvent::Fail,
            Some((JobStatus::Completed | JobStatus::Failed, _)) | None => return true,
        };
        self.step(id, event, now).last_error = Some(ABANDONED.to_owned());
        true
    }

    /// The attempts of a job, whose row may already be deleted.
    pub(in crate::model) fn attempts(&self, id: JobId) -> u32 {
        self.rows.get(&id).map_or(1, |row| row.attempts)
    }

    pub(in crate::model) fn cancel(&mut self, id: JobId, now: Timestamp) -> JobCancelled {
        let row = self.rows.get(&id);
        let of_graph = row.is_some_and(|row| row.node.is_some());
        match row.map(|row| row.status) {
            Some(JobStatus::Queued | JobStatus::Running) if of_graph => JobCancelled::OfGraph,
            None => JobCancelled::NotFound,
            Some(JobStatus::Running) => JobCancelled::Running,
            Some(JobStatus::Completed | JobStatus::Failed) => JobCancelled::Finished,
            Some(JobStatus::Queued) => {
                self.step(id, JobEvent::Cancel, now).last_error = Some("cancelled".to_owned());
                self.leave_if_empty(id, now);
                JobCancelled::Cancelled
            }
        }
    }

    pub(in crate::model) fn prune(&mut self, prune: &JobPrune, now: Timestamp) -> JobsPruned {
        let mut ended: Vec<(Timestamp, JobId)> = self
            .rows
            .iter()
            .filter_map(|(id, row)| {
                let before = match row.status {
                    JobStatus::Completed => prune.completed_before,
                    JobStatus::Failed => prune.failed_before,
                    JobStatus::Queued | JobStatus::Running => None,
                }?;
                let finished = row.finished_at?;
                (finished < before).then_some((finished, *id))
            })
            .collect();
        ended.sort_unstable();
        let limit = prune.limit.min(SWEEP_MAX_BATCH) as usize;
        ended.truncate(limit);
        for (_, id) in &ended {
            self.rows.remove(id);
        }
        let passed = |until: &Option<Timestamp>| until.is_some_and(|until| until <= now);
        let keys = self.keys.iter().filter(|(_, key)| passed(&key.until));
        let keys: Vec<_> = keys.map(|(of, _)| of.clone()).take(limit).collect();
        for of in &keys {
            self.keys.remove(of);
        }
        JobsPruned {
            jobs: ended.len() as u64,
            keys: keys.len() as u64,
        }
    }
}
