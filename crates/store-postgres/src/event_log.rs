//! The partitions of the event log: begins new ones and drops those whose events are older than the longest retention.

use crate::error::{is_cancelled, is_lock_timeout};
use crate::pool;
use crate::session::Session;
use crate::store::{PostgresStore, sql};
use leasehold_core::Timestamp;
use leasehold_store::Result;
use leasehold_store::prune::Prune;
use std::pin::pin;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

const CONTEXT: &str = "event_log";
/// After a failed try, and between tries while each call deletes a full batch.
const PAUSE: Duration = Duration::from_secs(60);
/// How long to wait for transactions that use a partition to be detached. The lock_timeout of a direct connection is shorter.
const DETACH_TIMEOUT: Duration = Duration::from_secs(3);

/// When this process tried to advance the log, and whether it waits before it tries again.
#[derive(Debug, Default)]
pub(crate) struct LogAdvance {
    /// By this machine's clock, and by a test's.
    tried: Option<(Instant, Option<Timestamp>)>,
    has_failed: bool,
    in_batches: bool,
}

impl LogAdvance {
    /// Whether to try now.
    fn is_due(&self, now: Option<Timestamp>) -> bool {
        let Some((tried, given)) = self.tried else {
            return true;
        };
        let passed = match (given, now) {
            (Some(given), Some(now)) => now.duration_since(given).unsigned_abs(),
            _ => tried.elapsed(),
        };
        passed >= PAUSE || !(self.has_failed || self.in_batches)
    }
}

impl PostgresStore {
    /// Advances the log before a batch is pruned, unless the batch before was full or the last try failed, less than a minute ago. A failure does not
    /// stop the pruning.
    pub(crate) async fn advance_event_log_if_due(&self, prune: &Prune) {
        let now = self.given_now();
        if !self.log_advance().is_due(now) {
            return;
        }
        let advanced = self.advance_event_log(prune).await;
        let mut state = self.log_advance();
        state.tried = Some((Instant::now(), now));
        state.has_failed = advanced.is_err();
        match advanced {
            Err(error) if !is_lock_timeout(&error) && !is_cancelled(&error) => {
                tracing::warn!(%error, "failed to advance the event log; retrying in a minute");
            }
            // Another transaction uses a partition.
            Ok(()) | Err(_) => {}
        }
    }

    /// Notes whether a call deleted a full batch, so that the next one follows at once.
    pub(crate) fn note_batch(&self, is_full: bool) {
        self.log_advance().in_batches = is_full;
    }

    fn log_advance(&self) -> MutexGuard<'_, LogAdvance> {
        let state = self.log_advance.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what the partitions need now. Each step commits, and any of them may be repeated or interrupted. Waits three seconds at most for
    /// transactions that use a partition to be dropped; a later call goes on.
    async fn advance_event_log(&self, prune: &Prune) -> Result<()> {
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
                self.detach(session, row.get("detach")).await?;
            }
            // The next round drops what was detached.
            if rows.is_empty() {
                return Ok(());
            }
        }
    }

    /// Runs a statement that detaches a partition, and cancels it after a while: behind a pooler no lock_timeout applies outside a transaction. Poolers
    /// may lose a cancellation in the protocol, so another session cancels it, again and again.
    async fn detach(&self, session: Session<'_>, statement: &str) -> Result<()> {
        let mut detached = pin!(session.outside_transaction(statement));
        loop {
            if let Ok(detached) = timeout(DETACH_TIMEOUT, detached.as_mut()).await {
                return detached;
            }
            self.execute(CONTEXT, sql!("event/cancel"), &[&statement])
                .await?;
        }
    }
}
