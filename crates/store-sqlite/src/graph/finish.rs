//! Ending the claim of a node: the job's end, the node's output, the nodes that follow and the execution's end, in one operation.

use crate::error::Fault;
use crate::graph::machines::Machines;
use crate::graph::open::{NodeEnd, Open};
use crate::graph::write;
use crate::job::end::kept;
use crate::job::finish::{Call, Results};
use crate::session::Session;
use leasehold_core::JsonText;
use leasehold_core::job::{JobEnd, JobFinish, JobFinished};
use leasehold_store::failpoint::reach;
use leasehold_store::graph::EndedExecution;

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
    machines: &Machines,
    worker: &str,
    finish: &JobFinish,
) -> Result<NodeFinished, Fault> {
    let mut call = Call::by(session, worker);
    reach("job_finish/begun");
    let Some(node) = call.node(finish.claim)? else {
        return Ok(NodeFinished::lost());
    };
    let graph = Open::find(session, machines, node.execution)?;
    if graph.as_ref().is_some_and(Open::has_ended) {
        return Ok(NodeFinished::lost());
    }
    let Some(taken) = call.take(finish.claim)? else {
        return Ok(NodeFinished::lost());
    };
    let job = call.finish(taken, &finish.end, Results::Elsewhere)?;
    let mut changed = Vec::new();
    if let (Some(mut graph), Some(outcome)) = (graph, outcome(job, &finish.end)) {
        let end = NodeEnd {
            place: node.place,
            attempts: taken.attempt,
            outcome,
        };
        graph.node_ended(session, end)?;
        changed.push(graph);
    }
    call.write()?;
    reach("job_finish/ended");
    write::record(session, &changed)?;
    reach("job_finish/recorded");
    write::begin(session, &mut changed)?;
    reach("job_finish/enqueued");
    let ended = write::end(session, worker, &mut changed)?.pop();
    reach("job_finish/finished");
    Ok(NodeFinished { job, ended })
}

/// How the node ends with its claim; none if it does not.
fn outcome(job: JobFinished, end: &JobEnd) -> Option<Result<JsonText, String>> {
    match (job, end) {
        (JobFinished::Completed, JobEnd::Completed { result }) => {
            Some(Ok(result.clone().unwrap_or_default()))
        }
        (JobFinished::Failed, JobEnd::Failed { error, .. }) => Some(Err(kept(error))),
        (_, _) => None,
    }
}
