//! Graphs that run in the store, node by node: parameters and outcomes, and the job of a node.

use crate::Result;
use crate::execution::{ExecutionFinish, ExecutionFinished};
use crate::job::{JobStart, NewJob};
use crate::request::ClaimedRequest;
use crate::store_trait::store_trait;
use leasehold_core::graph::{
    GraphChange, GraphOrigin, GraphState, GraphStop, Node, NodeKind, NodeOutcome, NodeRun,
};
use leasehold_core::job::{JobEnd, JobStatus};
use leasehold_core::limits::{ERROR_MAX_CHARS, STEP_UNCHARGED_BYTES};
use leasehold_core::text::clip;
use leasehold_core::{
    ExecutionEnd, ExecutionId, FailureReason, JsonText, RequestId, RequestStatus, Timestamp,
    VersionId,
};
use std::time::Duration;

store_trait! {
    /// Graphs that run in the store; each node runs as a job.
    pub trait GraphStore, observed by GraphObserver {
        /// Starts the graph of a RUNNING execution: enqueues the jobs of the nodes without predecessors. `start` is what the claim of its request
        /// returned; the store only checks that the execution still runs that version. Idempotent: repeated calls start the graph once.
        async fn graph_start(&self, start: &GraphStart) -> Result<GraphStarted>;

        /// Returns the graph of an execution; none if it was never started in this store.
        async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>>;

        /// Returns the nodes of an execution's graph in the order of its node list; none if it was never started in this store. Attempts and last error of a
        /// running node are those of its job. The first output with which the total exceeds
        /// [`NODE_OUTPUTS_MAX_BYTES`](leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES), and all after it, are omitted.
        async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>>;

        /// Returns the output of the node at this index, of any size.
        async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>>;

        /// Stops a graph in one transaction: no further node starts, execution and request end, and the slot is freed. Of the jobs of its open nodes
        /// those that were never claimed are deleted; the others fail, and leases are revoked. Nodes whose job was never claimed are not
        /// written: [`GraphStore::graph_nodes`] derives their end from the graph's.
        async fn graph_stop(
            &self,
            execution: ExecutionId,
            stop: GraphStop,
            by: &str,
            reason: &str,
        ) -> Result<GraphStopped>;

        /// Ends up to `limit` expired graphs: the timeout of the execution has passed, or the lease of a node's last attempt expired. Idempotent, and safe to
        /// call from several instances at once; call it again while it returns `limit` executions.
        async fn graph_expire(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>>;
    }
}

/// The error of a job whose execution ended before it did.
pub const ABANDONED: &str = "the execution has ended";
/// The error of an execution whose timeout has passed.
pub const TIMED_OUT: &str = "the execution timeout has passed";

/// A graph that runs or ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRun {
    /// The execution.
    pub execution: ExecutionId,
    /// The states of its nodes, and how it ended.
    pub state: GraphState,
    /// The error.
    pub error: Option<String>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// A graph to start: what the claim of its request returned.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphStart {
    /// The execution.
    pub execution: ExecutionId,
    /// The version that it runs.
    pub version: VersionId,
    /// The params of the request.
    pub params: JsonText,
    /// What its jobs inherit from the request.
    pub origin: GraphOrigin,
}

impl From<&ClaimedRequest> for GraphStart {
    fn from(claimed: &ClaimedRequest) -> Self {
        Self {
            execution: claimed.execution,
            version: claimed.version,
            params: claimed.params.clone(),
            origin: GraphOrigin {
                workspace: claimed.workspace,
                priority: claimed.priority,
                trace_context: claimed.trace_context.clone(),
                crashed: claimed.crashes.any(),
            },
        }
    }
}

