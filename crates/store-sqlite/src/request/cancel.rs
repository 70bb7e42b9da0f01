//! Cancellation: at once where nothing was started, else a wish that whoever resolves the start carries out.

use crate::error::Fault;
use crate::request::claim::fail_pending;
use crate::request::event::Subject;
use crate::row::{Columns, blob};
use crate::session::Session;
use leasehold_core::{ExecutionId, FailureReason, RequestId, RequestStatus, WorkspaceId};
use leasehold_store::ErrorKind;
use leasehold_store::request::Cancelled;
use rusqlite::params;

const FIND: &str = include_str!("../../sql/request/to_cancel.sql");
const WISH: &str = include_str!("../../sql/request/wish_cancel.sql");

pub(crate) fn cancel(
    session: &Session<'_>,
    workspace: WorkspaceId,
    request: RequestId,
    by: &str,
) -> Result<Cancelled, Fault> {
    let found = session.maybe(FIND, [blob(workspace), blob(request)], |row| {
        let status: RequestStatus = row.word("status")?;
        let execution: Option<ExecutionId> = row.id_or_none("execution_id")?;
        Ok((status, execution))
    })?;
    let wish = || session.run(WISH, params![blob(request), session.now]);
    match found {
        None => Ok(Cancelled::NotFound),
        Some((RequestStatus::Completed | RequestStatus::Failed, _)) => {
            Ok(Cancelled::AlreadyFinished)
        }
        Some((RequestStatus::Pending, None)) => {
            let subject = Subject { request, workspace };
            fail_pending(session, subject, FailureReason::Cancelled, by, false)?;
            Ok(Cancelled::Cancelled)
        }
        Some((RequestStatus::Pending | RequestStatus::Claimed, Some(execution))) => {
            wish().map(|_| Cancelled::Wished(execution))
        }
        Some((RequestStatus::Dispatched, Some(execution))) => {
            wish().map(|_| Cancelled::Running(execution))
        }
        Some((RequestStatus::Claimed | RequestStatus::Dispatched, None)) => {
            Err(ErrorKind::Broken("an admitted request has no execution".to_owned()).into())
        }
    }
}
