//! Starting a graph: its first state, and the nodes that wait for nothing.

use crate::error::Fault;
use crate::graph::machines::Machines;
use crate::graph::open::{self, Open};
use crate::graph::write;
use crate::row::{Columns, blob, later};
use crate::session::Session;
use leasehold_core::{ExecutionId, VersionId};
use leasehold_store::graph::GraphStarted;
use leasehold_store::sql;
use rusqlite::params;
use std::time::Duration;

const GET: &str = sql!("graph/get");
const TO_START: &str = sql!("graph/to_start");
const CREATE: &str = sql!("graph/create");

/// Who ends an execution whose first node cannot even be begun.
const BY: &str = "graph";

pub(super) fn start(
    session: &Session<'_>,
    machines: &Machines,
    execution: ExecutionId,
) -> Result<GraphStarted, Fault> {
    if let Some(state) = session.maybe(GET, [blob(execution)], open::state)? {
        let ended = state.end().is_some();
        return Ok(GraphStarted::AlreadyStarted { ended });
    }
    let found = session.maybe(TO_START, [blob(execution)], |row| {
        let timeout: Option<i64> = row.get("execution_timeout_ms")?;
        Ok((row.id::<VersionId>("version_id")?, timeout))
    })?;
    let Some((version, timeout)) = found else {
        return Ok(GraphStarted::NotFound);
    };
    let Some(machine) = machines.of(session, version)? else {
        return Ok(GraphStarted::NotAGraph);
    };
    let (state, step) = machine.begin();
    let deadline = timeout.map(|ms| later(session.now, Duration::from_millis(ms.unsigned_abs())));
    let row = params![blob(execution), state.letters(), deadline, session.now];
    session.run(CREATE, row)?;
    let mut graph = Open::new(execution, machine, state);
    graph.follow(session, step)?;
    let ended = write::all(session, BY, &mut [graph])?.pop();
    Ok(ended.map_or(GraphStarted::Started, GraphStarted::Ended))
}
