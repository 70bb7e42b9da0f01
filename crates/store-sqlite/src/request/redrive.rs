//! Redrive: enqueues a copy of a failed request, which stays unchanged. Each failed request has at most one open redrive.

use crate::definition;
use crate::error::Fault;
use crate::request::event::RequestRef;
use crate::row::{Columns, blob};
use crate::session::Session;
use crate::workspace;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{DefinitionId, FailureReason, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::fresh_id;
use leasehold_store::notification::Notification;
use leasehold_store::request::{Redrive, RedriveMany, Redriven};
use leasehold_store::sql;
use rusqlite::params;

const FIND: &str = sql!("request/to_redrive");
const REDRIVE: &str = sql!("request/redrive");
const NEVER_REDRIVEN: &str = sql!("request/never_redriven");

pub(crate) fn redrive(session: &Session<'_>, redrive: &Redrive) -> Result<Redriven, Fault> {
    let ids = [blob(redrive.workspace), blob(redrive.failed)];
    let found = session.optional(FIND, ids, |row| {
        let status: RequestStatus = row.parsed("status")?;
        let definition: DefinitionId = row.id("definition_id")?;
        Ok((status, definition, row.id_or_none("live")?))
    })?;
    Ok(match found {
        None => Redriven::NotFound,
        Some((status, ..)) if status != RequestStatus::Failed => Redriven::NotFailed,
        Some((_, _, Some(live))) => Redriven::AlreadyLive(live),
        Some((_, definition, None))
            if !definition::is_open(session, redrive.workspace, definition)? =>
        {
            Redriven::DefinitionNotFound
        }
        Some((_, _, None)) => {
            let (failed, id) = (redrive.failed, redrive.id);
            insert(session, redrive.workspace, failed, id, &redrive.by)?;
            Redriven::Enqueued(id)
        }
    })
}

pub(crate) fn redrive_many(
    session: &Session<'_>,
    many: &RedriveMany,
) -> Result<Vec<(RequestId, RequestId)>, Fault> {
    if !workspace::is_open(session, many.workspace)? {
        return Ok(Vec::new());
    }
    let row = params![
        blob(many.workspace),
        many.reason.map(FailureReason::as_str),
        many.limit.min(SWEEP_MAX_BATCH),
        many.definition.map(blob)
    ];
    let failed: Vec<(RequestId, u64)> = session.all(NEVER_REDRIVEN, row, |row| {
        Ok((row.id("id")?, row.count("bytes")?))
    })?;
    let mut before = 0_u64;
    let fitting = failed.into_iter().take_while(|(_, bytes)| {
        let fits = before < many.max_bytes;
        before = before.saturating_add(*bytes);
        fits
    });
    let fitting: Vec<RequestId> = fitting.map(|(failed, _)| failed).collect();
    let redriven = session.isolated_if_one_fails(&fitting, |failed| {
        let id = fresh_id();
        insert(session, many.workspace, *failed, id, &many.by)?;
        Ok((*failed, id))
    })?;
    Ok(redriven.into_iter().flatten().collect())
}

fn insert(
    session: &Session<'_>,
    workspace: WorkspaceId,
    failed: RequestId,
    id: RequestId,
    by: &str,
) -> Result<(), Fault> {
    session.run(REDRIVE, params![blob(failed), blob(id), session.now])?;
    session.notify(Notification::Work);
    let subject = RequestRef {
        request: id,
        workspace,
    };
    subject.log_transition(session, None, RequestStatus::Pending, by, Some("redrive"))
}
