//! Executions: reads them, and finishes them together with their requests.

use crate::SqliteStore;
use crate::error::Fault;
use crate::request::crash::crashes;
use crate::request::event::RequestRef;
use crate::request::resolve::mark_dispatched;
use crate::row::{Columns, SqliteRecord, Text, after_id, blob};
use crate::session::Session;
use async_trait::async_trait;
use leasehold_core::{
    Crashes, ExecutionId, ExecutionStatus, FailureReason, RequestStatus, WorkspaceId,
};
use leasehold_store::execution::{
    ActiveKey, Execution, ExecutionFilter, ExecutionFinish, ExecutionFinished, ExecutionStore,
};
use leasehold_store::notification::Notification;
use leasehold_store::sql;
use leasehold_store::{Page, Result};
use rusqlite::{Row, params};
use serde_json::Value;

const GET: &str = sql!("execution/get");
const FIND: &str = sql!("execution/find");
const LIST: &str = sql!("execution/list");
const LIST_OF_RUNNING: &str = sql!("execution/list_of_running");
const LIST_ACTIVE: &str = sql!("execution/list_active");
const LIST_RUNNING: &str = sql!("execution/list_running");
const TO_FINISH: &str = sql!("execution/to_finish");
const FINISH: &str = sql!("execution/finish");
const REQUEST_CLAIM: &str = sql!("request/finish_claim");
const REQUEST_FINISH: &str = sql!("request/finish");

#[async_trait]
impl ExecutionStore for SqliteStore {
    async fn execution_get(
        &self,
        workspace: WorkspaceId,
        id: ExecutionId,
    ) -> Result<Option<Execution>> {
        self.read("execution_get", move |s| {
            s.optional(GET, [blob(workspace), blob(id)], execution)
        })
        .await
    }

    async fn execution_find(&self, id: ExecutionId) -> Result<Option<Execution>> {
        self.read("execution_find", move |s| {
            s.optional(FIND, [blob(id)], execution)
        })
        .await
    }

    async fn execution_list(
        &self,
        filter: &ExecutionFilter,
        page: Page<i64>,
    ) -> Result<Vec<Execution>> {
        let filter = *filter;
        self.read("execution_list", move |s| list(s, &filter, page))
            .await
    }

    async fn execution_finish(
        &self,
        by: &str,
        finishes: &[ExecutionFinish],
    ) -> Result<Vec<ExecutionFinished>> {
        let (by, finishes) = (by.to_owned(), finishes.to_vec());
        let name = |finish: &ExecutionFinish| format!("execution {}", finish.execution);
        let one = move |s: &Session<'_>, finish: &ExecutionFinish| finish_one(s, &by, finish);
        let busy = ExecutionFinished::Busy;
        self.write_each("execution_finish", finishes, busy, name, one)
            .await
    }

    async fn execution_list_running(&self, ids: &[ExecutionId]) -> Result<Vec<Execution>> {
        let ids = ids.to_vec();
        self.read("execution_list_running", move |s| {
            let ids: Vec<String> = ids.iter().map(|id| id.0.simple().to_string()).collect();
            s.all(LIST_RUNNING, [Value::from(ids).to_string()], execution)
        })
        .await
    }

    async fn execution_list_active(&self, page: Page<ActiveKey>) -> Result<Vec<Execution>> {
        self.read("execution_list_active", move |s| {
            let row = params![
                after_id(page.after.map(|key| key.workspace)),
                page.after.map_or(0, |key| key.admission),
                page.rows()
            ];
            s.all(LIST_ACTIVE, row, execution)
        })
        .await
    }
}

fn list(
    session: &Session<'_>,
    filter: &ExecutionFilter,
    page: Page<i64>,
) -> Result<Vec<Execution>, Fault> {
    // RUNNING executions have their own index, so the query skips finished ones.
    let sql = match filter.status {
        Some(ExecutionStatus::Running) => LIST_OF_RUNNING,
        _ => LIST,
    };
    let row = params![
        blob(filter.workspace),
        page.after.unwrap_or(i64::MAX),
        filter.status.map(|status| status.as_str()),
        filter.definition.map(blob),
        page.rows()
    ];
    session.all(sql, row, execution)
}

/// The state of an execution and its request before they finish.
struct OpenExecution {
    execution: ExecutionStatus,
    subject: RequestRef,
    status: RequestStatus,
    cancel_requested: bool,
    crashes: Crashes,
}

pub(crate) fn finish_one(
    session: &Session<'_>,
    by: &str,
    finish: &ExecutionFinish,
) -> Result<ExecutionFinished, Fault> {
    let found = session.optional(TO_FINISH, [blob(finish.execution)], |row| {
        Ok(OpenExecution {
            execution: row.parsed("execution_status")?,
            subject: RequestRef {
                request: row.id("id")?,
                workspace: row.id("workspace_id")?,
            },
            status: row.parsed("status")?,
            cancel_requested: row.get("cancel_requested")?,
            crashes: crashes(row)?,
        })
    })?;
    let Some(open) = found else {
        return Ok(ExecutionFinished::NotFound);
    };
    if open.execution != ExecutionStatus::Running {
        return Ok(ExecutionFinished::AlreadyFinished);
    }
    let row = params![
        blob(finish.execution),
        open.execution.after(finish.end).as_str(),
        session.now,
        finish.error.as_deref().map(Text)
    ];
    session.run(FINISH, row)?;
    session.notify(Notification::Work);
    let request = open.subject.request;
    let (status, reason) = match open.status {
        ended @ (RequestStatus::Completed | RequestStatus::Failed) => (ended, None),
        RequestStatus::Pending | RequestStatus::Claimed | RequestStatus::Dispatched => {
            advance_to_dispatched(session, by, finish.execution, &open)?;
            end_request(session, by, finish, &open)?
        }
    };
    Ok(ExecutionFinished::Finished {
        request,
        status,
        reason,
    })
}

/// Moves the request through the statuses up to DISPATCHED.
fn advance_to_dispatched(
    session: &Session<'_>,
    by: &str,
    execution: ExecutionId,
    open: &OpenExecution,
) -> Result<(), Fault> {
    let subject = open.subject;
    if open.status == RequestStatus::Pending {
        let row = params![
            blob(subject.request),
            blob(execution),
            Text(by),
            session.now
        ];
        session.run(REQUEST_CLAIM, row)?;
        let (from, to) = (RequestStatus::Pending, RequestStatus::Claimed);
        subject.log_transition(session, Some(from), to, by, None)?;
    }
    if open.status != RequestStatus::Dispatched {
        mark_dispatched(session, subject, by)?;
    }
    Ok(())
}

fn end_request(
    session: &Session<'_>,
    by: &str,
    finish: &ExecutionFinish,
    open: &OpenExecution,
) -> Result<(RequestStatus, Option<FailureReason>), Fault> {
    let reason = finish
        .end
        .failure_reason_for(open.crashes, open.cancel_requested);
    let status = match reason {
        None => RequestStatus::Completed,
        Some(_) => RequestStatus::Failed,
    };
    let parsed = reason.map(FailureReason::as_str);
    let row = params![
        blob(open.subject.request),
        status.as_str(),
        parsed,
        finish.error.as_deref().map(Text),
        session.now
    ];
    session.run(REQUEST_FINISH, row)?;
    let from = Some(RequestStatus::Dispatched);
    open.subject
        .log_transition(session, from, status, by, parsed)?;
    Ok((status, reason))
}

fn execution(row: &Row<'_>) -> Result<Execution, Fault> {
    Execution::read(&SqliteRecord(row))
}
