//! Cancels requests: at once if nothing was started, otherwise by recording a cancel request that the dispatcher or the canceller carries out.

use crate::error::Fault;
use crate::request::claim::fail_pending;
use crate::request::event::RequestRef;
use crate::row::{Columns, blob};
use crate::session::Session;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionId, FailureReason, RequestId, RequestStatus};
use leasehold_store::ErrorKind;
use leasehold_store::notification::Notification;
use leasehold_store::request::{Cancel, CancelRequest, Cancelled};
use leasehold_store::sql;
use rusqlite::{Row, params};
use serde_json::Value;

/// How many cancel requests that cannot be read one call passes.
const MAX_BROKEN: usize = 1_000;

const FIND: &str = sql!("request/to_cancel");
const REQUEST_CANCEL: &str = sql!("request/cancel_request");
const LIST: &str = sql!("request/cancel_list");
const ACK: &str = sql!("request/cancel_ack");
const REPEAT: &str = sql!("request/cancel_repeat");

pub(crate) fn cancel(session: &Session<'_>, cancel: &Cancel) -> Result<Cancelled, Fault> {
    let (workspace, request) = (cancel.workspace, cancel.request);
    let found = session.optional(FIND, [blob(workspace), blob(request)], |row| {
        let status: RequestStatus = row.parsed("status")?;
        let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
        Ok((status, execution))
    })?;
    let request_cancel = || {
        let row = params![blob(request), session.now, cancel.force];
        session.run(REQUEST_CANCEL, row)
    };
    match found {
        None => Ok(Cancelled::NotFound),
        Some((RequestStatus::Completed | RequestStatus::Failed, _)) => {
            Ok(Cancelled::AlreadyFinished)
        }
        Some((RequestStatus::Pending, None)) => {
            let subject = RequestRef { request, workspace };
            fail_pending(
                session,
                subject,
                FailureReason::Cancelled,
                &cancel.by,
                false,
            )?;
            Ok(Cancelled::Cancelled)
        }
        Some((RequestStatus::Pending, Some(execution))) => {
            request_cancel()?;
            session.notify(Notification::Work);
            Ok(Cancelled::Requested(execution))
        }
        Some((RequestStatus::Claimed, Some(execution))) => {
            request_cancel()?;
            Ok(Cancelled::Requested(execution))
        }
        Some((RequestStatus::Dispatched, Some(execution))) => {
            request_cancel()?;
            session.notify(Notification::Cancel);
            Ok(Cancelled::Running(execution))
        }
        Some((RequestStatus::Claimed | RequestStatus::Dispatched, None)) => {
            Err(ErrorKind::Broken("an admitted request has no execution".to_owned()).into())
        }
    }
}

pub(crate) fn list(session: &Session<'_>, limit: u32) -> Result<Vec<CancelRequest>, Fault> {
    let limit = usize::try_from(limit.min(SWEEP_MAX_BATCH)).unwrap_or(usize::MAX);
    let (mut cancels, mut broken) = (Vec::new(), 0);
    session.with_statement(LIST, |statement| {
        let mut rows = statement.query([])?;
        while cancels.len() < limit
            && broken < MAX_BROKEN
            && let Some(row) = rows.next()?
        {
            match cancel_request(row) {
                Ok(cancel) => cancels.push(cancel),
                Err(fault) => {
                    broken += 1;
                    let request: RequestId = row.id("id")?;
                    session.skip_broken(format_args!("request {request}"), fault)?;
                }
            }
        }
        Ok(cancels)
    })
}

fn cancel_request(row: &Row<'_>) -> Result<CancelRequest, Fault> {
    let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
    let missing = || ErrorKind::Broken("an admitted request has no execution".to_owned());
    Ok(CancelRequest {
        request: row.id("id")?,
        workspace: row.id("workspace_id")?,
        execution: execution.ok_or_else(missing)?,
        force: row.get("cancel_force")?,
    })
}

pub(crate) fn acknowledge(session: &Session<'_>, cancels: &[CancelRequest]) -> Result<(), Fault> {
    for cancel in cancels {
        let row = params![
            blob(cancel.request),
            blob(cancel.execution),
            cancel.force,
            session.now
        ];
        session.run(ACK, row)?;
    }
    Ok(())
}

pub(crate) fn repeat(session: &Session<'_>, requests: &[RequestId]) -> Result<u64, Fault> {
    let ids: Vec<String> = requests
        .iter()
        .map(|id| id.0.simple().to_string())
        .collect();
    let changed = session.run(REPEAT, [Value::from(ids).to_string()])?;
    Ok(changed as u64)
}
