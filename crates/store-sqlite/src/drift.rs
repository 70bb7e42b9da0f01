//! Finds and repairs drift: compares the records that triggers maintain with the rows themselves. The port lists the kinds of drift.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, after_id, blob};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::{ExecutionEnd, ExecutionStatus, WorkspaceId};
use leasehold_store::drift::{
    DRIFTS_MAX, Drift, DriftKind, DriftRepair, DriftReport, DriftStore, Repaired,
};
use leasehold_store::notification::Notification;
use leasehold_store::sql;
use leasehold_store::{Page, Result};
use rusqlite::{Row, params};

const PAGE: &str = sql!("drift/page");
const COMPARE: &str = sql!("drift/compare");
const ORPHANS: &str = sql!("drift/list_orphans");
const REQUESTS_WITHOUT_EXECUTION: &str = sql!("drift/list_requests_without_execution");
const SYNC_TURN: &str = sql!("drift/sync_turn");
const RENUMBER_HIGH: &str = sql!("drift/renumber_slots_high");
const RENUMBER: &str = sql!("drift/renumber_slots");
const UPDATE_HAS_ROOM: &str = sql!("drift/update_has_room");
const RECOUNT: &str = sql!("drift/recount");
const END_EXECUTION: &str = sql!("drift/end_execution");
const REQUEST_WITHOUT_EXECUTION: &str = sql!("drift/get_request_without_execution");
const RESUME_EXECUTION: &str = sql!("drift/resume_execution");
const CREATE: &str = sql!("execution/create");
const ADMISSION_LAST: &str = sql!("admission/last");
const ADMISSION_ADVANCE: &str = sql!("admission/advance");

#[async_trait]
impl DriftStore for SqliteStore {
    async fn drift_check(&self, page: Page<WorkspaceId>) -> Result<DriftReport> {
        self.read("drift_check", move |s| check_page(s, page)).await
    }

    async fn drift_repair(&self, repair: &DriftRepair<'_>) -> Result<Repaired> {
        let (drift, ended) = (repair.drift.clone(), repair.ended);
        self.write("drift_repair", move |s| repair_drift(s, &drift, ended))
            .await
    }
}

fn check_page(session: &Session<'_>, page: Page<WorkspaceId>) -> Result<DriftReport, Fault> {
    session.in_snapshot(|session| {
        let row = params![after_id(page.after), page.rows()];
        let ids: Vec<WorkspaceId> = session.all(PAGE, row, |row| row.id("id"))?;
        let is_full = i64::try_from(ids.len()).is_ok_and(|rows| rows >= page.rows());
        let mut report = DriftReport {
            drifts: Vec::new(),
            last: ids.last().copied().filter(|_| is_full),
        };
        for id in ids {
            report.drifts.extend(find_drifts(session, id)?);
        }
        Ok(report)
    })
}

/// Finds the drifts of one workspace.
fn find_drifts(session: &Session<'_>, workspace: WorkspaceId) -> Result<Vec<Drift>, Fault> {
    let most = i64::try_from(DRIFTS_MAX).unwrap_or(i64::MAX);
    let found = session.one(COMPARE, [blob(workspace)], compare)?;
    let drift = |kind, text| Drift {
        kind,
        workspace,
        request: None,
        execution: None,
        text,
    };
    let mut drifts: Vec<Drift> = found
        .into_iter()
        .map(|(kind, text)| drift(kind, text))
        .collect();
    drifts.extend(session.all(ORPHANS, params![blob(workspace), most], |row| {
        let status: Option<String> = row.get("status")?;
        let text = match status {
            None => "RUNNING, but its request is missing".to_owned(),
            Some(status) if row.get("has_another")? => {
                format!("RUNNING, but its request is {status} with another execution")
            }
            Some(status) => format!("RUNNING, but its request is {status}"),
        };
        Ok(Drift {
            request: row.id_or_none("request_id")?,
            execution: row.id_or_none("id")?,
            ..drift(DriftKind::SlotWithoutExecution, text)
        })
    })?);
    drifts.extend(session.all(
        REQUESTS_WITHOUT_EXECUTION,
        params![blob(workspace), most],
        |row| {
            let (status, execution): (String, Option<String>) =
                (row.get("status")?, row.get("execution_status")?);
            let execution = execution.as_deref().unwrap_or("missing");
            let text = format!("{status}, but its execution is {execution}");
            Ok(Drift {
                request: row.id_or_none("id")?,
                execution: row.id_or_none("execution_id")?,
                ..drift(DriftKind::RequestWithoutExecution, text)
            })
        },
    )?);
    drifts.truncate(DRIFTS_MAX);
    Ok(drifts)
}

