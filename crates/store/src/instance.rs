//! Instances: the processes that serve one store, as they last said of themselves.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::Timestamp;
use std::time::Duration;

store_trait! {
    /// Instances: the processes that use the store.
    pub trait InstanceStore, observed by InstanceObserver {
        /// Writes down that an instance lives, and forgets those that were not seen for `forget_after`.
        async fn instance_beat(&self, beat: &InstanceBeat, forget_after: Duration) -> Result<()>;

        /// Forgets an instance that stops in order.
        async fn instance_leave(&self, id: &str) -> Result<()>;

        /// Instances by id, a thousand at most.
        async fn instance_list(&self) -> Result<Vec<Instance>>;
    }
}

/// A process that serves this store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name, which no other has or had.
    pub id: String,
    /// The program's version.
    pub version: String,
    /// Whether it dispatches, or stands by to.
    pub dispatches: bool,
    /// Where its API listens.
    pub listens: Option<String>,
    /// When it first said so.
    pub started_at: Timestamp,
    /// When it said so last.
    pub seen_at: Timestamp,
}

/// What an instance says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceBeat {
    /// Its name.
    pub id: String,
    /// The program's version.
    pub version: String,
    /// Whether it dispatches, or stands by to.
    pub dispatches: bool,
    /// Where its API listens.
    pub listens: Option<String>,
}
