//! Workspaces.

use leasehold_core::{Plan, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A workspace to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWorkspace {
    /// Its name, unique.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*[^\u0000-\u001f\u007f-\u009f\s][^\u0000-\u001f\u007f-\u009f]*$",
        example = "acme"
    )]
    pub name: String,
    /// What it pays for.
    #[schema(value_type = PlanName)]
    pub plan: Plan,
    /// A limit that replaces the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100_000)]
    pub max_concurrent_executions: Option<u32>,
}

/// What to change of a workspace; what is absent stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceChange {
    /// Another plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PlanName>)]
    pub plan: Option<Plan>,
    /// Another limit that replaces the plan's; `null` gives the plan's back.
    #[serde(
        default,
        deserialize_with = "crate::present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Option<u32>, maximum = 100_000)]
    pub max_concurrent_executions: Option<Option<u32>>,
    /// Whether it admits nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workspace {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// What it pays for.
    #[schema(value_type = PlanName)]
    pub plan: Plan,
    /// How many executions may run at once: the plan's, unless replaced.
    pub max_concurrent_executions: u32,
    /// Whether that replaces the plan's.
    pub overridden: bool,
    /// Whether it admits nothing.
    pub paused: bool,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// A workspace with what it uses now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceState {
    /// The workspace.
    pub workspace: Workspace,
    /// How much of its concurrency it uses.
    pub slots: Slots,
    /// Its requests by status.
    pub requests: RequestCounts,
}

/// How much of its concurrency a workspace uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Slots {
    /// How many executions may run at once.
    pub limit: u32,
    /// How many do.
    pub in_use: u32,
}

/// Requests by status, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestCounts {
    /// Waiting.
    pub pending: u64,
    /// Being started.
    pub claimed: u64,
    /// Running.
    pub dispatched: u64,
    /// Ended well.
    pub completed: u64,
    /// Ended otherwise: the dead letters.
    pub failed: u64,
}

crate::names::names! {
    /// What a workspace pays for.
    PlanName = Plan::ALL.map(Plan::as_str)
}
