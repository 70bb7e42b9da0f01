//! Ending claims of nodes: the job's end, the node's output, the nodes that follow and the execution's end, in one operation.

use crate::error::Fault;
use crate::graph::machines::Machines;
use crate::graph::open::{NodeEnd, Open};
use crate::graph::write;
use crate::job::NodeOf;
use crate::job::end::kept;
use crate::job::finish::{Call, Results};
use crate::session::Session;
use leasehold_core::ExecutionId;
use leasehold_store::failpoint::reach;
use leasehold_store::graph::NodesFinished;
use leasehold_store::job::{JobEnd, JobFinish, JobFinished};
use std::collections::HashMap;

pub(super) fn finish(
    session: &Session<'_>,
    machines: &Machines,
    worker: &str,
    finishes: &[JobFinish],
) -> Result<NodesFinished, Fault> {
    let mut call = Call::by(session, worker);
    let mut graphs = Graphs {
        session,
        machines,
        all: Vec::new(),
        places: HashMap::new(),
    };
    reach("node_finish/begun");
    let mut jobs = Vec::with_capacity(finishes.len());
    for finish in finishes {
        let node = call.node(finish.claim)?;
        jobs.push(match node {
            None => match call.take(finish.claim)? {
                None => JobFinished::LeaseLost,
                Some(taken) => call.finish(taken, &finish.end, Results::Kept)?,
            },
            Some(node) => finish_node(&mut call, &mut graphs, node, finish)?,
        });
    }
    call.write()?;
    reach("node_finish/ended");
    let mut graphs = graphs.all;
    write::record(session, &graphs)?;
    reach("node_finish/recorded");
    write::begin(session, &mut graphs)?;
    reach("node_finish/enqueued");
    let ended = write::end(session, worker, &mut graphs)?;
    reach("node_finish/finished");
    Ok(NodesFinished { jobs, ended })
}

fn finish_node<'a>(
    call: &mut Call<'a>,
    graphs: &mut Graphs<'_>,
    node: NodeOf,
    finish: &'a JobFinish,
) -> Result<JobFinished, Fault> {
    let graph = graphs.of(node.execution)?;
    // What ended in this call has lost its leases, though they are taken back only at its end.
    if graph.as_ref().is_some_and(|(graph, _)| graph.has_ended()) {
        return Ok(JobFinished::LeaseLost);
    }
    let Some(taken) = call.take(finish.claim)? else {
        return Ok(JobFinished::LeaseLost);
    };
    let answer = call.finish(taken, &finish.end, Results::Elsewhere)?;
    let outcome = match (answer, &finish.end) {
        (JobFinished::Completed, JobEnd::Completed { result }) => {
            Ok(result.clone().unwrap_or_default())
        }
        (JobFinished::Failed, JobEnd::Failed { error, .. }) => Err(kept(error)),
        (_, _) => return Ok(answer),
    };
    if let Some((graph, session)) = graph {
        let end = NodeEnd {
            place: node.place,
            attempts: taken.attempt,
            outcome,
        };
        graph.node_ended(session, end)?;
    }
    Ok(answer)
}

/// The graphs that one call meets, each read once.
struct Graphs<'a> {
    session: &'a Session<'a>,
    machines: &'a Machines,
    all: Vec<Open>,
    /// Where each is in `all`; none if there is no such graph.
    places: HashMap<ExecutionId, Option<usize>>,
}

impl<'a> Graphs<'a> {
    fn of(
        &mut self,
        execution: ExecutionId,
    ) -> Result<Option<(&mut Open, &'a Session<'a>)>, Fault> {
        let place = match self.places.get(&execution) {
            Some(place) => *place,
            None => {
                let found = Open::find(self.session, self.machines, execution)?;
                let place = found.is_some().then_some(self.all.len());
                self.all.extend(found);
                self.places.insert(execution, place);
                place
            }
        };
        let graph = place.and_then(|place| self.all.get_mut(place));
        Ok(graph.map(|graph| (graph, self.session)))
    }
}
