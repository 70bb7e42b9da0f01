//! The WorkQueue on PostgreSQL: jobs, their leases and their ends. Knows no worker.

pub(crate) mod claim;
mod copy;
pub(crate) mod enqueue;
mod expiry;
pub(crate) mod finish;
pub(crate) mod listener;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod row;
pub(crate) mod wake;

use expiry::Expiry;
use names::Names;
use std::sync::Mutex;
use tokio::sync::OnceCell;

/// What a store remembers about jobs; its clones share it.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    names: Names,
    expiry: Mutex<Expiry>,
    /// Set once the lines are known to be of this cluster.
    settled: OnceCell<()>,
}
