//! Looking at jobs, cancelling them, and deleting those that ended long ago.

use super::names;
use super::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{JobId, JobStatus};
use leasehold_store::job::{Job, JobCancelled, JobFilter, JobPrune, JobsPruned};
use leasehold_store::queue::JobCounts;
use leasehold_store::{Page, Result};
use tokio_postgres::Row;

pub(crate) async fn get(store: &PostgresStore, id: JobId) -> Result<Option<Job>> {
    let found = store
        .maybe("job_get", sql!("job/get"), &[&store.given_now(), &id.0])
        .await?;
    found.as_ref().map(row::job).transpose()
}

pub(crate) async fn list(
    store: &PostgresStore,
    filter: &JobFilter,
    page: Page<JobId>,
) -> Result<Vec<Job>> {
    let context = "job_list";
    let queue = match &filter.queue {
        None => None,
        Some(name) => match names::find(store, context, name).await? {
            None => return Ok(Vec::new()),
            known => known,
        },
    };
    let before = page.after.map_or(i64::MAX, |id| id.0);
    let (now, rows) = (store.given_now(), page.rows());
    let (statement, status) = match filter.status {
        None => (sql!("job/list"), None),
        Some(JobStatus::Queued) => (sql!("job/list_queued"), None),
        Some(JobStatus::Running) => (sql!("job/list_running"), None),
        Some(ended @ (JobStatus::Completed | JobStatus::Failed)) => {
            (sql!("job/list_ended"), Some(ended.as_str()))
        }
    };
    let found = match status {
        None => {
            store
                .many(context, statement, &[&now, &before, &queue, &rows])
                .await?
        }
        Some(status) => {
            store
                .many(context, statement, &[&now, &before, &queue, &rows, &status])
                .await?
        }
    };
    found.iter().map(row::job).collect()
}

pub(crate) async fn counts(store: &PostgresStore, name: &str) -> Result<JobCounts> {
    let context = "queue_counts";
    let Some(queue) = names::find(store, context, name).await? else {
        return Ok(JobCounts::default());
    };
    let row = store
        .one(context, sql!("job/counts"), &[&store.given_now(), &queue])
        .await?;
    let count = |column: &str| row.get::<_, i64>(column).unsigned_abs();
    Ok(JobCounts {
        ready: count("fresh") + count("due"),
        scheduled: count("scheduled"),
        running: count("running"),
        completed: count("completed"),
        failed: count("failed"),
    })
}

pub(crate) async fn cancel(store: &PostgresStore, id: JobId) -> Result<JobCancelled> {
    let row: Row = store
        .one(
            "job_cancel",
            sql!("job/cancel"),
            &[&store.given_now(), &id.0],
        )
        .await?;
    Ok(match row.get::<_, &str>("became") {
        "cancelled" => JobCancelled::Cancelled,
        "running" => JobCancelled::Running,
        "finished" => JobCancelled::Finished,
        "of_graph" => JobCancelled::OfGraph,
        _ => JobCancelled::NotFound,
    })
}

pub(crate) async fn prune(store: &PostgresStore, prune: &JobPrune) -> Result<JobsPruned> {
    let context = "job_prune";
    let limit = i64::from(prune.limit.min(SWEEP_MAX_BATCH));
    let jobs = store
        .execute(
            context,
            sql!("job/prune"),
            &[&prune.completed_before, &prune.failed_before, &limit],
        )
        .await?;
    let keys = store
        .execute(
            context,
            sql!("job/prune_keys"),
            &[&store.given_now(), &limit],
        )
        .await?;
    Ok(JobsPruned { jobs, keys })
}
