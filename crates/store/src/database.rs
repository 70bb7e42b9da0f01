//! The database behind a store: its clock, and what it says of itself.

use crate::Result;
use crate::diagnosis::Diagnosis;
use crate::store_trait::store_trait;
use leasehold_core::Timestamp;

store_trait! {
    /// The database itself: its clock, and what it says of itself.
    pub trait DatabaseStore, observed by DatabaseObserver {
        /// The time by the store's clock.
        async fn now(&self) -> Result<Timestamp>;

        /// What the database says of itself.
        async fn diagnose(&self) -> Result<Diagnosis>;
    }

    forwarded {
        /// What this store is and can do.
        fn capabilities(&self) -> Capabilities;
    }
}

/// What stores differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The store's name: `postgres` or `sqlite`.
    pub name: &'static str,
    /// Whether several processes may use it at once.
    pub shared: bool,
}
