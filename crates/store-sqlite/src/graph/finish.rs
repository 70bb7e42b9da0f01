//! Ending the claim of a node: the job's end, the node's output, the nodes that follow and the execution's end, in one operation.

use crate::error::Fault;
use crate::graph::{open, write};
use crate::job::finish::{Call, Results};
use crate::session::Session;
use leasehold_core::JobStatus;
use leasehold_core::graph::{GraphChange, NodeEnd};
use leasehold_core::job::{JobFinish, JobFinished};
use leasehold_store::definition::VersionCache;
use leasehold_store::failpoint::reach;
use leasehold_store::graph::{EndedExecution, node_outcome};

/// What became of a claim.
pub(crate) struct NodeFinished {
    pub(crate) job: JobFinished,
    /// The execution, if it ended with the node.
    pub(crate) ended: Option<EndedExecution>,
}

impl NodeFinished {
    fn lost() -> Self {
        Self {
            job: JobFinished::LeaseLost,
            ended: None,
        }
    }
}

pub(super) fn finish(
    session: &Session<'_>,
    versions: &VersionCache,
    worker: &str,
    finish: &JobFinish,
) -> Result<NodeFinished, Fault> {
    let mut call = Call::by(session, worker);
    reach("job_finish/begun");
    let Some(node) = call.node(finish.claim)? else {
        return Ok(NodeFinished::lost());
    };
    let graph = open::graph(session, versions, node.execution)?;
    if graph.as_ref().is_some_and(GraphChange::has_ended) {
        return Ok(NodeFinished::lost());
    }
    let Some(taken) = call.take(finish.claim)? else {
        return Ok(NodeFinished::lost());
    };
    let job = call.finish(taken, &finish.end, Results::Elsewhere)?;
    let mut changed = Vec::new();
    let outcome = node_outcome(&finish.end, status(job));
    if let (Some(mut graph), Some(outcome)) = (graph, outcome) {
        let end = NodeEnd {
            node: node.place,
            attempts: taken.attempt,
            outcome,
        };
        open::node_ended(session, &mut graph, end)?;
        changed.push(graph);
    }
    call.write()?;
    reach("job_finish/ended");
    write::record(session, &changed)?;
    reach("job_finish/recorded");
    write::begin(session, &mut changed)?;
    reach("job_finish/enqueued");
    let ended = write::end(session, worker, &changed)?.pop();
    reach("job_finish/finished");
    Ok(NodeFinished { job, ended })
}

/// Where a job is whose lease was held.
fn status(finished: JobFinished) -> JobStatus {
    match finished {
        JobFinished::Completed => JobStatus::Completed,
        JobFinished::Failed => JobStatus::Failed,
        JobFinished::Queued { .. } | JobFinished::LeaseLost | JobFinished::NotWritten => {
            JobStatus::Queued
        }
    }
}
