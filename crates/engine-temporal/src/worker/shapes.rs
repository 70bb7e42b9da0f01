//! What the workflow and its activities tell each other. It is in histories, so what is read here must stay readable.

use leasehold_core::duration::millis;
use leasehold_core::graph::HttpCall;
use leasehold_core::job::JobRetry;
use leasehold_core::{ExecutionId, JobId, JsonText};
use serde::{Deserialize, Serialize};

/// A call to make.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallInput {
    pub(crate) call: HttpCall,
    pub(crate) timeout_ms: u64,
    /// The trace that it is part of, as a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
}

/// A job to have done.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskInput {
    pub(crate) execution_id: ExecutionId,
    pub(crate) node_id: String,
    pub(crate) queue: String,
    pub(crate) kind: String,
    pub(crate) payload: JsonText,
    pub(crate) priority: i16,
    pub(crate) retry: RetryInput,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    /// The trace that it is part of, as a `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
}

/// How often and when a job is tried again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetryInput {
    pub(crate) max_attempts: u32,
    pub(crate) base_ms: u64,
    pub(crate) factor: f64,
    pub(crate) max_ms: u64,
    pub(crate) jitter: f64,
}

/// An execution that is about to end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndedInput {
    pub(crate) execution_id: ExecutionId,
}

/// What a node came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Done {
    /// How often somebody began to work on it.
    pub(crate) attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<JobId>,
    pub(crate) output: Option<JsonText>,
}

/// How far a task's job is: told with every heartbeat, and with the job's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobSeen {
    pub(crate) job: JobId,
    /// Claims that count.
    pub(crate) attempts: u32,
}

/// Which node ended an execution, and why: the details of the workflow's failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailedNode {
    pub(crate) node_id: String,
    pub(crate) error: String,
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
