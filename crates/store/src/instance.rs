//! Instances: the processes that serve one store, and their heartbeats.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::Timestamp;
use std::time::Duration;

store_trait! {
    /// Instances: the processes that use the store.
    pub trait InstanceStore, observed by InstanceObserver {
        /// Records a heartbeat of an instance, and deletes instances without a heartbeat for `forget_after`.
        async fn instance_heartbeat(
            &self,
            heartbeat: &InstanceHeartbeat,
            forget_after: Duration,
        ) -> Result<()>;

        /// Deletes an instance that shuts down.
        async fn instance_deregister(&self, id: &str) -> Result<()>;

        /// Lists instances by id, at most 1,000.
        async fn instance_list(&self) -> Result<Vec<Instance>>;
    }
}

/// A process that serves this store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name, unique over time.
    pub id: String,
    /// The program's version.
    pub version: String,
    /// Whether it dispatches, actively or on standby.
    pub dispatches: bool,
    /// The address of its API.
    pub listens: Option<String>,
    /// The time of its first heartbeat.
    pub started_at: Timestamp,
    /// The time of its last heartbeat.
    pub seen_at: Timestamp,
}

/// A heartbeat of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceHeartbeat {
    /// Its name.
    pub id: String,
    /// The program's version.
    pub version: String,
    /// Whether it dispatches, actively or on standby.
    pub dispatches: bool,
    /// The address of its API.
    pub listens: Option<String>,
}
