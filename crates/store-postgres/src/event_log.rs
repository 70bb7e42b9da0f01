//! The partitions of the event log: begins new ones and drops those whose events are older than the longest retention.

use crate::pool;
use crate::store::{PostgresStore, sql};
use leasehold_store::Result;
use leasehold_store::prune::Prune;

const CONTEXT: &str = "event_log";

impl PostgresStore {
    /// Does what the partitions need now. Each step commits, and any of them may be repeated or interrupted. Waits two seconds at most for
    /// transactions that use a partition to be dropped; a later call goes on.
    pub(crate) async fn advance_event_log(&self, prune: &Prune) -> Result<()> {
        // Events are kept for ever if requests of one kind are.
        let kept_from = match (prune.completed_before, prune.failed_before) {
            (Some(completed), Some(failed)) => Some(completed.min(failed)),
            _ => None,
        };
        let now = self.given_now();
        let row = self
            .one(CONTEXT, sql!("event/advance"), &[&now, &kept_from])
            .await?;
        if !row.get::<_, bool>("advanced") {
            return Ok(());
        }
        loop {
            let client = pool::take(&self.pool, CONTEXT).await?;
            let session = client.session();
            let rows = session.many(sql!("event/tables"), &[]).await?;
            for row in &rows {
                session.outside_transaction(row.get("detach")).await?;
            }
            // The next round drops what was detached.
            if rows.is_empty() {
                return Ok(());
            }
        }
    }
}
