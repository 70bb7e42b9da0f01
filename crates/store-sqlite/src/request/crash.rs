//! Notes crashes of processes that computed inputs of requests, and resets them.

use crate::error::Fault;
use crate::row::{Columns, Text, blob};
use crate::session::Session;
use leasehold_core::{Crashes, ExecutionId, JsonText};
use leasehold_store::request::{CRASHED, Crash, CrashedRequest};
use leasehold_store::sql;
use rusqlite::{Row, params};

const NOTE: &str = sql!("request/note_crash");
const RESET: &str = sql!("request/reset_crashes");

pub(crate) fn note(session: &Session<'_>, crash: &Crash) -> Result<Vec<CrashedRequest>, Fault> {
    let mut found = Vec::new();
    for execution in &crash.executions {
        let row = params![
            blob(*execution),
            Text(&crash.process),
            crash.is_alone(),
            Text(CRASHED)
        ];
        found.extend(session.optional(NOTE, row, crashed_request)?);
    }
    Ok(found)
}

/// Resets the crashes of an execution's request, because its input was computed.
pub(crate) fn reset(session: &Session<'_>, execution: ExecutionId) -> Result<(), Fault> {
    session.run(RESET, [blob(execution)]).map(drop)
}

fn crashed_request(row: &Row<'_>) -> Result<CrashedRequest, Fault> {
    let params = row.get("params").ok().map(JsonText::trusted);
    Ok(CrashedRequest {
        id: row.id("id")?,
        workspace: row.id("workspace_id")?,
        definition: row.id("definition_id")?,
        version: row.id("version_id")?,
        execution: row.id("execution_id")?,
        status: row.parsed("status")?,
        priority: row.get("priority")?,
        params: params.filter(JsonText::is_readable).unwrap_or_default(),
        trace_context: row.get("trace_context")?,
        crashes: crashes(row)?,
    })
}

/// Reads the crashes of a request; NULL means none.
pub(crate) fn crashes(row: &Row<'_>) -> Result<Crashes, Fault> {
    let count = |column| row.get::<_, Option<u32>>(column);
    Ok(Crashes {
        total: count("crashes")?.unwrap_or_default(),
        alone: count("crashes_alone")?.unwrap_or_default(),
    })
}
