//! The JSON that the graph workflow and its activities write into histories. Histories outlive releases, so these types must stay readable.

use leasehold_core::duration::millis;
use leasehold_core::graph::{Graph, HttpCall};
use leasehold_core::job::JobRetry;
use leasehold_core::{DefinitionId, ExecutionId, JobId, JsonText, VersionId, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The memo field with the request's exact priority, for the jobs of task nodes: Temporal has only five priorities.
pub const MEMO_PRIORITY: &str = "priority";

/// The memo field with the `traceparent` for the jobs and calls of a graph's nodes.
pub const MEMO_TRACE: &str = "traceparent";

/// The failure type of a workflow that failed because of a node.
pub const FAILED_NODE: &str = "NodeFailed";

/// The single argument of every workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowInput<'a> {
    /// The execution, which gives the workflow its id.
    pub execution_id: ExecutionId,
    /// The workspace of the execution.
    pub workspace_id: WorkspaceId,
    /// The requested definition.
    pub workflow_definition_id: DefinitionId,
    /// The version that runs.
    pub workflow_version_id: VersionId,
    /// The ids of the nodes, in topological order.
    pub node_ids: Vec<Cow<'a, str>>,
    /// The request's params.
    pub params: JsonText,
    /// The graph, for the graph worker; `None` for a workflow of the user's own workers.
    pub graph: Option<Cow<'a, Graph>>,
}

/// The input of the `http` activity.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallInput {
    /// The call, with all templates resolved.
    pub call: HttpCall,
    /// The timeout.
    pub timeout_ms: u64,
    /// The `traceparent` to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// The input of the `task` activity.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskInput {
    /// The node's execution.
    pub execution_id: ExecutionId,
    /// The workspace of the execution, which must be allowed to use the queue. Older histories do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// The node.
    pub node_id: String,
    /// The queue of the job.
    pub queue: String,
    /// The kind of the job.
    pub kind: String,
    /// The job's payload.
    pub payload: JsonText,
    /// The job's priority.
    pub priority: i16,
    /// The job's retry policy.
    pub retry: RetryInput,
    /// The timeout of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The `traceparent` to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// The retry policy of a job.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryInput {
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// The first delay.
    pub base_ms: u64,
    /// The factor between delays.
    pub factor: f64,
    /// The longest delay.
    pub max_ms: u64,
    /// The random share of a delay.
    pub jitter: f64,
}

/// The input of the `ended` activity.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedInput {
    /// The execution that is about to end.
    pub execution_id: ExecutionId,
}

/// The result of a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    /// Number of attempts.
    pub attempts: u32,
    /// The job of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The node's output.
    pub output: Option<JsonText>,
}

/// The progress of a task's job, sent with every heartbeat and with the job's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobProgress {
    /// The job.
    pub job: JobId,
    /// Number of attempts.
    pub attempts: u32,
}

/// The failure details of a workflow: the node that failed, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedNode {
    /// The node.
    pub node_id: String,
    /// Why it failed.
    pub error: String,
}

impl From<JobRetry> for RetryInput {
    fn from(retry: JobRetry) -> Self {
        Self {
            max_attempts: retry.max_attempts,
            base_ms: millis(retry.backoff.base),
            factor: retry.backoff.factor,
            max_ms: millis(retry.backoff.max),
            jitter: retry.backoff.jitter,
        }
    }
}

/// Returns the error of a node whose activity timed out. A missing heartbeat means that the worker is gone.
#[must_use]
pub const fn timeout_message(without_heartbeat: bool) -> &'static str {
    if without_heartbeat {
        "the worker running the node was lost (no heartbeat)"
    } else {
        "timed out"
    }
}
