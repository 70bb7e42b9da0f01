//! Requests in PostgreSQL: operations of one statement are here, the others have modules of their own.

mod cancel;
pub(crate) mod claim;
mod crash;
mod enqueue;
mod key_holders;
mod resolve;

use crate::epoch;
use crate::row::{self, PgRecord};
use crate::store::{Params, PostgresStore, sql};
use async_trait::async_trait;
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{RequestId, RequestStatus, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::request::{
    Cancel, CancelRequest, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Crash, CrashedRequest,
    Dispatched, Enqueue, Enqueued, Fail, KeyHolder, Oldest, Promoted, Recovered, Redrive,
    RedriveMany, Redriven, Release, Released, Request, RequestFilter, RequestStore,
    RequestsRenewed,
};
use leasehold_store::{Page, Result, run_off_thread};
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// Reads requests from their rows, large ones off the serving threads: their params are parsed.
async fn read_requests(context: &'static str, rows: Vec<Row>) -> Result<Vec<Request>> {
    let bytes = rows.iter().map(Row::raw_size_bytes).sum();
    let read = move || {
        let requests = rows.iter().map(|row| Request::read(&PgRecord(row)));
        requests.collect()
    };
    run_off_thread(context, bytes, read).await
}

#[async_trait]
impl RequestStore for PostgresStore {
    async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued> {
        epoch::repeated(|| enqueue::enqueue(self, enqueue)).await
    }

    async fn request_key_holders(&self, enqueue: &Enqueue) -> Result<Vec<Option<KeyHolder>>> {
        key_holders::find(self, enqueue).await
    }

    async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome> {
        epoch::repeated(|| claim::claim(self, claim)).await
    }

    async fn request_promote_due(&self) -> Result<Promoted> {
        claim::promote_due(self).await
    }

    async fn request_renew(
        &self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
    ) -> Result<RequestsRenewed> {
        resolve::renew(self, owner, claims, lease).await
    }

    async fn request_dispatched(
        &self,
        owner: &str,
        claims: &[ClaimRef],
    ) -> Result<Vec<Dispatched>> {
        resolve::dispatched(self, owner, claims).await
    }

    async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>> {
        resolve::release(self, owner, releases).await
    }

    async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool> {
        resolve::fail(self, owner, fail).await
    }

    async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>> {
        resolve::recover(self, by, limit).await
    }

    async fn request_note_crash(&self, crash: &Crash) -> Result<Vec<CrashedRequest>> {
        crash::note(self, crash).await
    }

    async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled> {
        cancel::cancel(self, cancel).await
    }

    async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelRequest>> {
        let limit = i64::from(limit.min(SWEEP_MAX_BATCH));
        let rows = self
            .many(
                "request_cancel_list",
                sql!("request/cancel_list"),
                &[&limit],
            )
            .await?;
        Ok(rows
            .iter()
            .map(|row| CancelRequest {
                request: row::id(row, "id"),
                workspace: row::id(row, "workspace_id"),
                execution: row::id(row, "execution_id"),
                force: row.get("cancel_force"),
            })
            .collect())
    }

    async fn request_cancel_ack(&self, cancels: &[CancelRequest]) -> Result<()> {
        let requests: Vec<Uuid> = cancels.iter().map(|cancel| cancel.request.0).collect();
        let executions: Vec<Uuid> = cancels.iter().map(|cancel| cancel.execution.0).collect();
        let forces: Vec<bool> = cancels.iter().map(|cancel| cancel.force).collect();
        self.execute(
            "request_cancel_ack",
            sql!("request/cancel_ack"),
            &[&self.given_now(), &requests, &executions, &forces],
        )
        .await
        .map(drop)
    }

    async fn request_cancel_repeat(&self, requests: &[RequestId]) -> Result<u64> {
        let requests: Vec<Uuid> = requests.iter().map(|request| request.0).collect();
        self.execute(
            "request_cancel_repeat",
            sql!("request/cancel_repeat"),
            &[&requests],
        )
        .await
    }

    async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven> {
        cancel::redrive(self, redrive).await
    }

    async fn request_redrive_many(
        &self,
        redrive: &RedriveMany,
    ) -> Result<Vec<(RequestId, RequestId)>> {
        cancel::redrive_many(self, redrive).await
    }

    async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>> {
        let row = self
            .maybe("request_get", sql!("request/get"), &[&workspace.0, &id.0])
            .await?;
        let requests = read_requests("request_get", Vec::from_iter(row)).await?;
        Ok(requests.into_iter().next())
    }

    async fn request_find(&self, id: RequestId) -> Result<Option<Request>> {
        let row = self
            .maybe("request_find", sql!("request/find"), &[&id.0])
            .await?;
        let requests = read_requests("request_find", Vec::from_iter(row)).await?;
        Ok(requests.into_iter().next())
    }

    async fn request_list(
        &self,
        filter: &RequestFilter,
        page: Page<RequestId>,
    ) -> Result<Vec<Request>> {
        const CONTEXT: &str = "request_list";
        let before = page.after.map(Uuid::from);
        let status = filter.status.map(RequestStatus::as_str);
        let definition = filter.definition.map(Uuid::from);
        let reason = filter.reason.map(|reason| reason.as_str());
        let rows = match filter.workspace {
            None => {
                let params: &Params<'_> = &[&before, &status, &definition, &reason, &page.rows()];
                self.many(CONTEXT, sql!("request/list_all"), params).await?
            }
            Some(workspace) => {
                let failed = filter.status == Some(RequestStatus::Failed) || reason.is_some();
                let statement = if failed {
                    sql!("request/list_failed")
                } else {
                    sql!("request/list")
                };
                let params: &Params<'_> = &[
                    &workspace.0,
                    &before,
                    &status,
                    &definition,
                    &reason,
                    &page.rows(),
                ];
                self.many(CONTEXT, statement, params).await?
            }
        };
        read_requests(CONTEXT, rows).await
    }

    async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts> {
        // Folding first leaves few unfolded events to add; the result is exact either way.
        claim::fold(self).await?;
        let row = self
            .maybe("request_counts", sql!("request/counts"), &[&workspace.0])
            .await?;
        let Some(row) = row else {
            return Ok(Counts::default());
        };
        Ok(Counts {
            pending: row::count(&row, "pending")?,
            claimed: row::count(&row, "claimed")?,
            dispatched: row::count(&row, "dispatched")?,
            completed: row::count(&row, "completed")?,
            failed: row::count(&row, "failed")?,
        })
    }

    async fn request_oldest(&self) -> Result<Oldest> {
        // The start of a line is known only for folded events.
        claim::fold(self).await?;
        let row = self
            .one(
                "request_oldest",
                sql!("request/oldest"),
                &[&self.given_now()],
            )
            .await?;
        Ok(Oldest {
            at: row::time(&row, "at")?,
            pending: row::time(&row, "pending")?,
            startable: row::time(&row, "startable")?,
            claimed: row::time(&row, "claimed")?,
            dispatched: row::time(&row, "dispatched")?,
        })
    }

    async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>> {
        let rows = self
            .many(
                "request_timeline",
                sql!("request/timeline"),
                &[&workspace.0, &id.0],
            )
            .await?;
        rows.iter().map(row::event).collect()
    }

    async fn request_position(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        up_to: u32,
    ) -> Result<Option<u32>> {
        let row = self
            .maybe(
                "request_position",
                sql!("request/position"),
                &[
                    &self.given_now(),
                    &workspace.0,
                    &id.0,
                    &i64::from(up_to),
                    &i64::from(claim::PROMOTE_MAX),
                ],
            )
            .await?;
        row.map(|row| row::count(&row, "position")).transpose()
    }
}
