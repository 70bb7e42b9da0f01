//! Jobs in SQLite, one file a group of verbs. Each job is one row that never changes; the files here move what says where it is.

pub(crate) mod abandon;
pub(crate) mod calls;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod enqueue;
pub(crate) mod expire;
pub(crate) mod finish;
pub(crate) mod hold;
pub(crate) mod list;
pub(crate) mod prune;
pub(crate) mod read;
pub(crate) mod wish;

pub(crate) mod end;
mod lease;
mod line;
mod page;
mod wait;

use leasehold_core::ExecutionId;

/// Which node of which execution a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeOf {
    pub(crate) execution: ExecutionId,
    /// Its place in the graph's list.
    pub(crate) place: usize,
}
