//! The WorkQueue on PostgreSQL: jobs, their leases and their ends. Knows no worker.

pub(crate) mod claim;
mod copy;
pub(crate) mod enqueue;
mod expiry;
pub(crate) mod finish;
pub(crate) mod names;
pub(crate) mod read;
pub(crate) mod row;
mod settling;
pub(crate) mod wake;

use expiry::Expiry;
use names::Names;
use settling::Settling;
use std::sync::Mutex;
use tokio::sync::Semaphore;

/// What a store remembers about jobs; its clones share it.
#[derive(Debug)]
pub(crate) struct Jobs {
    names: Names,
    expiry: Mutex<Expiry>,
    settling: Settling,
    /// A permit for each claim that may have a connection.
    claims: Semaphore,
}

impl Jobs {
    /// For a store with so many connections.
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            names: Names::default(),
            expiry: Mutex::default(),
            settling: Settling::default(),
            claims: Semaphore::new((connections / 2).max(1)),
        }
    }
}
