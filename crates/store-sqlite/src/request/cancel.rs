//! Cancellation: at once where nothing was started, else a wish that whoever resolves the start carries out.

use crate::error::Fault;
use crate::request::claim::fail_pending;
use crate::request::event::Subject;
use crate::row::{Columns, blob};
use crate::session::Session;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionId, FailureReason, RequestStatus};
use leasehold_store::ErrorKind;
use leasehold_store::request::{Cancel, CancelWish, Cancelled};
use leasehold_store::sql;
use leasehold_store::wake::Wake;
use rusqlite::params;

const FIND: &str = sql!("request/to_cancel");
const WISH: &str = sql!("request/wish_cancel");
const LIST: &str = sql!("request/cancel_list");
const TOLD: &str = sql!("request/cancel_told");

pub(crate) fn cancel(session: &Session<'_>, cancel: &Cancel) -> Result<Cancelled, Fault> {
    let (workspace, request) = (cancel.workspace, cancel.request);
    let found = session.maybe(FIND, [blob(workspace), blob(request)], |row| {
        let status: RequestStatus = row.word("status")?;
        let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
        Ok((status, execution))
    })?;
    let wish = || session.run(WISH, params![blob(request), session.now, cancel.force]);
    match found {
        None => Ok(Cancelled::NotFound),
        Some((RequestStatus::Completed | RequestStatus::Failed, _)) => {
            Ok(Cancelled::AlreadyFinished)
        }
        Some((RequestStatus::Pending, None)) => {
            let subject = Subject { request, workspace };
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
            wish()?;
            session.ring(Wake::Work);
            Ok(Cancelled::Wished(execution))
        }
        Some((RequestStatus::Claimed, Some(execution))) => {
            wish()?;
            Ok(Cancelled::Wished(execution))
        }
        Some((RequestStatus::Dispatched, Some(execution))) => {
            wish()?;
            session.ring(Wake::Cancel);
            Ok(Cancelled::Running(execution))
        }
        Some((RequestStatus::Claimed | RequestStatus::Dispatched, None)) => {
            Err(ErrorKind::Broken("an admitted request has no execution".to_owned()).into())
        }
    }
}

pub(crate) fn list(session: &Session<'_>, limit: u32) -> Result<Vec<CancelWish>, Fault> {
    session.all(LIST, [limit.min(SWEEP_MAX_BATCH)], |row| {
        let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
        Ok(CancelWish {
            request: row.id("id")?,
            workspace: row.id("workspace_id")?,
            execution: execution.ok_or_else(|| {
                ErrorKind::Broken("an admitted request has no execution".to_owned())
            })?,
            force: row.get("cancel_force")?,
        })
    })
}

pub(crate) fn told(session: &Session<'_>, wishes: &[CancelWish]) -> Result<(), Fault> {
    for wish in wishes {
        let row = params![
            blob(wish.request),
            blob(wish.execution),
            wish.force,
            session.now
        ];
        session.run(TOLD, row)?;
    }
    Ok(())
}
