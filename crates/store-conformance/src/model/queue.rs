//! Queues in the model: settings, limits and counts. Knows jobs only as rows to count.

use super::Model;
use super::job::{Jobs, until};
use async_trait::async_trait;
use leasehold_core::lease::bounded;
use leasehold_core::limits::{JOB_OVERHEAD_BYTES, PAGE_MAX};
use leasehold_core::queue::QueueSettings;
use leasehold_core::{JobStatus, Timestamp, WorkspaceId};
use leasehold_store::audit::AuditRecord;
use leasehold_store::queue::{
    JobCounts, Queue, QueueChange, QueueOwnership, QueueShared, QueueStore, QueueUse, SharedWith,
};
use leasehold_store::{Actor, Page, Result};
use std::cmp::Reverse;

impl Jobs {
    /// Returns the queue of this name and creates it if it is missing.
    pub(super) fn queue(&mut self, name: &str, now: Timestamp) -> &mut Queue {
        let made = || Queue {
            name: name.to_owned(),
            settings: QueueSettings::default(),
            created_at: now,
        };
        self.queues.entry(name.to_owned()).or_insert_with(made)
    }

    /// The settings of a queue, or the defaults.
    pub(super) fn settings(&self, queue: &str) -> QueueSettings {
        let queue = self.queues.get(queue);
        queue.map(|queue| queue.settings).unwrap_or_default()
    }

    pub(super) fn update_queue(
        &mut self,
        name: &str,
        change: &QueueChange,
        now: Timestamp,
    ) -> Queue {
        let queue = self.queue(name, now);
        let settings = &mut queue.settings;
        settings.limit = change.limit.unwrap_or(settings.limit);
        settings.group_limit = change.group_limit.unwrap_or(settings.group_limit);
        settings.paused = change.paused.unwrap_or(settings.paused);
        settings.keep_completed = change.keep_completed.unwrap_or(settings.keep_completed);
        settings.lease = bounded(change.lease.unwrap_or(settings.lease));
        settings.retry = change.retry.unwrap_or(settings.retry);
        settings.timeout = change.timeout.unwrap_or(settings.timeout);
        let queue = queue.clone();
        self.apply_group_limit(name);
        self.notify = true;
        queue
    }

    pub(super) fn list_queues(&self, page: &Page<String>) -> Vec<Queue> {
        let rows = usize::try_from(page.rows()).unwrap_or(0);
        let all = self.queues.values();
        all.filter(|queue| page.after.as_ref().is_none_or(|after| queue.name > *after))
            .take(rows)
            .cloned()
            .collect()
    }

    pub(super) fn set_limit(&mut self, limit: Option<u32>) {
        self.limit = limit;
        self.notify = true;
    }

    pub(super) fn counts(&self, queue: &str, now: Timestamp) -> JobCounts {
        let mut counts = JobCounts::default();
        for row in self.rows.values().filter(|row| row.new.queue == queue) {
            *match row.status {
                JobStatus::Queued if row.run_at <= now => &mut counts.ready,
                JobStatus::Queued => &mut counts.scheduled,
                JobStatus::Running => &mut counts.running,
                JobStatus::Completed => &mut counts.completed,
                JobStatus::Failed => &mut counts.failed,
            } += 1;
        }
        counts
    }

    pub(super) fn open_bytes(&self, queues: &[String]) -> u64 {
        let rows = self.rows.values();
        let open = rows.filter(|row| matches!(row.status, JobStatus::Queued | JobStatus::Running));
        let own = open.filter(|row| queues.contains(&row.new.queue));
        own.map(|row| row.new.payload.as_str().len() as u64 + JOB_OVERHEAD_BYTES)
            .sum()
    }

    pub(super) fn overview(&self, limit: u32, up_to: u32, now: Timestamp) -> Vec<QueueUse> {
        let all = self.queues.values().map(|queue| {
            let counts = self.counts(&queue.name, now);
            QueueUse {
                queue: queue.clone(),
                running: counts.running,
                waiting: counts.ready.min(u64::from(up_to)),
                more_waiting: counts.ready > u64::from(up_to),
            }
        });
        let mut all: Vec<QueueUse> = all.collect();
        // The queues are ordered by name already.
        all.sort_by_key(|one| Reverse(one.running));
        all.truncate(limit.min(PAGE_MAX) as usize);
        all
    }

    /// How many jobs of a queue its own and the global limit still allow.
    pub(super) fn capacity(&self, queue: &str) -> usize {
        let running = |of: Option<&str>| {
            let rows = self.rows.values();
            rows.filter(|row| row.status == JobStatus::Running)
                .filter(|row| of.is_none_or(|queue| row.new.queue == queue))
                .count()
        };
        let left = |limit: Option<u32>, of: Option<&str>| {
            limit.map_or(usize::MAX, |limit| {
                (limit as usize).saturating_sub(running(of))
            })
        };
        left(self.settings(queue).limit, Some(queue)).min(left(self.limit, None))
    }

    /// The time until the next scheduled job of a queue is due.
    pub(super) fn next_due_in(&self, queue: &str, now: Timestamp) -> Option<std::time::Duration> {
        let rows = self.rows.values().filter(|row| row.new.queue == queue);
        rows.filter(|row| row.status == JobStatus::Queued && row.run_at > now)
            .map(|row| row.run_at)
            .min()
            .map(|at| until(now, at))
    }
}

#[async_trait]
impl QueueStore for Model {
    async fn queue_update(&self, name: &str, change: &QueueChange, by: &Actor) -> Result<Queue> {
        let record = AuditRecord::queue_update(name, change);
        self.state().audit(by, record, self.now());
        Ok(self.jobs(|jobs, now| jobs.update_queue(name, change, now)))
    }

    async fn queue_get(&self, name: &str) -> Result<Option<Queue>> {
        Ok(self.jobs(|jobs, _| jobs.queues.get(name).cloned()))
    }

    async fn queue_list(&self, page: &Page<String>) -> Result<Vec<Queue>> {
        Ok(self.jobs(|jobs, _| jobs.list_queues(page)))
    }

    async fn queue_counts(&self, name: &str) -> Result<JobCounts> {
        Ok(self.jobs(|jobs, now| jobs.counts(name, now)))
    }

    async fn queue_open_bytes(&self, queues: &[String], _: u64) -> Result<u64> {
        Ok(self.jobs(|jobs, _| jobs.open_bytes(queues)))
    }

    async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>> {
        Ok(self.jobs(|jobs, now| jobs.overview(limit, up_to, now)))
    }

    async fn queue_ownership(&self, names: &[String]) -> Result<Vec<QueueOwnership>> {
        Ok(self.queue_ownership_of(names))
    }

    async fn queue_share(&self, name: &str, with: &SharedWith, by: &Actor) -> Result<QueueShared> {
        Ok(self.share_queue(name, with, by))
    }

    async fn queue_refused(
        &self,
        name: &str,
        workspaces: &[WorkspaceId],
    ) -> Result<Option<WorkspaceId>> {
        let mut all = workspaces.iter().copied();
        Ok(self.jobs(|jobs, _| all.find(|workspace| !jobs.permits(name, *workspace))))
    }

    async fn job_limit(&self) -> Result<Option<u32>> {
        Ok(self.jobs(|jobs, _| jobs.limit))
    }

    async fn job_limit_set(&self, limit: Option<u32>, by: &Actor) -> Result<()> {
        let record = AuditRecord::job_limit_set(limit);
        self.state().audit(by, record, self.now());
        self.jobs(|jobs, _| jobs.set_limit(limit));
        Ok(())
    }
}
