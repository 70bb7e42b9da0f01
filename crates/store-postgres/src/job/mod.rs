//! The WorkQueue on PostgreSQL: implements [`JobStore`]. Knows nothing of worker processes.

pub(crate) mod claim;
mod copy;
pub(crate) mod enqueue;
pub(crate) mod expiry_scan;
pub(crate) mod finish;
mod key_holders;
mod nodes;
pub(crate) mod notification;
pub(crate) mod queue_cache;
pub(crate) mod row;

use crate::error::is_lock_timeout;
use crate::lock_wait::LockWait;
use crate::param::Param;
use crate::pool;
use crate::row::PgRecord;
use crate::store::{Params, PostgresStore, sql};
use async_trait::async_trait;
use expiry_scan::ExpiryScan;
use leasehold_core::job::{JobClaim, JobFinish, JobRef, JobsClaimed, JobsRenewed};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{JobId, JobStatus, JsonText};
use leasehold_store::job::{
    EnqueuedJob, ExpiredJob, Job, JobCancelled, JobFilter, JobPrune, JobStore, JobsFinished,
    JobsPruned, NewJob,
};
use leasehold_store::{Page, PerEpoch, Result};
use queue_cache::QueueCache;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio_postgres::Row;

/// In-memory state of the WorkQueue; the clones of a store share it.
#[derive(Debug)]
pub(crate) struct Jobs {
    queue_cache: PerEpoch<QueueCache>,
    expiry_scan: PerEpoch<Mutex<ExpiryScan>>,
    /// Limits how many claims hold a connection at once.
    claims: Semaphore,
}

impl Jobs {
    /// Creates the state for a store with this many connections.
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            queue_cache: PerEpoch::default(),
            expiry_scan: PerEpoch::default(),
            claims: Semaphore::new((connections / 2).max(1)),
        }
    }
}

#[async_trait]
impl JobStore for PostgresStore {
    async fn job_enqueue(&self, jobs: &[NewJob]) -> Result<Vec<EnqueuedJob>> {
        enqueue::enqueue(self, jobs).await
    }

    async fn job_key_holders(&self, jobs: &[NewJob]) -> Result<Vec<Option<JobId>>> {
        key_holders::find(self, jobs).await
    }

    async fn job_claim(&self, claim: &JobClaim) -> Result<JobsClaimed> {
        claim::claim(self, claim).await
    }

    async fn job_renew(
        &self,
        worker: &str,
        claims: &[JobRef],
        lease: Duration,
    ) -> Result<JobsRenewed> {
        finish::renew(self, worker, claims, lease).await
    }

    async fn job_finish(&self, worker: &str, finishes: &[JobFinish]) -> Result<JobsFinished> {
        finish::finish(self, worker, finishes).await
    }

    async fn job_progress(&self, worker: &str, claim: JobRef, progress: &JsonText) -> Result<bool> {
        let progress = row::JsonIn(progress);
        let params: &Params<'_> = &[
            &self.given_now(),
            &worker,
            &claim.token,
            &claim.job.0,
            &progress,
        ];
        let row = self
            .one_free("job_progress", sql!("job/progress"), params)
            .await?;
        Ok(row.get("held"))
    }

    async fn job_requeue_expired(&self, limit: u32) -> Result<Vec<ExpiredJob>> {
        claim::requeue_expired(self, limit).await
    }

    async fn job_cancel(&self, id: JobId) -> Result<JobCancelled> {
        let params: &Params<'_> = &[&self.given_now(), &id.0];
        let row = self
            .one_free("job_cancel", sql!("job/cancel"), params)
            .await?;
        Ok(match row.get::<_, &str>("outcome") {
            "cancelled" => JobCancelled::Cancelled,
            "running" => JobCancelled::Running,
            "finished" => JobCancelled::Finished,
            "of_graph" => JobCancelled::OfGraph,
            _ => JobCancelled::NotFound,
        })
    }

    async fn job_get(&self, id: JobId) -> Result<Option<Job>> {
        let found = self
            .maybe("job_get", sql!("job/get"), &[&self.given_now(), &id.0])
            .await?;
        found.map(|row| Job::read(&PgRecord(&row))).transpose()
    }

    async fn job_list(&self, filter: &JobFilter, page: Page<JobId>) -> Result<Vec<Job>> {
        let context = "job_list";
        let before = page.after.map_or(i64::MAX, |id| id.0);
        let (now, rows) = (self.given_now(), page.rows());
        let client = pool::take(&self.pool, context).await?;
        let queue = match &filter.queue {
            None => None,
            Some(name) => match queue_cache::find(self, &client, name).await? {
                None => return Ok(Vec::new()),
                known => known,
            },
        };
        let statement = match (filter.status, queue.is_some()) {
            (None, false) => sql!("job/list"),
            (None, true) => sql!("job/list_of_queue"),
            (Some(JobStatus::Queued), false) => sql!("job/list_queued"),
            (Some(JobStatus::Queued), true) => sql!("job/list_queued_of_queue"),
            (Some(JobStatus::Running), false) => sql!("job/list_running"),
            (Some(JobStatus::Running), true) => sql!("job/list_running_of_queue"),
            (Some(JobStatus::Completed), false) => sql!("job/list_completed"),
            (Some(JobStatus::Completed), true) => sql!("job/list_completed_of_queue"),
            (Some(JobStatus::Failed), false) => sql!("job/list_failed"),
            (Some(JobStatus::Failed), true) => sql!("job/list_failed_of_queue"),
        };
        let mut params: Vec<&(dyn Param + Sync)> = vec![&now, &before];
        params.extend(queue.as_ref().map(|queue| queue as &(dyn Param + Sync)));
        params.push(&rows);
        let found = client.session().many(statement, &params).await?;
        found.iter().map(|row| Job::read(&PgRecord(row))).collect()
    }

    async fn job_prune(&self, prune: &JobPrune) -> Result<JobsPruned> {
        let context = "job_prune";
        let limit = i64::from(prune.limit.min(SWEEP_MAX_BATCH));
        let params: &Params<'_> = &[&prune.completed_before, &prune.failed_before, &limit];
        let pruned = self.execute(context, sql!("job/prune"), params).await;
        let jobs = match pruned {
            // One of the jobs is locked.
            Err(error) if is_lock_timeout(&error) => {
                self.execute(context, sql!("job/prune_free"), params)
                    .await?
            }
            pruned => pruned?,
        };
        let keys = self
            .execute(
                context,
                sql!("job/prune_keys"),
                &[&self.given_now(), &limit],
            )
            .await?;
        self.execute(context, sql!("job/prune_cursors"), &[])
            .await?;
        self.execute(context, sql!("job/prune_groups"), &[]).await?;
        Ok(JobsPruned { jobs, keys })
    }

    async fn job_notification_arm(&self) -> Result<bool> {
        Ok(self.job_notifier.arm().await)
    }

    fn subscribe_jobs(&self) -> watch::Receiver<u64> {
        self.job_notifier.subscribe()
    }
}

impl PostgresStore {
    /// Runs a statement like `one`. If it meets a row that another transaction has locked, tries again, and holds no connection meanwhile.
    async fn one_free(
        &self,
        context: &'static str,
        sql: &'static str,
        params: &Params<'_>,
    ) -> Result<Row> {
        let mut wait = LockWait::begin();
        loop {
            match self.one(context, sql, params).await {
                Err(error) => wait.pause_after(error).await?,
                row => return row,
            }
        }
    }
}
