//! Pruning of what has ended: parameters and outcomes.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::Timestamp;

store_trait! {
    /// Retention of requests.
    pub trait PruneStore, observed by PruneObserver {
        /// Deletes finished requests with their executions and events, oldest first, and clears idempotency keys
        /// whose window has passed. Call again while it finds something.
        async fn prune(&self, prune: &Prune) -> Result<Pruned>;
    }
}

/// What may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prune {
    /// COMPLETED requests that ended before this go; none keeps them.
    pub completed_before: Option<Timestamp>,
    /// FAILED requests that ended before this go; none keeps them.
    pub failed_before: Option<Timestamp>,
    /// How many requests at most in this call.
    pub limit: u32,
}

/// What went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Requests, each with its execution and its events.
    pub requests: u64,
    /// Idempotency keys whose window had passed.
    pub keys: u64,
}
