//! Instances that serve the store, and the named locks they hold.

use leasehold_core::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A process that serves the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Instance {
    /// Its name.
    pub id: String,
    /// The program's version.
    pub version: String,
    /// Whether it dispatches, or stands by to.
    pub dispatches: bool,
    /// Where its API listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens: Option<String>,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it was last seen.
    #[schema(value_type = String, format = DateTime)]
    pub seen_at: Timestamp,
}

/// Every instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Instances {
    /// By name.
    pub instances: Vec<Instance>,
}

/// A named lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// Who took it last.
    pub owner: String,
    /// Whether it is held now, by the store's clock.
    pub held: bool,
    /// When it was taken.
    #[schema(value_type = String, format = DateTime)]
    pub locked_at: Timestamp,
    /// Until when it is, or was, held.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    /// Rises with every change of holder.
    pub token: i64,
}

/// Every named lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Locks {
    /// By name.
    pub locks: Vec<Lock>,
}