/// Compares the maintained record of a workspace with its rows.
fn compare(row: &Row<'_>) -> Result<Vec<(DriftKind, String)>, Fault> {
    let mut drifts = Vec::new();
    let (true_limit, true_paused, true_deleted): (i64, bool, bool) = (
        row.get("true_limit")?,
        row.get("true_paused")?,
        row.get("true_deleted")?,
    );
    if !row.get::<_, bool>("has_turn")? {
        let text = "the workspace has no workspace_turn row, so claims skip it".to_owned();
        return Ok(vec![(DriftKind::Limit, text)]);
    }
    let limit: i64 = row.get("concurrency_limit")?;
    let (paused, deleted): (bool, bool) = (row.get("paused")?, row.get("deleted")?);
    if (limit, paused, deleted) != (true_limit, true_paused, true_deleted) {
        let describe = |limit: i64, paused: bool, deleted: bool| {
            let paused = if paused { ", paused" } else { "" };
            let deleted = if deleted { ", deleted" } else { "" };
            format!("{limit}{paused}{deleted}")
        };
        let text = format!(
            "claims apply the limit {}, but the workspace has {}",
            describe(limit, paused, deleted),
            describe(true_limit, true_paused, true_deleted)
        );
        drifts.push((DriftKind::Limit, text));
    }
    drifts.extend(slots(row, limit)?);
    drifts.extend(counts(row)?);
    Ok(drifts)
}

fn slots(row: &Row<'_>, limit: i64) -> Result<Option<(DriftKind, String)>, Fault> {
    let (running, numbered): (i64, i64) = (row.get("running")?, row.get("numbered")?);
    let has_room: bool = row.get("has_room")?;
    let text = if numbered != running {
        format!("slots are numbered up to {numbered}, but {running} executions are RUNNING")
    } else if has_room != (running < limit) {
        let recorded = if has_room {
            "free slots"
        } else {
            "no free slot"
        };
        format!("recorded as having {recorded}, but {running} of {limit} slots are in use")
    } else {
        return Ok(None);
    };
    let kind = if numbered > running || (numbered == running && !has_room) {
        DriftKind::SlotWithoutExecution
    } else {
        DriftKind::ExecutionWithoutSlot
    };
    Ok(Some((kind, text)))
}

fn counts(row: &Row<'_>) -> Result<Option<(DriftKind, String)>, Fault> {
    let (claimed, dispatched): (i64, i64) = (row.get("claimed")?, row.get("dispatched")?);
    let (true_claimed, true_dispatched): (i64, i64) =
        (row.get("true_claimed")?, row.get("true_dispatched")?);
    let (waiting, line): (i64, bool) = (row.get("waiting")?, row.get("line")?);
    let text = if (claimed, dispatched) != (true_claimed, true_dispatched) {
        format!(
            "recorded {claimed} CLAIMED and {dispatched} DISPATCHED requests, found {true_claimed} and {true_dispatched}"
        )
    } else if (waiting > 0) != line {
        let found = if line { "some" } else { "none" };
        format!("recorded {waiting} requests in line, found {found}")
    } else {
        return Ok(None);
    };
    Ok(Some((DriftKind::Counts, text)))
}

