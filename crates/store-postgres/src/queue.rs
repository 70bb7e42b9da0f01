//! Queues and limits: reading and changing them.

use crate::error::postgres;
use crate::job::{names, row};
use crate::pool;
use crate::row::micros;
use crate::store::{PostgresStore, sql};
use leasehold_core::lease::bounded;
use leasehold_store::queue::{Queue, QueueChange};
use leasehold_store::{Page, Result};

fn limit_column(limit: Option<u32>) -> Option<i32> {
    limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX))
}

pub(crate) async fn update(
    store: &PostgresStore,
    name: &str,
    change: &QueueChange,
) -> Result<Queue> {
    let context = "queue_update";
    let id = names::ensure(store, context, name).await?;
    let mut client = pool::take(&store.pool, context).await?;
    let transaction = client.transaction().await.map_err(postgres(context))?;
    transaction
        .query_one(sql!("queue/lock"), &[&id])
        .await
        .map_err(postgres(context))?;
    let row = transaction
        .query_one(
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
            ],
        )
        .await
        .map_err(postgres(context))?;
    transaction.commit().await.map_err(postgres(context))?;
    store.job_wakes.ring();
    row::queue(&row)
}

pub(crate) async fn get(store: &PostgresStore, name: &str) -> Result<Option<Queue>> {
    let found = store
        .maybe("queue_get", sql!("queue/get"), &[&name])
        .await?;
    found.as_ref().map(row::queue).transpose()
}

pub(crate) async fn list(store: &PostgresStore, page: Page<String>) -> Result<Vec<Queue>> {
    let rows = page.rows();
    let after = page.after.unwrap_or_default();
    let found = store
        .many("queue_list", sql!("queue/list"), &[&after, &rows])
        .await?;
    found.iter().map(row::queue).collect()
}

pub(crate) async fn limit(store: &PostgresStore) -> Result<Option<u32>> {
    let row = store.one("job_limit", sql!("job/limit"), &[]).await?;
    Ok(row.get::<_, Option<i32>>("max_running").map(row::count))
}

pub(crate) async fn limit_set(store: &PostgresStore, limit: Option<u32>) -> Result<()> {
    let context = "job_limit_set";
    let mut client = pool::take(&store.pool, context).await?;
    let transaction = client.transaction().await.map_err(postgres(context))?;
    transaction
        .query_one(sql!("job/limit_lock"), &[])
        .await
        .map_err(postgres(context))?;
    transaction
        .execute(sql!("job/limit_set"), &[&limit_column(limit)])
        .await
        .map_err(postgres(context))?;
    transaction
        .query_one(sql!("job/wake"), &[])
        .await
        .map_err(postgres(context))?;
    transaction.commit().await.map_err(postgres(context))?;
    store.job_wakes.ring();
    Ok(())
}
