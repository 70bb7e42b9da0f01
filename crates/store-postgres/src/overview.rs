//! What goes on in all workspaces and queues, read from what is kept of each: no request, no job and no history is counted for it but what is not
//! folded yet and what waits, as far as is asked.

use crate::job::row as job_row;
use crate::request::claim;
use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::queue::QueueUse;
use leasehold_store::request::{Counts, Oldest};
use leasehold_store::workspace::{SlotUse, WorkspaceOverview, WorkspaceUse};
use leasehold_store::{Error, ErrorKind, Result};
use tokio_postgres::Row;

const CONTEXT: &str = "workspace_overview";

pub(crate) async fn workspaces(store: &PostgresStore, limit: u32) -> Result<WorkspaceOverview> {
    // It keeps what must be added to the folded counts small; without it the answer is as exact.
    fold(store).await?;
    let shown = i64::from(limit.min(PAGE_MAX));
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 2] = [&store.given_now(), &shown];
    let rows = store
        .many(CONTEXT, sql!("workspace/overview"), &params)
        .await?;
    let Some(first) = rows.first() else {
        let text = "there is no row of totals".to_owned();
        return Err(Error::new(CONTEXT, ErrorKind::Broken(text)));
    };
    let busiest = rows.iter().filter(|row| row.get("shown"));
    Ok(WorkspaceOverview {
        at: row::time(first, "at")?,
        workspaces: row::count(first, "workspaces")?,
        requests: counts(first, "all_")?,
        busiest: busiest.map(workspace_use).collect::<Result<_>>()?,
    })
}

/// Folds what was committed, unless another does it or keeps it from being done.
async fn fold(store: &PostgresStore) -> Result<()> {
    match claim::settle(store).await {
        Err(error) if !matches!(error.kind, ErrorKind::Contended(_)) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

pub(crate) async fn oldest(store: &PostgresStore) -> Result<Oldest> {
    // Where a line begins is known only of what is folded.
    fold(store).await?;
    let row = store
        .one(
            "request_oldest",
            sql!("request/oldest"),
            &[&store.given_now()],
        )
        .await?;
    Ok(Oldest {
        at: row::time(&row, "at")?,
        pending: row::time(&row, "pending")?,
        startable: row::time(&row, "startable")?,
        claimed: row::time(&row, "claimed")?,
        dispatched: row::time(&row, "dispatched")?,
    })
}

fn workspace_use(row: &Row) -> Result<WorkspaceUse> {
    Ok(WorkspaceUse {
        workspace: row::workspace(row)?,
        slots: SlotUse {
            limit: row.get::<_, i32>("concurrency_limit").unsigned_abs(),
            in_use: row::count(row, "in_use")?,
        },
        requests: counts(row, "")?,
    })
}

fn counts(row: &Row, of: &str) -> Result<Counts> {
    let count = |status: &str| row::count(row, &format!("{of}{status}"));
    Ok(Counts {
        pending: count("pending")?,
        claimed: count("claimed")?,
        dispatched: count("dispatched")?,
        completed: count("completed")?,
        failed: count("failed")?,
    })
}

pub(crate) async fn queues(store: &PostgresStore, limit: u32, up_to: u32) -> Result<Vec<QueueUse>> {
    // One more than is asked for tells whether there are more.
    let (shown, counted) = (i64::from(limit.min(PAGE_MAX)), i64::from(up_to) + 1);
    let rows = store
        .many(
            "queue_overview",
            sql!("queue/overview"),
            &[&store.given_now(), &shown, &counted],
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
