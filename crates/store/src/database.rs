//! The database behind a store: its clock and its diagnosis.

use crate::diagnosis::Diagnosis;
use crate::store_trait::store_trait;
use crate::{EpochId, Result};
use leasehold_core::Timestamp;

store_trait! {
    /// The database: its clock and its diagnosis.
    pub trait DatabaseStore, observed by DatabaseObserver {
        /// Returns the time of the store's clock.
        async fn now(&self) -> Result<Timestamp>;

        /// Collects facts about the database for `doctor`.
        async fn diagnose(&self) -> Result<Diagnosis>;
    }

    forwarded {
        /// Returns the properties of this store.
        fn capabilities(&self) -> Capabilities;

        /// Returns the epoch that this process met last; none before its first connection to a migrated database. What was read in another epoch is
        /// not valid any more.
        fn epoch(&self) -> Option<EpochId>;
    }
}

/// The properties in which stores differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The store's name: `postgres` or `sqlite`.
    pub name: &'static str,
    /// Whether several processes may use it at once.
    pub shared: bool,
    /// How many calls run at once; further ones wait for a connection.
    pub connections: usize,
    /// Whether calls that change something use these connections. Otherwise they have a connection of their own, which runs many of them together.
    pub changes_use_connections: bool,
}
