//! JSON of instances and named locks.

use leasehold_core::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A process that uses the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Instance {
    /// Name.
    pub id: String,
    /// Program version.
    pub version: String,
    /// Whether the instance dispatches requests, actively or on standby.
    pub dispatches: bool,
    /// Address of its API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens: Option<String>,
    /// When the instance started.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// Time of its last heartbeat.
    #[schema(value_type = String, format = DateTime)]
    pub seen_at: Timestamp,
}

/// All instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Instances {
    /// The instances, by name.
    pub instances: Vec<Instance>,
}

/// A named lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lock {
    /// Name.
    pub name: String,
    /// The instance that last acquired the lock.
    pub owner: String,
    /// Whether the lock is held now, by the clock of the store.
    pub held: bool,
    /// When the lock was acquired.
    #[schema(value_type = String, format = DateTime)]
    pub locked_at: Timestamp,
    /// When the lock expires or expired.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    /// Fencing token; increases with every change of owner.
    pub token: i64,
}

/// All named locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Locks {
    /// The locks, by name.
    pub locks: Vec<Lock>,
}
