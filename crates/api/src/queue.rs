//! JSON of job queues.

use leasehold_core::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A queue and the defaults of its jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Maximum number of running jobs of the queue, over all workers; absent if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Whether claims from the queue are paused.
    pub paused: bool,
    /// Whether completed jobs are retained until they are pruned.
    pub keep_completed: bool,
    /// Default duration of a lease, in milliseconds.
    pub lease_ms: u64,
    /// Default maximum number of attempts of a job.
    pub max_attempts: u32,
    /// Default delay between attempts of a job.
    pub backoff: Backoff,
    /// Default time limit of an attempt, in milliseconds; absent if unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// When the queue was first used or configured.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Name of the workspace that owns the queue; `null`: the installation. Only for administrators.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<String>)]
    pub owner: Option<Option<String>>,
    /// Workspaces besides the owner whose graphs may use the queue. Only for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_with: Option<SharedWith>,
}

/// Whom a queue is shared with: `"all"`, or a list of names of workspaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "expected \"all\" or a list of names of workspaces"
)]
pub enum SharedWith {
    /// Every workspace.
    All(AllWorkspaces),
    /// The workspaces with these names, at most 1,000; an empty list shares the queue with none.
    Workspaces(Vec<String>),
}

impl SharedWith {
    /// Shared with every workspace.
    pub const ALL: Self = Self::All(AllWorkspaces::All);
}

/// The word for every workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllWorkspaces {
    /// Every workspace.
    All,
}

/// The new sharing of a queue; replaces the current one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSharing {
    /// Workspaces besides the owner whose graphs may use the queue.
    pub shared_with: SharedWith,
}

/// Changes to a queue; absent fields stay unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueChange {
    /// Maximum number of running jobs; `null` removes the limit.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<u32>, maximum = 1_000_000)]
    pub limit: Option<Option<u32>>,
    /// Whether to pause claims from the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Whether to retain completed jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_completed: Option<bool>,
    /// Default duration of a lease, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 86_400_000)]
    pub lease_ms: Option<u64>,
    /// Default maximum number of attempts of a job. Without `backoff`, the backoff stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 32_767)]
    pub max_attempts: Option<u32>,
    /// Default delay between attempts of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Default time limit of an attempt, in milliseconds; `null` removes it.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 31_622_400_000u64)]
    pub timeout_ms: Option<Option<u64>>,
}

/// How the delay between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// Delay after the first failure, in milliseconds.
    #[schema(maximum = 31_622_400_000u64)]
    pub base_ms: u64,
    /// Factor by which the delay grows with each further failure.
    #[schema(minimum = 1, maximum = 1000)]
    pub factor: f64,
    /// Longest delay, in milliseconds; at least `base_ms`.
    #[schema(maximum = 31_622_400_000u64)]
    pub max_ms: u64,
    /// Random share of the delay, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub jitter: f64,
}

/// The jobs of a queue by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCounts {
    /// Queued and due.
    pub ready: u64,
    /// Queued and not due yet.
    pub scheduled: u64,
    /// Running.
    pub running: u64,
    /// Completed and retained.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
}

/// The limit of running jobs of all queues together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobLimit {
    /// The limit; `null` or absent means unlimited.
    #[serde(default)]
    #[schema(maximum = 1_000_000)]
    pub limit: Option<u32>,
}
