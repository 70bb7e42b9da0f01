//! JSON of workspaces.

use leasehold_core::{Plan, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A workspace to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspace {
    /// Name, unique.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "acme"
    )]
    pub name: String,
    /// Plan.
    #[schema(value_type = PlanName)]
    pub plan: Plan,
    /// Limit of concurrent executions. Default: the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100_000)]
    pub max_concurrent_executions: Option<u32>,
}

/// Changes to a workspace; absent fields stay unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceChange {
    /// New plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PlanName>)]
    pub plan: Option<Plan>,
    /// New limit of concurrent executions; `null` restores the plan's.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<u32>, maximum = 100_000)]
    pub max_concurrent_executions: Option<Option<u32>>,
    /// New limit of PENDING requests; `null` restores the default.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<u64>, maximum = 1_000_000_000)]
    pub max_pending: Option<Option<u64>>,
    /// New limit of bytes of open requests and executions; `null` restores the plan's.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<u64>, maximum = 1_099_511_627_776_u64)]
    pub max_open_bytes: Option<Option<u64>>,
    /// Whether to pause the admission of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    /// Id.
    #[schema(value_type = String, format = Uuid)]
    pub id: WorkspaceId,
    /// Name.
    pub name: String,
    /// Plan.
    #[schema(value_type = PlanName)]
    pub plan: Plan,
    /// Limit of concurrent executions: the plan's, unless overridden.
    pub max_concurrent_executions: u32,
    /// Whether the limit overrides the plan's.
    pub overridden: bool,
    /// Limit of PENDING requests: the default, unless overridden.
    pub max_pending: u64,
    /// Limit of bytes of open requests and executions: the plan's, unless overridden.
    pub max_open_bytes: u64,
    /// Whether the admission of requests is paused.
    pub paused: bool,
    /// When the workspace was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A workspace with its current use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceState {
    /// The workspace.
    pub workspace: Workspace,
    /// Slots in use.
    pub slots: Slots,
    /// Its requests by status.
    pub requests: RequestCounts,
    /// Bytes of its open requests and executions. Only when a single workspace is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_bytes: Option<u64>,
}

/// The slots of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Slots {
    /// Maximum number of concurrent executions.
    pub limit: u32,
    /// Slots in use.
    pub in_use: u32,
}

/// Exact number of requests by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestCounts {
    /// PENDING: waiting.
    pub pending: u64,
    /// CLAIMED: being started.
    pub claimed: u64,
    /// DISPATCHED: running.
    pub dispatched: u64,
    /// COMPLETED.
    pub completed: u64,
    /// FAILED: the dead letters.
    pub failed: u64,
}

crate::names::names! {
    /// The plan of a workspace.
    PlanName = Plan::ALL.map(Plan::as_str)
}
