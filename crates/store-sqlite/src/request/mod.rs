//! Requests: the store's methods. Operations of more than one statement have their own modules; each runs atomically in a savepoint of the writer.

pub(crate) mod crash;
pub(crate) mod event;
pub(crate) mod resolve;

mod cancel;
mod claim;
mod enqueue;
mod key_digests;
mod key_holders;
mod promote;
mod read;
mod redrive;

use crate::row::blob;
use crate::session::Session;
use crate::{SqliteStore, workspace};
use async_trait::async_trait;
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::request::{
    Cancel, CancelRequest, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Crash, CrashedRequest,
    Dispatched, Enqueue, Enqueued, Fail, KeyHolder, Oldest, Promoted, Recovered, Redrive,
    RedriveMany, Redriven, Release, Released, Request, RequestFilter, RequestStore,
    RequestsRenewed,
};
use leasehold_store::sql;
use leasehold_store::{Error, Page, Result};
use rusqlite::params;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

const GET: &str = sql!("request/get");
const FIND: &str = sql!("request/find");
const TIMELINE: &str = sql!("request/timeline");
const POSITION: &str = sql!("request/position");

#[async_trait]
impl RequestStore for SqliteStore {
    async fn request_enqueue(&self, enqueue: &Enqueue) -> Result<Enqueued> {
        let context = "request_enqueue";
        let batch =
            enqueue::EnqueueBatch::prepare(enqueue).map_err(|kind| Error::new(context, kind))?;
        let batch = Arc::new(batch);
        let digests = key_digests::compute(self, &batch).await?;
        self.writer
            .write_or_rollback(context, move |s| enqueue::enqueue(s, &batch, &digests))
            .await
    }

    async fn request_key_holders(&self, enqueue: &Enqueue) -> Result<Vec<Option<KeyHolder>>> {
        let batch = enqueue::EnqueueBatch::prepare(enqueue)
            .map_err(|kind| Error::new("request_key_holders", kind))?;
        key_holders::find_all(self, Arc::new(batch)).await
    }

    async fn request_claim(&self, claim: &Claim) -> Result<ClaimOutcome> {
        let claim = claim.clone();
        let cost = Arc::clone(&self.claim_cost);
        self.write("request_claim", move |s| {
            let outcome = claim::claim(s, &claim);
            *cost.lock().unwrap_or_else(PoisonError::into_inner) = s.cost();
            outcome
        })
        .await
    }

    async fn request_promote_due(&self) -> Result<Promoted> {
        self.write("request_promote_due", promote::promote_due)
            .await
    }

    async fn request_renew(
        &self,
        owner: &str,
        claims: &[ClaimRef],
        lease: Duration,
    ) -> Result<RequestsRenewed> {
        let (owner, claims) = (owner.to_owned(), claims.to_vec());
        let renewed = self.write("request_renew", move |s| {
            resolve::renew(s, &owner, &claims, lease)
        });
        Ok(RequestsRenewed {
            renewed: renewed.await?,
            // One transaction writes at a time, so no row is locked.
            busy: Vec::new(),
        })
    }

    async fn request_dispatched(
        &self,
        owner: &str,
        claims: &[ClaimRef],
    ) -> Result<Vec<Dispatched>> {
        let (owner, claims) = (owner.to_owned(), claims.to_vec());
        let name = |claim: &ClaimRef| format!("request {}", claim.request);
        let one = move |s: &Session<'_>, claim: &ClaimRef| resolve::dispatched(s, &owner, *claim);
        self.write_each("request_dispatched", claims, Dispatched::Busy, name, one)
            .await
    }

    async fn request_release(&self, owner: &str, releases: &[Release]) -> Result<Vec<Released>> {
        let (owner, releases) = (owner.to_owned(), releases.to_vec());
        let name = |release: &Release| format!("request {}", release.claim.request);
        let one = move |s: &Session<'_>, release: &Release| resolve::release(s, &owner, release);
        self.write_each("request_release", releases, Released::Busy, name, one)
            .await
    }

