//! Finding and mending drift in SQLite. What triggers keep is compared with what there is, never with history; what may differ is told in the port.

use crate::SqliteStore;
use crate::error::Fault;
use crate::row::{Columns, after_id, blob};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::{ExecutionEnd, ExecutionStatus, WorkspaceId};
use leasehold_store::capacity::{
    CapacityAudit, CapacityRepair, CapacityStore, DRIFTS_MAX, Drift, DriftKind, Repaired,
};
use leasehold_store::sql;
use leasehold_store::wake::Wake;
use leasehold_store::{Page, Result};
use rusqlite::{Row, params};

const PAGE: &str = sql!("capacity/page");
const KEPT: &str = sql!("capacity/kept");
const FORGOTTEN: &str = sql!("capacity/forgotten");
const STRAYS: &str = sql!("capacity/strays");
const FOLLOW: &str = sql!("capacity/follow");
const NUMBER_HIGH: &str = sql!("capacity/number_high");
const NUMBER: &str = sql!("capacity/number");
const ROOM: &str = sql!("capacity/room");
const RECOUNT: &str = sql!("capacity/recount");
const FORGET: &str = sql!("capacity/forget");
const STRAY: &str = sql!("capacity/stray");
const RUN_AGAIN: &str = sql!("capacity/run_again");
const CREATE: &str = sql!("execution/create");
const ADMISSION_LAST: &str = sql!("admission/last");
const ADMISSION_ADVANCE: &str = sql!("admission/advance");

#[async_trait]
impl CapacityStore for SqliteStore {
    async fn capacity_audit(&self, page: Page<WorkspaceId>) -> Result<CapacityAudit> {
        self.read("capacity_audit", move |s| audit(s, page)).await
    }

    async fn capacity_repair(&self, repair: &CapacityRepair<'_>) -> Result<Repaired> {
        let (drift, ended) = (repair.drift.clone(), repair.ended);
        self.write("capacity_repair", move |s| mend(s, &drift, ended))
            .await
    }
}

fn audit(session: &Session<'_>, page: Page<WorkspaceId>) -> Result<CapacityAudit, Fault> {
    session.at_once(|session| {
        let row = params![after_id(page.after), page.rows()];
        let ids: Vec<WorkspaceId> = session.all(PAGE, row, |row| row.id("id"))?;
        let is_full = i64::try_from(ids.len()).is_ok_and(|rows| rows >= page.rows());
        let mut audit = CapacityAudit {
            drifts: Vec::new(),
            last: ids.last().copied().filter(|_| is_full),
        };
        for id in ids {
            audit.drifts.extend(look(session, id)?);
        }
        Ok(audit)
    })
}

/// What differs in one workspace.
fn look(session: &Session<'_>, workspace: WorkspaceId) -> Result<Vec<Drift>, Fault> {
    let most = i64::try_from(DRIFTS_MAX).unwrap_or(i64::MAX);
    let found = session.one(KEPT, [blob(workspace)], kept)?;
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
    drifts.extend(
        session.all(FORGOTTEN, params![blob(workspace), most], |row| {
            let status: Option<String> = row.get("status")?;
            let text = match status {
                None => "RUNNING, but its request is gone".to_owned(),
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
        })?,
    );
    drifts.extend(session.all(STRAYS, params![blob(workspace), most], |row| {
        let (status, execution): (String, Option<String>) =
            (row.get("status")?, row.get("execution_status")?);
        let execution = execution.as_deref().unwrap_or("gone");
        let text = format!("{status}, but its execution is {execution}");
        Ok(Drift {
            request: row.id_or_none("id")?,
            execution: row.id_or_none("execution_id")?,
            ..drift(DriftKind::RequestWithoutExecution, text)
        })
    })?);
    drifts.truncate(DRIFTS_MAX);
    Ok(drifts)
}

/// What the kept record of a workspace says that is not so.
fn kept(row: &Row<'_>) -> Result<Vec<(DriftKind, String)>, Fault> {
    let mut wrong = Vec::new();
    let (true_limit, true_paused, true_deleted): (i64, bool, bool) = (
        row.get("true_limit")?,
        row.get("true_paused")?,
        row.get("true_deleted")?,
    );
    if !row.get::<_, bool>("there")? {
        let text = "claims do not know of the workspace".to_owned();
        return Ok(vec![(DriftKind::Limit, text)]);
    }
    let limit: i64 = row.get("concurrency_limit")?;
    let (paused, deleted): (bool, bool) = (row.get("paused")?, row.get("deleted")?);
    if (limit, paused, deleted) != (true_limit, true_paused, true_deleted) {
        let shown = |limit: i64, paused: bool, deleted: bool| {
            let paused = if paused { ", paused" } else { "" };
            let deleted = if deleted { ", deleted" } else { "" };
            format!("{limit}{paused}{deleted}")
        };
        let text = format!(
            "claims obey the limit {}, the workspace has {}",
            shown(limit, paused, deleted),
            shown(true_limit, true_paused, true_deleted)
        );
        wrong.push((DriftKind::Limit, text));
    }
    wrong.extend(slots(row, limit)?);
    wrong.extend(counts(row)?);
    Ok(wrong)
}

fn slots(row: &Row<'_>, limit: i64) -> Result<Option<(DriftKind, String)>, Fault> {
    let (running, numbered): (i64, i64) = (row.get("running")?, row.get("numbered")?);
    let has_room: bool = row.get("has_room")?;
    let text = if numbered != running {
        format!("the slots are numbered up to {numbered}, and {running} executions are RUNNING")
    } else if has_room != (running < limit) {
        let says = if has_room { "there is room" } else { "full" };
        format!("the kept record says {says}, and {running} of {limit} slots are held")
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
            "the kept record counts {claimed} CLAIMED and {dispatched} DISPATCHED, there are {true_claimed} and {true_dispatched}"
        )
    } else if (waiting > 0) != line {
        let there = if line {
            "there are some"
        } else {
            "there are none"
        };
        format!("the kept record counts {waiting} requests in line, and {there}")
    } else {
        return Ok(None);
    };
    Ok(Some((DriftKind::Counts, text)))
}

