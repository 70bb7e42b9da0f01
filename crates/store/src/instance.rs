//! Instances: the processes that serve one store, as they last said of themselves.

use leasehold_core::Timestamp;

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