fn repair_drift(
    session: &Session<'_>,
    drift: &Drift,
    ended: Option<ExecutionEnd>,
) -> Result<Repaired, Fault> {
    let repaired = match drift.kind {
        DriftKind::RequestWithoutExecution => restore_execution(session, drift)?,
        DriftKind::SlotWithoutExecution if drift.execution.is_some() => {
            end_orphan(session, drift, ended)?
        }
        DriftKind::SlotWithoutExecution
        | DriftKind::ExecutionWithoutSlot
        | DriftKind::Counts
        | DriftKind::Limit => repair_turn_row(session, drift)?,
        DriftKind::EndedInEngine | DriftKind::UnknownToEngine => Repaired::Skipped,
    };
    if repaired == Repaired::Repaired {
        session.notify(Notification::Work);
    }
    Ok(repaired)
}

/// Rewrites the maintained record of the workspace.
fn repair_turn_row(session: &Session<'_>, drift: &Drift) -> Result<Repaired, Fault> {
    let workspace = blob(drift.workspace);
    let differs = |session: &Session<'_>| -> Result<bool, Fault> {
        let found = session.one(COMPARE, [workspace], compare)?;
        Ok(found.iter().any(|(kind, _)| *kind == drift.kind))
    };
    if !differs(session)? {
        return Ok(Repaired::AlreadyConsistent);
    }
    match drift.kind {
        DriftKind::Counts => {
            session.run(RECOUNT, [workspace])?;
        }
        DriftKind::Limit => {
            session.run(SYNC_TURN, [workspace])?;
            session.run(UPDATE_HAS_ROOM, [workspace])?;
        }
        _ => {
            session.run(RENUMBER_HIGH, [workspace])?;
            session.run(RENUMBER, [workspace])?;
            session.run(UPDATE_HAS_ROOM, [workspace])?;
        }
    }
    Ok(if differs(session)? {
        Repaired::Skipped
    } else {
        Repaired::Repaired
    })
}

/// Ends an execution that its request no longer refers to, if the caller knows how it ended.
fn end_orphan(
    session: &Session<'_>,
    drift: &Drift,
    ended: Option<ExecutionEnd>,
) -> Result<Repaired, Fault> {
    let (Some(end), Some(execution)) = (ended, drift.execution) else {
        return Ok(Repaired::Skipped);
    };
    let status = ExecutionStatus::Running.after(end).as_str();
    let row = params![blob(execution), status, session.now];
    Ok(match session.run(END_EXECUTION, row)? {
        0 => Repaired::AlreadyConsistent,
        _ => Repaired::Repaired,
    })
}

/// Sets the execution of an open request to RUNNING again. The reconciler then takes its outcome from the engine.
fn restore_execution(session: &Session<'_>, drift: &Drift) -> Result<Repaired, Fault> {
    let Some(request) = drift.request.map(blob) else {
        return Ok(Repaired::Skipped);
    };
    let found = session.optional(REQUEST_WITHOUT_EXECUTION, [request], |row| {
        let ids: [[u8; 16]; 4] = [
            row.get("execution_id")?,
            row.get("workspace_id")?,
            row.get("definition_id")?,
            row.get("version_id")?,
        ];
        Ok((ids, row.get("execution_exists")?))
    })?;
    let Some(([execution, workspace, definition, version], exists)) = found else {
        return Ok(Repaired::AlreadyConsistent);
    };
    let written = if exists {
        session.run(RESUME_EXECUTION, [execution])
    } else {
        let last: i64 = session.one(ADMISSION_LAST, [], |row| Ok(row.get(0)?))?;
        let row = params![
            execution,
            workspace,
            request,
            definition,
            version,
            last + 1,
            session.now
        ];
        session
            .run(CREATE, row)
            .and_then(|_| session.run(ADMISSION_ADVANCE, [last + 1]))
    };
    match written {
        Ok(_) => Ok(Repaired::Repaired),
        // No slot is free, or the request has another execution.
        Err(fault) if matches!(fault.kind(), leasehold_store::ErrorKind::Constraint(_)) => {
            Ok(Repaired::Skipped)
        }
        Err(fault) => Err(fault),
    }
}
