//! Writes what happened to graphs: nodes and states, then the jobs of the nodes that follow, then the ends of executions. Decides nothing.

use crate::error::Fault;
use crate::execution;
use crate::job::enqueue::{self, Call};
use crate::job::{NodeOf, abandon};
use crate::row::{Place, Text, blob};
use crate::session::Session;
use leasehold_core::graph::GraphChange;
use leasehold_store::graph::{EndedExecution, finish_of, jobs_of};
use leasehold_store::job::NewJob;
use leasehold_store::sql;
use rusqlite::params;

const SET: &str = sql!("graph/set");
const NODE_BEGIN: &str = sql!("node/begin");
const NODE_END: &str = sql!("node/end");
const NODE_ABANDON: &str = sql!("node/abandon");
const NODE_JOB: &str = sql!("node/job");
const SPENT_OVER: &str = sql!("node/spent_over");

/// All of it; says which executions ended.
pub(super) fn all(
    session: &Session<'_>,
    by: &str,
    graphs: &mut [GraphChange],
) -> Result<Vec<EndedExecution>, Fault> {
    record(session, graphs)?;
    begin(session, graphs)?;
    end(session, by, graphs)
}

/// The nodes that have ended, and where the graphs are, unless their creation said so.
pub(super) fn record(session: &Session<'_>, graphs: &[GraphChange]) -> Result<(), Fault> {
    for graph in graphs {
        let execution = blob(graph.execution());
        session.often(NODE_END, |statement| {
            for end in graph.ended() {
                statement.execute(params![
                    execution,
                    Place(end.node),
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
        session.run(SET, row)?;
    }
    Ok(())
}

/// The jobs of the nodes that follow. A graph that has ended begins none.
pub(super) fn begin(session: &Session<'_>, graphs: &mut [GraphChange]) -> Result<(), Fault> {
    let (mut jobs, mut nodes): (Vec<NewJob>, Vec<NodeOf>) = Default::default();
    for graph in graphs.iter_mut() {
        let execution = graph.execution();
        for (place, job) in jobs_of(graph) {
            jobs.push(job);
            nodes.push(NodeOf { execution, place });
        }
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let call = Call::of_nodes(&jobs, nodes.iter().copied());
    let answers = enqueue::enqueue(session, &call)?;
    session.often(NODE_BEGIN, |statement| {
        for (node, job) in nodes.iter().zip(answers) {
            let execution = blob(node.execution);
            statement.execute(params![execution, Place(node.place), job.id.0, session.now])?;
        }
        Ok(())
    })
}

/// The ends of graphs: what is no longer wanted is failed, and execution, request and slot end. Says which did.
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
        session.run(SPENT_OVER, [blob(graph.execution())])?;
        let outcome = execution::finish_one(session, by, &finish)?;
        ended.extend(EndedExecution::of(&finish, &outcome));
    }
    Ok(ended)
}

fn abandon_nodes(session: &Session<'_>, graph: &GraphChange) -> Result<(), Fault> {
    let execution = blob(graph.execution());
    let mut nodes = Vec::with_capacity(graph.abandoned().len());
    for place in graph.abandoned() {
        let job = session.maybe(NODE_JOB, params![execution, Place(*place)], |row| {
            Ok(row.get::<_, i64>(0)?)
        })?;
        nodes.extend(job.map(|job| (*place, job)));
    }
    let jobs: Vec<i64> = nodes.iter().map(|(_, job)| *job).collect();
    let attempts = abandon::abandon(session, &jobs)?;
    for (place, job) in nodes {
        let tried = attempts.get(&job).copied().unwrap_or_default();
        session.run(
            NODE_ABANDON,
            params![execution, Place(place), tried, session.now],
        )?;
    }
    Ok(())
}
