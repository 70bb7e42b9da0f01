//! Loads a graph for an operation that works on it, and what the end of a node needs. Writes nothing.

use crate::definition::cached_version;
use crate::error::Fault;
use crate::row::{Columns, Place, blob};
use crate::session::Session;
use leasehold_core::graph::{
    Foresight, GraphChange, GraphOrigin, GraphState, Machine, NodeEnd, NodeSource,
};
use leasehold_core::{ExecutionEnd, ExecutionId, JsonText, VersionId};
use leasehold_store::ErrorKind;
use leasehold_store::definition::{CachedVersion, VersionCache};
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::collections::HashMap;
use std::sync::Arc;

const OF: &str = sql!("graph/of");
const PARAMS: &str = sql!("graph/params");
const OUTPUT: &str = sql!("node/output");

/// The state and the end of a graph, as they are kept.
pub(super) fn state(row: &Row<'_>) -> Result<GraphState, Fault> {
    let ended: Option<String> = row.get("ended")?;
    let letters: String = row.get("state")?;
    let end = ended.as_deref().map(str::parse::<ExecutionEnd>).transpose();
    let state = end.ok().and_then(|end| GraphState::read(&letters, end));
    let broken = || ErrorKind::Broken("the state of a graph makes no sense".to_owned());
    Ok(state.ok_or_else(broken)?)
}

/// Where an execution's graph is, and its machine; none if it was never started.
pub(super) fn find(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<(GraphState, Arc<Machine>)>, Fault> {
    let found = open(session, versions, execution)?;
    Ok(found.map(|(state, machine, _)| (state, machine)))
}

/// The graph of an execution; none if it was never started, or its record is gone.
pub(super) fn graph(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<GraphChange>, Fault> {
    let found = open(session, versions, execution)?;
    Ok(found.map(|(state, machine, origin)| GraphChange::of(execution, origin, machine, state)))
}

/// The machine of a version; none if it has no graph.
pub(super) fn machine(cached: &CachedVersion) -> Result<Option<Arc<Machine>>, Fault> {
    let id = cached.version().id;
    let broken = |problem| ErrorKind::Broken(format!("the body of the version {id}: {problem}"));
    Ok(cached.machine().map_err(broken)?)
}

fn open(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<(GraphState, Arc<Machine>, GraphOrigin)>, Fault> {
    let found = session.maybe(OF, [blob(execution)], |row| {
        let origin = GraphOrigin {
            workspace: row.id("workspace_id")?,
            priority: row.get("priority")?,
            trace_context: row.get("trace_context")?,
        };
        Ok((state(row)?, row.id::<VersionId>("version_id")?, origin))
    })?;
    let Some((state, version, origin)) = found else {
        return Ok(None);
    };
    let gone = || ErrorKind::Broken(format!("the version {version} has no graph"));
    let found = cached_version(session, versions, origin.workspace, version)?;
    let machine = found.map(|cached| machine(&cached)).transpose()?;
    let machine = machine.flatten().ok_or_else(gone)?;
    Ok(Some((state, machine, origin)))
}

/// A node has ended; false if that no longer means anything.
pub(super) fn node_ended(
    session: &Session<'_>,
    graph: &mut GraphChange,
    end: NodeEnd,
) -> Result<bool, Fault> {
    let foresight = graph.foresee(end.node, &end.outcome);
    let source = source(session, graph.execution(), &foresight)?;
    Ok(graph.node_ended(end, source))
}

/// What the nodes that begin are made of; nothing is read if none do.
fn source(
    session: &Session<'_>,
    execution: ExecutionId,
    foresight: &Foresight,
) -> Result<NodeSource, Fault> {
    if !foresight.begins {
        return Ok(NodeSource::default());
    }
    let params = session.one(PARAMS, [blob(execution)], |row| {
        Ok(JsonText::trusted(row.get("params")?))
    })?;
    let mut outputs = HashMap::with_capacity(foresight.needs.len());
    session.often(OUTPUT, |statement| {
        for node in &foresight.needs {
            let mut rows = statement.query(params![blob(execution), Place(*node)])?;
            if let Some(row) = rows.next()? {
                outputs.insert(*node, JsonText::trusted(row.get(0)?));
            }
        }
        Ok(())
    })?;
    Ok(NodeSource { params, outputs })
}
