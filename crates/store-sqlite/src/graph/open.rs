//! Loads a graph for an operation, and the inputs of the nodes that start next. Writes nothing.

use crate::definition::cached_version;
use crate::error::Fault;
use crate::row::{Columns, NodeIndex, blob};
use crate::session::Session;
use leasehold_core::graph::{
    EndPreview, GraphChange, GraphOrigin, GraphState, Machine, NodeEnd, NodeSource,
};
use leasehold_core::{ExecutionEnd, ExecutionId, JsonText, VersionId};
use leasehold_store::ErrorKind;
use leasehold_store::definition::{CachedVersion, VersionCache};
use leasehold_store::sql;
use rusqlite::{Row, params};
use std::collections::HashMap;
use std::sync::Arc;

const OPEN: &str = sql!("graph/open");
const PARAMS: &str = sql!("graph/params");
const OUTPUT: &str = sql!("node/output");

/// Reads the state and the end of a graph.
pub(super) fn state(row: &Row<'_>) -> Result<GraphState, Fault> {
    let ended: Option<String> = row.get("ended")?;
    let letters: String = row.get("state")?;
    let end = ended.as_deref().map(str::parse::<ExecutionEnd>).transpose();
    let state = end.ok().and_then(|end| GraphState::read(&letters, end));
    let invalid =
        || ErrorKind::Broken("execution_graph.state in the database is invalid".to_owned());
    Ok(state.ok_or_else(invalid)?)
}

/// Returns the state of an execution's graph and its state machine; none if the graph was not started.
pub(super) fn find(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<(GraphState, Arc<Machine>)>, Fault> {
    let found = open(session, versions, execution)?;
    Ok(found.map(|(state, machine, _)| (state, machine)))
}

/// Returns the graph of an execution, ready for changes; none if it was not started or was deleted.
pub(super) fn graph(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<GraphChange>, Fault> {
    let found = open(session, versions, execution)?;
    Ok(found.map(|(state, machine, origin)| GraphChange::of(execution, origin, machine, state)))
}

/// Returns the state machine of a version; none if the version has no graph.
pub(super) fn machine(cached: &CachedVersion) -> Result<Option<Arc<Machine>>, Fault> {
    let id = cached.version().id;
    let invalid =
        |problem| ErrorKind::Broken(format!("the body of version {id} is invalid: {problem}"));
    Ok(cached.machine().map_err(invalid)?)
}

fn open(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
) -> Result<Option<(GraphState, Arc<Machine>, GraphOrigin)>, Fault> {
    let found = session.optional(OPEN, [blob(execution)], |row| {
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
    let missing = || ErrorKind::Broken(format!("version {version} has no graph"));
    let found = cached_version(session, versions, origin.workspace, version)?;
    let machine = found.map(|cached| machine(&cached)).transpose()?;
    let machine = machine.flatten().ok_or_else(missing)?;
    Ok(Some((state, machine, origin)))
}

/// Applies the end of a node; false if it has no effect any more.
pub(super) fn node_ended(
    session: &Session<'_>,
    graph: &mut GraphChange,
    end: NodeEnd,
) -> Result<bool, Fault> {
    let foresight = graph.preview_end(end.node, &end.outcome);
    let source = source(session, graph.execution(), &foresight)?;
    Ok(graph.node_ended(end, source))
}

/// Reads the inputs of the nodes that start next; reads nothing if none do.
fn source(
    session: &Session<'_>,
    execution: ExecutionId,
    foresight: &EndPreview,
) -> Result<NodeSource, Fault> {
    if !foresight.begins {
        return Ok(NodeSource::default());
    }
    let params = session.one(PARAMS, [blob(execution)], |row| {
        Ok(JsonText::trusted(row.get("params")?))
    })?;
    let mut outputs = HashMap::with_capacity(foresight.needs.len());
    session.with_statement(OUTPUT, |statement| {
        for node in &foresight.needs {
            let mut rows = statement.query(params![blob(execution), NodeIndex(*node)])?;
            if let Some(row) = rows.next()? {
                outputs.insert(*node, JsonText::trusted(row.get(0)?));
            }
        }
        Ok(())
    })?;
    Ok(NodeSource { params, outputs })
}
