//! Redrive: enqueues a copy of a failed request, which stays unchanged. Each failed request has at most one open redrive.

use crate::SqliteStore;
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
use rusqlite::{Row, params};
use std::sync::Arc;
use uuid::Uuid;

const FIND: &str = sql!("request/to_redrive");
const REDRIVE: &str = sql!("request/redrive");
const NEVER_REDRIVEN: &str = sql!("request/never_redriven");
const IS_REDRIVABLE: &str = sql!("request/is_redrivable");

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

/// Chooses requests on a reader and redrives them on the writer. The filters are in no index, so a search may visit every failed request of the workspace.
pub(crate) async fn redrive_many(
    store: &SqliteStore,
    many: &RedriveMany,
) -> leasehold_store::Result<Vec<(RequestId, RequestId)>> {
    const CONTEXT: &str = "request_redrive_many";
    let many = Arc::new(many.clone());
    let mut after = RequestId(Uuid::nil());
    loop {
        let search = Arc::clone(&many);
        let chosen = store.read(CONTEXT, move |s| choose(s, &search, after));
        let chosen = chosen.await?;
        let Some(last) = chosen.last() else {
            return Ok(Vec::new());
        };
        after = *last;
        let change = Arc::clone(&many);
        let redriven = store.write(CONTEXT, move |s| redrive_chosen(s, &change, &chosen));
        let redriven = redriven.await?;
        // If all of them are broken, or other calls have redriven them meanwhile, there may be more.
        if !redriven.is_empty() {
            return Ok(redriven);
        }
    }
}

/// Returns the requests to redrive after this one, oldest first: as many as the limits of the call allow.
fn choose(
    session: &Session<'_>,
    many: &RedriveMany,
    after: RequestId,
) -> Result<Vec<RequestId>, Fault> {
    if !workspace::is_open(session, many.workspace)? {
        return Ok(Vec::new());
    }
    let row = params![
        blob(many.workspace),
        many.reason.map(FailureReason::as_str),
        many.limit.min(SWEEP_MAX_BATCH),
        many.definition.map(blob),
        blob(after)
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
    Ok(fitting.map(|(failed, _)| failed).collect())
}

/// Redrives those of the chosen requests that can still be redriven and are not broken.
fn redrive_chosen(
    session: &Session<'_>,
    many: &RedriveMany,
    chosen: &[RequestId],
) -> Result<Vec<(RequestId, RequestId)>, Fault> {
    let is_open = workspace::is_open(session, many.workspace)?;
    let chosen = if is_open { chosen } else { &[] };
    let outcomes = session.isolated_if_one_fails(chosen, |failed| {
        let row = [blob(many.workspace), blob(*failed)];
        let is_redrivable = |row: &Row<'_>| Ok(row.get("is_redrivable")?);
        if !session.one(IS_REDRIVABLE, row, is_redrivable)? {
            return Ok(None);
        }
        let id = fresh_id();
        insert(session, many.workspace, *failed, id, &many.by)?;
        Ok(Some((*failed, id)))
    })?;
    Ok(outcomes.into_iter().flatten().flatten().collect())
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