fn mend(
    session: &Session<'_>,
    drift: &Drift,
    ended: Option<ExecutionEnd>,
) -> Result<Repaired, Fault> {
    let mended = match drift.kind {
        DriftKind::RequestWithoutExecution => run_again(session, drift)?,
        DriftKind::SlotWithoutExecution if drift.execution.is_some() => {
            forget(session, drift, ended)?
        }
        DriftKind::SlotWithoutExecution
        | DriftKind::ExecutionWithoutSlot
        | DriftKind::Counts
        | DriftKind::Limit => keep_anew(session, drift)?,
        DriftKind::EndedInEngine | DriftKind::UnknownToEngine => Repaired::Left,
    };
    if mended == Repaired::Repaired {
        session.ring(Wake::Work);
    }
    Ok(mended)
}

/// Writes what is kept of the workspace anew.
fn keep_anew(session: &Session<'_>, drift: &Drift) -> Result<Repaired, Fault> {
    let workspace = blob(drift.workspace);
    let differs = |session: &Session<'_>| -> Result<bool, Fault> {
        let found = session.one(KEPT, [workspace], kept)?;
        Ok(found.iter().any(|(kind, _)| *kind == drift.kind))
    };
    if !differs(session)? {
        return Ok(Repaired::Over);
    }
    match drift.kind {
        DriftKind::Counts => {
            session.run(RECOUNT, [workspace])?;
        }
        DriftKind::Limit => {
            session.run(FOLLOW, [workspace])?;
            session.run(ROOM, [workspace])?;
        }
        _ => {
            session.run(NUMBER_HIGH, [workspace])?;
            session.run(NUMBER, [workspace])?;
            session.run(ROOM, [workspace])?;
        }
    }
    Ok(if differs(session)? {
        Repaired::Left
    } else {
        Repaired::Repaired
    })
}

/// Ends an execution that its request has forgotten, if someone knows how it ended.
fn forget(
    session: &Session<'_>,
    drift: &Drift,
    ended: Option<ExecutionEnd>,
) -> Result<Repaired, Fault> {
    let (Some(end), Some(execution)) = (ended, drift.execution) else {
        return Ok(Repaired::Left);
    };
    let status = ExecutionStatus::Running.after(end).as_str();
    let row = params![blob(execution), status, session.now];
    Ok(match session.run(FORGET, row)? {
        0 => Repaired::Over,
        _ => Repaired::Repaired,
    })
}

/// Has the execution of an open request RUNNING again. The engine's word then decides what becomes of it.
fn run_again(session: &Session<'_>, drift: &Drift) -> Result<Repaired, Fault> {
    let Some(request) = drift.request.map(blob) else {
        return Ok(Repaired::Left);
    };
    let found = session.maybe(STRAY, [request], |row| {
        let ids: [[u8; 16]; 4] = [
            row.get("execution_id")?,
            row.get("workspace_id")?,
            row.get("definition_id")?,
            row.get("version_id")?,
        ];
        Ok((ids, row.get("there")?))
    })?;
    let Some(([execution, workspace, definition, version], there)) = found else {
        return Ok(Repaired::Over);
    };
    let written = if there {
        session.run(RUN_AGAIN, [execution])
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
        // No slot is free for what should hold one, or another execution stands in its place.
        Err(fault) if matches!(fault.kind(), leasehold_store::ErrorKind::Constraint(_)) => {
            Ok(Repaired::Left)
        }
        Err(fault) => Err(fault),
    }
}
