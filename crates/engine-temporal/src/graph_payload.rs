//! What the workflow that runs graphs and its activities write into histories. Histories outlive programs, so what is read here must stay readable.

use leasehold_core::duration::millis;
use leasehold_core::graph::{Graph, HttpCall};
use leasehold_core::job::JobRetry;
use leasehold_core::{DefinitionId, ExecutionId, JobId, JsonText, VersionId, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The memo's field with the request's priority, for the jobs of a graph's tasks: Temporal knows it only roughly.
pub const MEMO_PRIORITY: &str = "priority";

/// The memo's field with the trace that a graph goes on with, for the jobs and calls of its nodes.
pub const MEMO_TRACE: &str = "traceparent";

/// The type of a workflow's failure that a node is to blame for.
pub const FAILED_NODE: &str = "NodeFailed";

/// The one argument of every workflow, as it is written and as the worker reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input<'a> {
    /// The execution, which the workflow is called after.
    pub execution_id: ExecutionId,
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// The definition that was asked for.
    pub workflow_definition_id: DefinitionId,
    /// The version of it that runs.
    pub workflow_version_id: VersionId,
    /// The ids of its nodes, in the order of the graph.
    pub node_ids: Vec<Cow<'a, str>>,
    /// What the request gives.
    pub params: JsonText,
    /// The graph, for the worker that runs it; none for a workflow type of the user's own.
    pub graph: Option<Cow<'a, Graph>>,
}

/// A call to make.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallInput {
    /// The call, with everything put in.
    pub call: HttpCall,
    /// How long it may take.
    pub timeout_ms: u64,
    /// The trace that it is part of, as a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// A job to have done.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskInput {
    /// The execution that the node is part of.
    pub execution_id: ExecutionId,
    /// The node.
    pub node_id: String,
    /// The queue that the job goes into.
    pub queue: String,
    /// The kind of the job.
    pub kind: String,
    /// What the worker is given.
    pub payload: JsonText,
    /// The job's priority.
    pub priority: i16,
    /// How often and when it is tried again.
    pub retry: RetryInput,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The trace that it is part of, as a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// How often and when a job is tried again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryInput {
    /// Attempts in all.
    pub max_attempts: u32,
    /// The first wait.
    pub base_ms: u64,
    /// By what each wait grows.
    pub factor: f64,
    /// The longest wait.
    pub max_ms: u64,
    /// How much of a wait is left to chance.
    pub jitter: f64,
}

/// An execution that is about to end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedInput {
    /// Which one.
    pub execution_id: ExecutionId,
}

/// What a node came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// How often somebody began to work on it.
    pub attempts: u32,
    /// The job of a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// What it gave.
    pub output: Option<JsonText>,
}

/// How far a task's job is: told with every heartbeat, and with the job's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSeen {
    /// The job.
    pub job: JobId,
    /// Claims that count.
    pub attempts: u32,
}

/// Which node ended an execution, and why: the details of the workflow's failure.
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

/// What a node is told to have failed with when its activity timed out: without a heartbeat its worker is gone.
#[must_use]
pub const fn timed_out(without_heartbeat: bool) -> &'static str {
    if without_heartbeat {
        "the worker that had it was lost"
    } else {
        "it took longer than its timeout"
    }
}
