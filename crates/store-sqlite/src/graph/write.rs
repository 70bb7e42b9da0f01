//! Writes the changes of graphs: nodes and states, then the jobs of the next nodes, then the ends of executions. Decides nothing.

use crate::error::Fault;
use crate::execution;
use crate::graph::open::computation;
use crate::job::enqueue::{self, EnqueueBatch};
use crate::job::{NodeRef, abandon};
use crate::queue_access::{self, NodeQueues};
use crate::row::{NodeIndex, Text, blob};
use crate::session::Session;
use leasehold_core::graph::GraphChange;
use leasehold_crash_marker::CrashMarkers;
use leasehold_store::graph::{EndedExecution, charge_of, finish_of, jobs_of};
use leasehold_store::job::NewJob;
use leasehold_store::sql;
use rusqlite::params;

const UPDATE: &str = sql!("graph/update");
const CHARGE: &str = sql!("graph/charge");
const NODE_BEGIN: &str = sql!("node/begin");
const NODE_END: &str = sql!("node/end");
const NODE_ABANDON: &str = sql!("node/abandon");
const NODE_JOB: &str = sql!("node/job");
const SPENT_DELETE: &str = sql!("node/spent_delete");

/// Writes all changes of graphs that start no further node, and returns the executions that ended.
pub(super) fn all(
    session: &Session<'_>,
    by: &str,
    graphs: &mut [GraphChange],
) -> Result<Vec<EndedExecution>, Fault> {
    record(session, graphs)?;
    end(session, by, graphs)
}

/// Finds the queues of the next nodes. A graph whose workspace may not use one of them fails.
pub(super) fn queues(
    session: &Session<'_>,
    graphs: &mut [GraphChange],
) -> Result<NodeQueues, Fault> {
    let mut queues = NodeQueues::new();
    for graph in graphs {
        queues.extend(queue_access::node_queues(session, graph)?);
    }
    Ok(queues)
}

/// Writes the ended nodes and the graphs' states. A new graph was inserted with its state.
pub(super) fn record(session: &Session<'_>, graphs: &[GraphChange]) -> Result<(), Fault> {
    for graph in graphs {
        let execution = blob(graph.execution());
        session.with_statement(NODE_END, |statement| {
            for end in graph.ended() {
                statement.execute(params![
                    execution,
                    NodeIndex(end.node),
                    end.attempts,
                    end.output().map(|output| Text(output.as_str())),
                    end.error().map(Text),
                    session.now
                ])?;
            }
            Ok(())
        })?;
        let ended = graph.state().end();
        if graph.is_new() && ended.is_none() {
            continue;
        }
        let row = params![
            execution,
            graph.state().letters(),
            ended.map(|end| end.as_str()),
            graph.error().map(Text),
            ended.map(|_| session.now)
        ];
        session.run(UPDATE, row)?;
    }
    Ok(())
}

/// Enqueues the jobs of the next nodes, and charges the workspaces for them and for the outputs of the nodes that ended. An ended graph has none.
pub(super) fn begin(
    session: &Session<'_>,
    markers: &CrashMarkers,
    graphs: &mut [GraphChange],
    queues: &NodeQueues,
) -> Result<(), Fault> {
    let (mut jobs, mut nodes): (Vec<NewJob>, Vec<NodeRef>) = Default::default();
    for graph in graphs.iter_mut() {
        let execution = graph.execution();
        if let Some(bytes) = charge_of(graph) {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            session.run(CHARGE, params![blob(execution), bytes])?;
        }
        if !graph.begins_nodes() {
            continue;
        }
        for (index, job) in markers.compute(computation(graph), || jobs_of(graph)) {
            jobs.push(job);
            nodes.push(NodeRef { execution, index });
        }
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let batch = EnqueueBatch::for_nodes(&jobs, nodes.iter().copied());
    let answers = enqueue::enqueue_nodes(session, &batch, queues)?;
    session.with_statement(NODE_BEGIN, |statement| {
        for (node, job) in nodes.iter().zip(answers) {
            let execution = blob(node.execution);
            statement.execute(params![
                execution,
                NodeIndex(node.index),
                job.id.0,
                session.now
            ])?;
        }
        Ok(())
    })
}

/// Finishes ended graphs: fails their remaining jobs, finishes execution and request, frees the slot. Returns the executions that ended.
pub(super) fn end(
    session: &Session<'_>,
    by: &str,
    graphs: &[GraphChange],
) -> Result<Vec<EndedExecution>, Fault> {
    let mut ended = Vec::new();
    for graph in graphs {
        let Some(finish) = finish_of(graph) else {
            continue;
        };
        abandon_nodes(session, graph)?;
        session.run(SPENT_DELETE, [blob(graph.execution())])?;
        let outcome = execution::finish_one(session, by, &finish)?;
        ended.extend(EndedExecution::of(&finish, &outcome));
    }
    Ok(ended)
}

fn abandon_nodes(session: &Session<'_>, graph: &GraphChange) -> Result<(), Fault> {
    let execution = blob(graph.execution());
    let mut nodes = Vec::with_capacity(graph.abandoned().len());
    for index in graph.abandoned() {
        let job = session.optional(NODE_JOB, params![execution, NodeIndex(*index)], |row| {
            Ok(row.get::<_, i64>(0)?)
        })?;
        nodes.extend(job.map(|job| (*index, job)));
    }
    let jobs: Vec<i64> = nodes.iter().map(|(_, job)| *job).collect();
    let attempts = abandon::abandon(session, &jobs)?;
    for (index, job) in nodes {
        // The end of a node whose job was never claimed follows from the graph's.
        if let Some(tried) = attempts.get(&job) {
            let row = params![execution, NodeIndex(index), tried, session.now];
            session.run(NODE_ABANDON, row)?;
        }
    }
    Ok(())
}
