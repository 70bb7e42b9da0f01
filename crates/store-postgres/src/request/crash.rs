//! Notes crashes of processes that computed inputs of requests.

use crate::error::busy;
use crate::job::row::Json;
use crate::lock_wait::LockWait;
use crate::row;
use crate::store::{Params, PostgresStore, sql};
use leasehold_core::limits::PARAMS_MAX_BYTES;
use leasehold_core::{Crashes, JsonText};
use leasehold_store::Result;
use leasehold_store::request::{CRASHED, Crash, CrashedRequest};
use tokio_postgres::Row;
use uuid::Uuid;

const CONTEXT: &str = "request_note_crash";

/// Notes a crash. A request whose row another transaction keeps locked is left out: its next crash counts.
pub(crate) async fn note(store: &PostgresStore, crash: &Crash) -> Result<Vec<CrashedRequest>> {
    let executions: Vec<Uuid> = crash.executions.iter().map(|id| id.0).collect();
    let is_alone = crash.is_alone();
    let params: &Params<'_> = &[&crash.process, &executions, &is_alone, &CRASHED];
    let mut wait = LockWait::begin();
    loop {
        let rows = store
            .many(CONTEXT, sql!("request/note_crash"), params)
            .await?;
        let locked = rows.first().map_or(0, |row| row.get::<_, i64>("locked"));
        if locked > 0 && wait.pause_after(busy(CONTEXT)).await.is_ok() {
            continue;
        }
        if locked > 0 {
            tracing::warn!(
                requests = locked,
                "requests are locked in the store; a crash is not counted for them"
            );
        }
        let noted = rows.iter().filter(|row| {
            let id: Option<Uuid> = row.get("id");
            id.is_some()
        });
        return noted.map(crashed_request).collect();
    }
}

fn crashed_request(row: &Row) -> Result<CrashedRequest> {
    let params = row.try_get::<_, Json>("params").ok();
    let params = params.map(|json| json.0).filter(JsonText::is_readable);
    Ok(CrashedRequest {
        id: row::id(row, "id"),
        workspace: row::id(row, "workspace_id"),
        definition: row::id(row, "definition_id"),
        version: row::id(row, "version_id"),
        execution: row::id(row, "execution_id"),
        status: row::named(row, "status")?,
        priority: row.get("priority"),
        // The same form as a claim returns.
        params: params.unwrap_or_default().compacted_above(PARAMS_MAX_BYTES),
        trace_context: row.get("trace_context"),
        crashes: crashes(row),
    })
}

/// Reads the crashes of a request; NULL means none.
pub(super) fn crashes(row: &Row) -> Crashes {
    let count = |column| {
        let count: Option<i16> = row.get(column);
        count.map_or(0, |count| u32::from(count.unsigned_abs()))
    };
    Crashes {
        total: count("crashes"),
        alone: count("crashes_alone"),
    }
}
