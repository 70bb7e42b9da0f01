//! Finds the holders of deduplication keys. Inserts nothing, also no queue.

use crate::row;
use crate::store::{PostgresStore, sql};
use leasehold_core::JobId;
use leasehold_store::Result;
use leasehold_store::job::NewJob;

pub(super) async fn find(store: &PostgresStore, jobs: &[NewJob]) -> Result<Vec<Option<JobId>>> {
    let mut holders = vec![None; jobs.len()];
    let (mut positions, mut queues, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for (position, job) in jobs.iter().enumerate() {
        if let Some(dedup) = &job.dedup {
            positions.push(position);
            queues.push(job.queue.as_str());
            keys.push(dedup.key.as_str());
        }
    }
    if positions.is_empty() {
        return Ok(holders);
    }
    let rows = store
        .many(
            "job_key_holders",
            sql!("job/key_holders_by_name"),
            &[&store.given_now(), &queues, &keys],
        )
        .await?;
    for row in rows {
        let nth: usize = row::count(&row, "nth")?;
        if let Some(&position) = positions.get(nth.wrapping_sub(1)) {
            holders[position] = Some(JobId(row.get("job_id")));
        }
    }
    Ok(holders)
}
