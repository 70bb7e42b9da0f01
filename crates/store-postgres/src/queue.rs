//! Reads and updates queues and their limits.

use crate::audit;
use crate::job::{enqueue::GROUPS_LINE, queue_cache, row as job_row};
use crate::pool;
use crate::queue_access;
use crate::row::{self, micros};
use crate::store::{Params, PostgresStore, sql};
use crate::transaction::OpenTransaction;
use async_trait::async_trait;
use leasehold_core::WorkspaceId;
use leasehold_core::lease::bounded;
use leasehold_core::limits::{JOB_OVERHEAD_BYTES, PAGE_MAX};
use leasehold_store::audit::AuditRecord;
use leasehold_store::queue::{
    JobCounts, Queue, QueueChange, QueueOwnership, QueueShared, QueueStore, QueueUse, SharedWith,
};
use leasehold_store::{Actor, Page, Result};
use tokio_postgres::Row;
use uuid::Uuid;

#[async_trait]
impl QueueStore for PostgresStore {
    async fn queue_update(&self, name: &str, change: &QueueChange, by: &Actor) -> Result<Queue> {
        let context = "queue_update";
        let mut client = pool::take(&self.pool, context).await?;
        let transaction = OpenTransaction::begin(&mut client).await?;
        let id = queue_cache::ensure_in(self, &transaction, name).await?;
        transaction.one(sql!("queue/lock"), &[&id]).await?;
        let row = transaction
            .one(
                sql!("queue/update"),
                &[
                    &id,
                    &change.limit.is_some(),
                    &limit_column(change.limit.flatten()),
                    &change.paused,
                    &change.keep_completed,
                    &change.lease.map(|lease| micros(bounded(lease))),
                    &limit_column(change.retry.map(|retry| retry.max_attempts)),
                    &change.retry.map(|retry| micros(retry.backoff.base)),
                    &change.retry.map(|retry| micros(retry.backoff.max)),
                    &change.retry.map(|retry| retry.backoff.factor),
                    &change.retry.map(|retry| retry.backoff.jitter),
                    &change.timeout.is_some(),
                    &change.timeout.flatten().map(micros),
                    &change.group_limit.is_some(),
                    &limit_column(change.group_limit.flatten()),
                ],
            )
            .await?;
        if let Some(limit) = change.group_limit {
            if limit.is_some() {
                let (queues, lines) = (vec![id], vec![GROUPS_LINE]);
                let line: &Params<'_> = &[&queues, &lines];
                transaction.execute(sql!("queue/line"), line).await?;
            }
            let params: &Params<'_> = &[&id, &transaction.job_xid_offset];
            transaction.one(sql!("queue/regroup"), params).await?;
        }
        let now = self.given_now();
        let record = AuditRecord::queue_update(name, change);
        audit::record(&transaction, now, by, &record).await?;
        transaction.commit().await?;
        self.job_notifier.wake();
        job_row::queue(&row)
    }

    async fn queue_get(&self, name: &str) -> Result<Option<Queue>> {
        let found = self.maybe("queue_get", sql!("queue/get"), &[&name]).await?;
        found.as_ref().map(job_row::queue).transpose()
    }

    async fn queue_list(&self, page: &Page<String>) -> Result<Vec<Queue>> {
        let rows = page.rows();
        let after = page.after.as_deref().unwrap_or_default();
        let found = self
            .many("queue_list", sql!("queue/list"), &[&after, &rows])
            .await?;
        found.iter().map(job_row::queue).collect()
    }

    async fn queue_counts(&self, name: &str) -> Result<JobCounts> {
        let context = "queue_counts";
        let client = pool::take(&self.pool, context).await?;
        let Some(queue) = queue_cache::find(self, &client, name).await? else {
            return Ok(JobCounts::default());
        };
        let params: &Params<'_> = &[&self.given_now(), &queue];
        let row = client.session().one(sql!("job/counts"), params).await?;
        let count = |column: &str| row.get::<_, i64>(column).unsigned_abs();
        Ok(JobCounts {
            ready: count("fresh") + count("due"),
            scheduled: count("scheduled"),
            running: count("running"),
            completed: count("completed"),
            failed: count("failed"),
        })
    }

    async fn queue_open_bytes(&self, queues: &[String], up_to: u64) -> Result<u64> {
        let overhead = i64::try_from(JOB_OVERHEAD_BYTES).unwrap_or(i64::MAX);
        let jobs = i64::try_from(up_to / JOB_OVERHEAD_BYTES + 1).unwrap_or(i64::MAX);
        let row = self
            .one(
                "queue_open_bytes",
                sql!("queue/open_bytes"),
                &[&queues, &overhead, &jobs],
            )
            .await?;
        Ok(row.get::<_, i64>("bytes").unsigned_abs())
    }

    async fn queue_overview(&self, limit: u32, up_to: u32) -> Result<Vec<QueueUse>> {
        // One more than `up_to` tells whether there are more.
        let (shown, counted) = (i64::from(limit.min(PAGE_MAX)), i64::from(up_to) + 1);
        let rows = self
            .many(
                "queue_overview",
                sql!("queue/overview"),
                &[&self.given_now(), &shown, &counted],
            )
            .await?;
        let queue_use = |row: &Row| {
            let waiting: u64 = row::count(row, "waiting")?;
            Ok(QueueUse {
                queue: job_row::queue(row)?,
                running: row::count(row, "running")?,
                waiting: waiting.min(u64::from(up_to)),
                more_waiting: waiting > u64::from(up_to),
            })
        };
        rows.iter().map(queue_use).collect()
    }

    async fn queue_ownership(&self, names: &[String]) -> Result<Vec<QueueOwnership>> {
        let rows = self
            .many("queue_ownership", sql!("queue/ownership"), &[&names])
            .await?;
        Ok(rows.iter().map(queue_access::ownership).collect())
    }

    async fn queue_share(&self, name: &str, with: &SharedWith, by: &Actor) -> Result<QueueShared> {
        queue_access::share(self, name, with, by).await
    }

    async fn queue_refused(
        &self,
        name: &str,
        workspaces: &[WorkspaceId],
    ) -> Result<Option<WorkspaceId>> {
        let ids: Vec<Uuid> = workspaces.iter().map(|workspace| workspace.0).collect();
        let refused = self
            .maybe("queue_refused", sql!("queue/refused"), &[&name, &ids])
            .await?;
        Ok(refused.map(|row| row::id(&row, "id")))
    }

    async fn job_limit(&self) -> Result<Option<u32>> {
        let row = self.one("job_limit", sql!("job/limit"), &[]).await?;
        Ok(row.get::<_, Option<i32>>("max_running").map(job_row::count))
    }

    async fn job_limit_set(&self, limit: Option<u32>, by: &Actor) -> Result<()> {
        let context = "job_limit_set";
        let mut client = pool::take(&self.pool, context).await?;
        let transaction = OpenTransaction::begin(&mut client).await?;
        transaction.one(sql!("job/limit_lock"), &[]).await?;
        transaction
            .execute(sql!("job/limit_set"), &[&limit_column(limit)])
            .await?;
        transaction.one(sql!("job/notify"), &[]).await?;
        let record = AuditRecord::job_limit_set(limit);
        audit::record(&transaction, self.given_now(), by, &record).await?;
        transaction.commit().await?;
        self.job_notifier.wake();
        Ok(())
    }
}

fn limit_column(limit: Option<u32>) -> Option<i32> {
    limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX))
}
