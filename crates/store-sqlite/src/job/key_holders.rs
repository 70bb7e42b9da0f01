//! Finds the holders of deduplication keys. Writes nothing, also no queue.

use crate::SqliteStore;
use crate::error::Fault;
use crate::job::enqueue::KEY_FIND;
use crate::queue;
use crate::row::Text;
use crate::session::Session;
use leasehold_core::JobId;
use leasehold_store::Result;
use leasehold_store::job::NewJob;
use rusqlite::params;
use std::collections::HashMap;

/// The queue and the key of a job; none without a key.
type KeyOf = Option<(String, String)>;

pub(super) async fn find(store: &SqliteStore, jobs: &[NewJob]) -> Result<Vec<Option<JobId>>> {
    let key = |job: &NewJob| {
        let dedup = job.dedup.as_ref()?;
        Some((job.queue.clone(), dedup.key.clone()))
    };
    let keys: Vec<KeyOf> = jobs.iter().map(key).collect();
    store
        .read("job_key_holders", move |session| {
            session.in_snapshot(|session| holders(session, &keys))
        })
        .await
}

fn holders(
    session: &Session<'_>,
    keys: &[KeyOf],
) -> std::result::Result<Vec<Option<JobId>>, Fault> {
    let mut queues: HashMap<&str, Option<i64>> = HashMap::new();
    let mut holders = Vec::with_capacity(keys.len());
    for key in keys {
        let Some((queue, key)) = key else {
            holders.push(None);
            continue;
        };
        let queue = match queues.get(queue.as_str()) {
            Some(queue) => *queue,
            None => {
                let id = queue::find(session, queue)?.map(|found| found.id);
                queues.insert(queue, id);
                id
            }
        };
        let Some(queue) = queue else {
            holders.push(None);
            continue;
        };
        let found = session.optional(KEY_FIND, params![queue, Text(key)], |row| {
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        let held = found.filter(|(_, until)| until.is_none_or(|until| until > session.now));
        holders.push(held.map(|(job, _)| JobId(job)));
    }
    Ok(holders)
}
