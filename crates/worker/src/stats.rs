//! What a worker has done, in numbers.

/// What became of the jobs a worker claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Jobs claimed.
    pub claimed: u64,
    /// Claims that ended with the job completed.
    pub completed: u64,
    /// Claims that ended with the job failed for good.
    pub failed: u64,
    /// Attempts that failed, and whose job is tried again.
    pub retried: u64,
    /// Claims whose handler wants the job later.
    pub snoozed: u64,
    /// Claims given back: not started, or stopped in the middle of a shutdown.
    pub given_back: u64,
    /// Claims whose lease was lost; whatever was done for them does not count.
    pub lost: u64,
    /// Attempts whose handler panicked; they are also under `failed` or `retried`.
    pub panicked: u64,
    /// Attempts that took too long; they are also under `failed` or `retried`.
    pub timed_out: u64,
    /// Handlers that would not stop when the worker did; their leases run out by themselves.
    pub abandoned: u64,
    /// Claims whose end could not be written down before the worker stopped; their leases run out by themselves.
    pub unwritten: u64,
    /// Statements that wrote down ends.
    pub finishes: u64,
    /// Looks for jobs.
    pub looks: u64,
}
