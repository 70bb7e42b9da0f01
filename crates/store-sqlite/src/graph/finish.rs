//! Finishes a node's job: records the job's end and the node's output, enqueues the next nodes or ends the execution, in one operation.

use crate::error::Fault;
use crate::graph::{open, write};
use crate::job::finish::{FinishCall, ResultStorage};
use crate::session::Session;
use leasehold_core::JobStatus;
use leasehold_core::graph::{GraphChange, NodeEnd};
use leasehold_core::job::{JobFinish, JobFinished};
use leasehold_crash_marker::CrashMarkers;
use leasehold_store::definition::VersionCache;
use leasehold_store::failpoint::reach;
use leasehold_store::graph::{EndedExecution, node_outcome};

/// The outcome of finishing a node's job.
pub(crate) struct NodeFinished {
    pub(crate) job: JobFinished,
    /// The execution, if it ended with the node.
    pub(crate) ended: Option<EndedExecution>,
}

impl NodeFinished {
    fn lease_lost() -> Self {
        Self {
            job: JobFinished::LeaseLost,
            ended: None,
        }
    }
}

pub(super) fn finish(
    session: &Session<'_>,
    versions: &VersionCache,
    markers: &CrashMarkers,
    worker: &str,
    finish: &JobFinish,
) -> Result<NodeFinished, Fault> {
    let mut call = FinishCall::new(session, worker);
    reach("job_finish/begun");
    let Some(node) = call.node(finish.claim)? else {
        return Ok(NodeFinished::lease_lost());
    };
    let graph = open::graph(session, versions, node.execution)?;
    if graph.as_ref().is_some_and(GraphChange::has_ended) {
        return Ok(NodeFinished::lease_lost());
    }
    let Some(lease) = call.take(finish.claim)? else {
        return Ok(NodeFinished::lease_lost());
    };
    let job = call.finish(lease, &finish.end, ResultStorage::WithNode)?;
    let mut changed = Vec::new();
    let outcome = node_outcome(&finish.end, status(job));
    if let (Some(mut graph), Some(outcome)) = (graph, outcome) {
        let end = NodeEnd {
            node: node.index,
            attempts: lease.attempt,
            outcome,
        };
        open::node_ended(session, markers, &mut graph, end)?;
        changed.push(graph);
    }
    let queues = write::queues(session, &mut changed)?;
    call.write()?;
    reach("job_finish/ended");
    write::record(session, &changed)?;
    reach("job_finish/recorded");
    write::begin(session, markers, &mut changed, &queues)?;
    reach("job_finish/enqueued");
    let ended = write::end(session, worker, &changed)?.pop();
    reach("job_finish/finished");
    Ok(NodeFinished { job, ended })
}

/// Returns the job's status after it was finished.
fn status(finished: JobFinished) -> JobStatus {
    match finished {
        JobFinished::Completed => JobStatus::Completed,
        JobFinished::Failed => JobStatus::Failed,
        JobFinished::Queued { .. } | JobFinished::LeaseLost | JobFinished::NotWritten => {
            JobStatus::Queued
        }
    }
}
