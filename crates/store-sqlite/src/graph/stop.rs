//! Stops a running graph: cancel or terminate.

use crate::error::Fault;
use crate::graph::{open, write};
use crate::session::Session;
use leasehold_core::ExecutionId;
use leasehold_core::graph::GraphStop;
use leasehold_store::definition::VersionCache;
use leasehold_store::graph::GraphStopped;

pub(super) fn stop(
    session: &Session<'_>,
    versions: &VersionCache,
    execution: ExecutionId,
    why: GraphStop,
    by: &str,
    reason: &str,
) -> Result<GraphStopped, Fault> {
    let Some(mut graph) = open::graph(session, versions, execution)? else {
        return Ok(GraphStopped::NotFound);
    };
    if !graph.stop(why, reason) {
        return Ok(GraphStopped::AlreadyEnded);
    }
    let ended = write::all(session, by, &mut [graph])?.pop();
    Ok(ended.map_or(GraphStopped::AlreadyEnded, GraphStopped::Stopped))
}