    async fn request_fail(&self, owner: &str, fail: &Fail) -> Result<bool> {
        let (owner, fail) = (owner.to_owned(), fail.clone());
        self.write("request_fail", move |s| resolve::fail(s, &owner, &fail))
            .await
    }

    async fn request_recover(&self, by: &str, limit: u32) -> Result<Vec<Recovered>> {
        let by = by.to_owned();
        self.write("request_recover", move |s| resolve::recover(s, &by, limit))
            .await
    }

    async fn request_note_crash(&self, crash: &Crash) -> Result<Vec<CrashedRequest>> {
        let crash = crash.clone();
        self.write("request_note_crash", move |s| crash::note(s, &crash))
            .await
    }

    async fn request_cancel(&self, cancel: &Cancel) -> Result<Cancelled> {
        let cancel = cancel.clone();
        self.write("request_cancel", move |s| cancel::cancel(s, &cancel))
            .await
    }

    async fn request_cancel_list(&self, limit: u32) -> Result<Vec<CancelRequest>> {
        self.read("request_cancel_list", move |s| cancel::list(s, limit))
            .await
    }

    async fn request_cancel_ack(&self, cancels: &[CancelRequest]) -> Result<()> {
        let cancels = cancels.to_vec();
        self.write("request_cancel_ack", move |s| {
            cancel::acknowledge(s, &cancels)
        })
        .await
    }

    async fn request_cancel_repeat(&self, requests: &[RequestId]) -> Result<u64> {
        let requests = requests.to_vec();
        self.write("request_cancel_repeat", move |s| {
            cancel::repeat(s, &requests)
        })
        .await
    }

    async fn request_redrive(&self, redrive: &Redrive) -> Result<Redriven> {
        let redrive = redrive.clone();
        self.write("request_redrive", move |s| redrive::redrive(s, &redrive))
            .await
    }

    async fn request_redrive_many(
        &self,
        redrive: &RedriveMany,
    ) -> Result<Vec<(RequestId, RequestId)>> {
        redrive::redrive_many(self, redrive).await
    }

    async fn request_get(&self, workspace: WorkspaceId, id: RequestId) -> Result<Option<Request>> {
        self.read("request_get", move |s| {
            s.optional(GET, [blob(workspace), blob(id)], read::request)
        })
        .await
    }

    async fn request_find(&self, id: RequestId) -> Result<Option<Request>> {
        self.read("request_find", move |s| {
            s.optional(FIND, [blob(id)], read::request)
        })
        .await
    }

    async fn request_list(
        &self,
        filter: &RequestFilter,
        page: Page<RequestId>,
    ) -> Result<Vec<Request>> {
        let filter = *filter;
        self.read("request_list", move |s| read::list(s, &filter, page))
            .await
    }

    async fn request_counts(&self, workspace: WorkspaceId) -> Result<Counts> {
        self.read("request_counts", move |s| workspace::counts(s, workspace))
            .await
    }

    async fn request_oldest(&self) -> Result<Oldest> {
        self.read("request_oldest", read::oldest).await
    }

    async fn request_timeline(&self, workspace: WorkspaceId, id: RequestId) -> Result<Vec<Event>> {
        self.read("request_timeline", move |s| {
            s.all(TIMELINE, [blob(workspace), blob(id)], event::event)
        })
        .await
    }

    async fn request_position(
        &self,
        workspace: WorkspaceId,
        id: RequestId,
        up_to: u32,
    ) -> Result<Option<u32>> {
        self.read("request_position", move |s| {
            let row = params![
                blob(workspace),
                blob(id),
                s.now,
                up_to,
                promote::PROMOTE_BATCH
            ];
            s.optional(POSITION, row, |row| Ok(row.get("position")?))
        })
        .await
    }
}