/// Outcome of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphStarted {
    /// The jobs of its first nodes are enqueued.
    Started,
    /// It was started, and ended at once because the input of a first node could not be built.
    Ended(EndedExecution),
    /// It had already been started.
    AlreadyStarted {
        /// Whether it has ended since.
        ended: bool,
    },
    /// No such execution exists, or it ended before it was started.
    NotFound,
    /// Its version is a binding, which a store cannot run.
    NotAGraph,
}

/// Outcome of stopping a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphStopped {
    /// It has ended, and its execution with it.
    Stopped(EndedExecution),
    /// It had already ended.
    AlreadyEnded,
    /// The execution has no graph in this store.
    NotFound,
}

/// An execution that a call ended, with its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedExecution {
    /// The execution.
    pub execution: ExecutionId,
    /// Its request.
    pub request: RequestId,
    /// How it ended.
    pub end: ExecutionEnd,
    /// COMPLETED or FAILED.
    pub status: RequestStatus,
    /// Why the request failed.
    pub reason: Option<FailureReason>,
    /// The error.
    pub error: Option<String>,
}

impl EndedExecution {
    /// Builds it from a finish and its outcome; none if the finish ended nothing.
    pub fn of(finish: &ExecutionFinish, outcome: &ExecutionFinished) -> Option<Self> {
        let ExecutionFinished::Finished {
            request,
            status,
            reason,
        } = *outcome
        else {
            return None;
        };
        Some(Self {
            execution: finish.execution,
            request,
            end: finish.end,
            status,
            reason,
            error: finish.error.clone(),
        })
    }
}

/// Returns the finish of a graph's execution; none unless the graph ended in this operation.
pub fn finish_of(change: &GraphChange) -> Option<ExecutionFinish> {
    Some(ExecutionFinish {
        execution: change.execution(),
        end: change.state().end().filter(|_| change.has_changed())?,
        error: change.error().map(str::to_owned),
    })
}

/// Returns the outcome of a node whose claim ended so and left its job in `status`; none if the node has not ended.
pub fn node_outcome(end: &JobEnd, status: JobStatus) -> Option<NodeOutcome> {
    match (status, end) {
        (JobStatus::Completed, JobEnd::Completed { result }) => {
            Some(NodeOutcome::Completed(result.clone().unwrap_or_default()))
        }
        (JobStatus::Failed, JobEnd::Failed { error, .. }) => {
            Some(NodeOutcome::Failed(clip(error, ERROR_MAX_CHARS)))
        }
        (_, _) => None,
    }
}

/// Returns the bytes that this operation charges to the workspace of a graph; none if it writes little, or if the graph has ended, which releases
/// everything that was charged. Call it before [`jobs_of`].
pub fn charge_of(change: &GraphChange) -> Option<u64> {
    let bytes = change.written_bytes();
    (bytes > STEP_UNCHARGED_BYTES && !change.has_ended()).then_some(bytes as u64)
}

/// Builds the jobs of the nodes that start, each with the index of its node.
pub fn jobs_of(change: &mut GraphChange) -> Vec<(usize, NewJob)> {
    let begun = change.take_begun();
    let origin = change.origin();
    let job = |(node, payload)| {
        let trace_context = origin.trace_context.as_deref();
        let job = job_of(change.node(node), payload, origin.priority, trace_context);
        (node, job)
    };
    begun.into_iter().map(job).collect()
}

/// Builds the job of a node. It inherits the priority and the trace of the request.
pub fn job_of(
    node: &Node,
    payload: JsonText,
    priority: i16,
    trace_context: Option<&str>,
) -> NewJob {
    let retry = node.job_retry();
    let mut job = NewJob::new(node.kind.queue(), node.job_kind(), payload);
    job.priority = priority;
    job.trace_context = trace_context.map(str::to_owned);
    job.max_attempts = Some(retry.max_attempts);
    job.backoff = Some(retry.backoff);
    job.timeout = node.job_timeout();
    if let NodeKind::Delay { milliseconds } = node.kind {
        job.start = JobStart::In(Duration::from_millis(milliseconds));
    }
    job
}
