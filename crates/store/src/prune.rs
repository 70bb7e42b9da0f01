//! Pruning of finished requests: parameters and outcomes.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::Timestamp;

store_trait! {
    /// Retention of requests.
    pub trait PruneStore, observed by PruneObserver {
        /// Deletes finished requests with their executions, oldest first, and clears idempotency keys
        /// whose window has passed. A deleted request has no timeline, and the history of the change stream leaves it out. Where the event log is partitioned,
        /// its events stay until all events of their time are older than both retentions; the timelines of open requests lose these too. A key whose window has not passed outlives its request. Call it until it deletes nothing.
        async fn prune(&self, prune: &Prune) -> Result<Pruned>;
    }
}

/// What to prune.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prune {
    /// Deletes COMPLETED requests that ended before this; none keeps them.
    pub completed_before: Option<Timestamp>,
    /// Deletes FAILED requests that ended before this; none keeps them.
    pub failed_before: Option<Timestamp>,
    /// The maximum number of requests in this call.
    pub limit: u32,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Requests, each with its execution.
    pub requests: u64,
    /// Idempotency keys whose window had passed.
    pub keys: u64,
}
