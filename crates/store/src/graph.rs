//! Graphs that run in the store, node by node: parameters and outcomes, and the job that a node becomes.

use crate::Result;
use crate::execution::{ExecutionFinish, ExecutionFinished};
use crate::job::{JobStart, NewJob};
use crate::request::ClaimedRequest;
use crate::store_trait::store_trait;
use leasehold_core::graph::{
    GraphChange, GraphOrigin, GraphState, GraphStop, NodeOutcome, NodeRun, Work,
};
use leasehold_core::job::{JobEnd, JobRetry, JobStatus};
use leasehold_core::limits::ERROR_MAX_CHARS;
use leasehold_core::queue::{DELAY_NODES, HTTP_NODES};
use leasehold_core::text::clip;
use leasehold_core::{
    ExecutionEnd, ExecutionId, FailureReason, JsonText, RequestId, RequestStatus, Timestamp,
    VersionId,
};
use std::time::Duration;

store_trait! {
    /// Graphs that run in the store: a node is a job.
    pub trait GraphStore, observed by GraphObserver {
        /// Starts the graph of a RUNNING execution: the nodes that wait for nothing are put into their queues. `start` is what the claim of its request
        /// returned; the store only checks that the execution still runs that version. However often it is called for one execution, one is started.
        async fn graph_start(&self, start: &GraphStart) -> Result<GraphStarted>;

        /// The graph of an execution; none if it was never started here.
        async fn graph_get(&self, execution: ExecutionId) -> Result<Option<GraphRun>>;

        /// The nodes of an execution's graph in the order the graph lists them; none if it was never started here. A running node's attempts and last error
        /// are those of its job. Outputs are left out from the first on with which they would have more than
        /// [`NODE_OUTPUTS_MAX_BYTES`](leasehold_core::limits::NODE_OUTPUTS_MAX_BYTES) together.
        async fn graph_nodes(&self, execution: ExecutionId) -> Result<Option<Vec<NodeRun>>>;

        /// What the node at this place in the graph's list came to, however large.
        async fn graph_output(&self, execution: ExecutionId, node: usize) -> Result<Option<JsonText>>;

        /// Ends a graph: no node is begun any more, jobs of nodes that nobody has are failed, leases of those that somebody has are lost, and execution,
        /// request and slot end with it, in one transaction.
        async fn graph_stop(
            &self,
            execution: ExecutionId,
            stop: GraphStop,
            by: &str,
            reason: &str,
        ) -> Result<GraphStopped>;

        /// Ends up to `limit` graphs that time has ended: their execution's timeout has passed, or a node's job lost its last lease. Idempotent, safe from
        /// everywhere at once; call again while it finds as many as asked.
        async fn graph_settle(&self, by: &str, limit: u32) -> Result<Vec<EndedExecution>>;
    }
}

/// The error of a job whose execution ended without it.
pub const ABANDONED: &str = "the execution has ended";
/// The error of an execution whose timeout has passed.
pub const TIMED_OUT: &str = "the execution timeout has passed";

/// A graph that runs or ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphRun {
    /// The execution.
    pub execution: ExecutionId,
    /// Where its nodes are, and how it ended.
    pub state: GraphState,
    /// What went wrong.
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
    /// What to run it with.
    pub params: JsonText,
    /// What its jobs take from the request.
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
            },
        }
    }
}

/// What became of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphStarted {
    /// Its first nodes are in their queues.
    Started,
    /// The input of a first node could not be made: it was started, and has ended with it.
    Ended(EndedExecution),
    /// It was started before.
    AlreadyStarted {
        /// Whether it has ended since.
        ended: bool,
    },
    /// There is no such execution, or it ended before it was started.
    NotFound,
    /// Its version is a binding, which no store can run.
    NotAGraph,
}

/// What became of stopping a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphStopped {
    /// It has ended, and its execution with it.
    Stopped(EndedExecution),
    /// It had ended before.
    AlreadyEnded,
    /// There is none.
    NotFound,
}

/// An execution that a call brought to its end, with its request.
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
    /// What went wrong.
    pub error: Option<String>,
}

impl EndedExecution {
    /// What a finish ended; none if it ended nothing.
    pub fn of(finish: &ExecutionFinish, came_to: &ExecutionFinished) -> Option<Self> {
        let ExecutionFinished::Finished {
            request,
            status,
            reason,
        } = *came_to
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

/// How the execution of a graph is finished; none unless the graph has ended in this operation.
pub fn finish_of(change: &GraphChange) -> Option<ExecutionFinish> {
    Some(ExecutionFinish {
        execution: change.execution(),
        end: change.state().end().filter(|_| change.has_changed())?,
        error: change.error().map(str::to_owned),
    })
}

/// How a node ends with a claim that ends so and leaves its job there; none if the node goes on.
pub fn node_outcome(end: &JobEnd, becomes: JobStatus) -> Option<NodeOutcome> {
    match (becomes, end) {
        (JobStatus::Completed, JobEnd::Completed { result }) => {
            Some(NodeOutcome::Completed(result.clone().unwrap_or_default()))
        }
        (JobStatus::Failed, JobEnd::Failed { error, .. }) => {
            Some(NodeOutcome::Failed(clip(error, ERROR_MAX_CHARS)))
        }
        (_, _) => None,
    }
}

/// The jobs of the nodes that begin, each with its node's place in the graph's list.
pub fn jobs_of(change: &mut GraphChange) -> Vec<(usize, NewJob)> {
    let begun = change.take_begun();
    let origin = change.origin();
    let job = |(node, work)| {
        let trace_context = origin.trace_context.as_deref();
        (node, job_of(work, origin.priority, trace_context))
    };
    begun.into_iter().map(job).collect()
}

/// The job that does a node's work. It is as urgent as its request, and goes on with its trace.
pub fn job_of(work: Work, priority: i16, trace_context: Option<&str>) -> NewJob {
    let with = |mut job: NewJob, retry: JobRetry, timeout: Option<Duration>| {
        job.priority = priority;
        job.trace_context = trace_context.map(str::to_owned);
        job.max_attempts = Some(retry.max_attempts);
        job.backoff = Some(retry.backoff);
        job.timeout = timeout;
        job
    };
    match work {
        Work::Task {
            queue,
            kind,
            payload,
            retry,
            timeout,
        } => with(NewJob::new(queue, kind, payload), retry, timeout),
        Work::Http {
            call,
            retry,
            timeout,
        } => {
            // A call is made of texts and JSON, which is always JSON.
            let payload = JsonText::of(&call).unwrap_or_default();
            with(
                NewJob::new(HTTP_NODES, "http", payload),
                retry,
                Some(timeout),
            )
        }
        Work::Delay(pause) => {
            let job = NewJob::new(DELAY_NODES, "delay", JsonText::default());
            // There is nothing in it that could fail for good.
            let retry = JobRetry {
                max_attempts: leasehold_core::limits::MAX_ATTEMPTS_MAX,
                ..JobRetry::default()
            };
            let mut job = with(job, retry, None);
            job.start = JobStart::In(pause);
            job
        }
    }
}
