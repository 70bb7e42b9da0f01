//! Starts a graph: writes its first state and enqueues the nodes without predecessors.

use crate::definition::cached_version;
use crate::error::Fault;
use crate::graph::{open, write};
use crate::row::{blob, later};
use crate::session::Session;
use leasehold_core::graph::GraphChange;
use leasehold_crash_marker::{Computation, CrashMarkers, reach_failpoint};
use leasehold_store::definition::VersionCache;
use leasehold_store::graph::{GraphStart, GraphStarted};
use leasehold_store::sql;
use rusqlite::params;
use std::time::Duration;

const GET: &str = sql!("graph/get");
const TO_START: &str = sql!("graph/to_start");
const CREATE: &str = sql!("graph/create");

/// Recorded as the author when an execution ends because its first node cannot start.
const BY: &str = "graph";

pub(super) fn start(
    session: &Session<'_>,
    versions: &VersionCache,
    markers: &CrashMarkers,
    start: GraphStart,
) -> Result<GraphStarted, Fault> {
    let execution = start.execution;
    if let Some(state) = session.optional(GET, [blob(execution)], open::state)? {
        let ended = state.end().is_some();
        return Ok(GraphStarted::AlreadyStarted { ended });
    }
    let row = params![blob(execution), blob(start.version)];
    let found = session.optional(TO_START, row, |row| {
        Ok(row.get::<_, Option<i64>>("execution_timeout_ms")?)
    })?;
    let Some(timeout) = found else {
        return Ok(GraphStarted::NotFound);
    };
    let workspace = start.origin.workspace;
    let Some(version) = cached_version(session, versions, workspace, start.version)? else {
        return Ok(GraphStarted::NotFound);
    };
    let Some(machine) = open::machine(&version)? else {
        return Ok(GraphStarted::NotAGraph);
    };
    let computation = Computation {
        execution,
        crashed: start.origin.crashed,
    };
    let graph = markers.compute(computation, || {
        reach_failpoint(&start.params);
        GraphChange::start(execution, start.origin, machine, start.params)
    });
    let deadline = timeout.map(|ms| later(session.now, Duration::from_millis(ms.unsigned_abs())));
    let letters = graph.state().letters();
    session.run(
        CREATE,
        params![blob(execution), letters, deadline, session.now],
    )?;
    let mut graphs = [graph];
    let queues = write::queues(session, &mut graphs)?;
    write::record(session, &graphs)?;
    write::begin(session, markers, &mut graphs, &queues)?;
    let ended = write::end(session, BY, &graphs)?.pop();
    Ok(ended.map_or(GraphStarted::Started, GraphStarted::Ended))
}
