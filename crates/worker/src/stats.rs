//! Counters of one worker.

/// How the jobs that a worker claimed ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Jobs claimed.
    pub claimed: u64,
    /// Jobs completed.
    pub completed: u64,
    /// Jobs failed permanently.
    pub failed: u64,
    /// Failed attempts whose job is retried.
    pub retried: u64,
    /// Jobs snoozed by their handler, or because their kind has none.
    pub snoozed: u64,
    /// Jobs returned to the queue: not started, or cancelled by a shutdown.
    pub returned: u64,
    /// Jobs whose lease was lost; their results do not count.
    pub lost: u64,
    /// Attempts whose handler panicked; also counted in `failed` or `retried`.
    pub panicked: u64,
    /// Attempts that timed out; also counted in `failed` or `retried`.
    pub timed_out: u64,
    /// Handlers still running when the worker stopped; their leases expire.
    pub abandoned: u64,
    /// Results not written before the worker stopped; their leases expire.
    pub unwritten: u64,
    /// Finish calls, each of which writes a batch of results.
    pub finish_calls: u64,
    /// Claim calls that were answered.
    pub polls: u64,
}
