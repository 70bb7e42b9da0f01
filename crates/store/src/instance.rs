//! Instances: the processes that serve one store, and their heartbeats.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::Timestamp;
use std::time::Duration;

store_trait! {
    /// Instances: the processes that use the store.
    pub trait InstanceStore, observed by InstanceObserver {
        /// Records a heartbeat of an instance, and deletes instances without a heartbeat for `forget_after`. The outcome says whether this program
        /// may still use the schema, as of the same transaction.
        async fn instance_heartbeat(
            &self,
            heartbeat: &InstanceHeartbeat,
            forget_after: Duration,
        ) -> Result<HeartbeatRecorded>;

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

/// Outcome of a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatRecorded {
    /// Recorded; this program may use the schema.
    Compatible,
    /// Recorded, but a newer program has migrated the schema, and this program is too old to use it: it must stop.
    SchemaTooNew,
}

impl HeartbeatRecorded {
    /// Returns the outcome for a program whose last migration is `last`, if the schema needs one built with migration `needed`.
    pub fn by(last: u32, needed: u32) -> Self {
        match needed > last {
            true => Self::SchemaTooNew,
            false => Self::Compatible,
        }
    }
}
