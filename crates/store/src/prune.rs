//! Pruning of what has ended: parameters and outcomes.

use leasehold_core::Timestamp;

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
