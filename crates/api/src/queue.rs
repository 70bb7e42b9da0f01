//! Queues of jobs.

use leasehold_core::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A queue and what holds for its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// How many of its jobs may run at once among all workers; absent is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Whether workers get nothing from it.
    pub paused: bool,
    /// Whether completed jobs are kept until they are pruned.
    pub keep_completed: bool,
    /// How long a claim lasts where the worker does not say.
    pub lease_ms: u64,
    /// How often a job is tried where it does not say itself.
    pub max_attempts: u32,
    /// The wait between tries where a job does not say itself.
    pub backoff: Backoff,
    /// How long an attempt may take where the job does not say; absent is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// When it was first used or set up.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// What to change of a queue; what is absent stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueChange {
    /// Its limit of running jobs; `null` takes it away.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<u32>, maximum = 1_000_000)]
    pub limit: Option<Option<u32>>,
    /// Whether workers get nothing from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Whether completed jobs are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_completed: Option<bool>,
    /// How long a claim lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub lease_ms: Option<u64>,
    /// How often a job is tried. Given together with `backoff`, or the other stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 32_767)]
    pub max_attempts: Option<u32>,
    /// The wait between tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// How long an attempt may take; `null` is no limit.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 31_622_400_000u64)]
    pub timeout_ms: Option<Option<u64>>,
}

/// How the wait between tries grows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// The wait after the first failure.
    #[schema(maximum = 31_622_400_000u64)]
    pub base_ms: u64,
    /// What each further failure multiplies it by.
    #[schema(minimum = 1, maximum = 1000)]
    pub factor: f64,
    /// The longest wait, at least `base_ms`.
    #[schema(maximum = 31_622_400_000u64)]
    pub max_ms: u64,
    /// The part of the wait that is random, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub jitter: f64,
}

/// How many jobs a queue has, counted now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCounts {
    /// Queued, their time has come.
    pub ready: u64,
    /// Queued, their time has not come.
    pub scheduled: u64,
    /// With a worker.
    pub running: u64,
    /// Completed and kept.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
}

/// How many jobs of all queues together may run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobLimit {
    /// The limit; `null` or absent is none.
    #[serde(default)]
    #[schema(maximum = 1_000_000)]
    pub limit: Option<u32>,
}
