//! Requests as the port asks for them: each call hands its verb's function to the writer or to a reader. Knows no SQL.

use super::{cancel, claim, enqueue, read, redrive, resolve, settle};
use crate::{SqliteStore, workspace};
use leasehold_core::{RequestId, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store::request::{
    Cancel, CancelWish, Cancelled, Claim, ClaimOutcome, ClaimRef, Counts, Dispatched, Enqueue,
    Enqueued, Fail, Oldest, Recovered, Redrive, RedriveMany, Redriven, Release, Released, Request,
    RequestFilter, Settled,
};
use leasehold_store::{Error, Page, Result};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub(crate) async fn enqueue(store: &SqliteStore, enqueue: &Enqueue) -> Result<Enqueued> {
    let context = "request_enqueue";
    let call = enqueue::Call::prepare(enqueue).map_err(|kind| Error::new(context, kind))?;
    store
        .writer
        .write_or_undo(context, move |s| enqueue::enqueue(s, &call))
        .await
}

pub(crate) async fn claim(store: &SqliteStore, claim: &Claim) -> Result<ClaimOutcome> {
    let claim = claim.clone();
    let cost = Arc::clone(&store.claim_cost);
    store
        .write("request_claim", move |s| {
            let outcome = claim::claim(s, &claim);
            *cost.lock().unwrap_or_else(PoisonError::into_inner) = s.cost();
            outcome
        })
        .await
}

pub(crate) async fn settle(store: &SqliteStore) -> Result<Settled> {
    store.write("request_settle", settle::settle).await
}

pub(crate) async fn renew(
    store: &SqliteStore,
    owner: &str,
    claims: &[ClaimRef],
    lease: Duration,
) -> Result<Vec<RequestId>> {
    let (owner, claims) = (owner.to_owned(), claims.to_vec());
    store
        .write("request_renew", move |s| {
            resolve::renew(s, &owner, &claims, lease)
        })
        .await
}

pub(crate) async fn dispatched(
    store: &SqliteStore,
    owner: &str,
    claims: &[ClaimRef],
) -> Result<Vec<Dispatched>> {
    let (owner, claims) = (owner.to_owned(), claims.to_vec());
    store
        .write("request_dispatched", move |s| {
            resolve::dispatched(s, &owner, &claims)
        })
        .await
}

pub(crate) async fn release(
    store: &SqliteStore,
    owner: &str,
    releases: &[Release],
) -> Result<Vec<Released>> {
    let (owner, releases) = (owner.to_owned(), releases.to_vec());
    store
        .write("request_release", move |s| {
            resolve::release(s, &owner, &releases)
        })
        .await
}

pub(crate) async fn fail(store: &SqliteStore, owner: &str, fail: &Fail) -> Result<bool> {
    let (owner, fail) = (owner.to_owned(), fail.clone());
    store
        .write("request_fail", move |s| resolve::fail(s, &owner, &fail))
        .await
}

pub(crate) async fn recover(store: &SqliteStore, by: &str, limit: u32) -> Result<Vec<Recovered>> {
    let by = by.to_owned();
    store
        .write("request_recover", move |s| resolve::recover(s, &by, limit))
        .await
}

pub(crate) async fn cancel(store: &SqliteStore, cancel: &Cancel) -> Result<Cancelled> {
    let cancel = cancel.clone();
    store
        .write("request_cancel", move |s| cancel::cancel(s, &cancel))
        .await
}

pub(crate) async fn cancel_list(store: &SqliteStore, limit: u32) -> Result<Vec<CancelWish>> {
    store
        .read("request_cancel_list", move |s| cancel::list(s, limit))
        .await
}

pub(crate) async fn cancel_told(store: &SqliteStore, wishes: &[CancelWish]) -> Result<()> {
    let wishes = wishes.to_vec();
    store
        .write("request_cancel_told", move |s| cancel::told(s, &wishes))
        .await
}

pub(crate) async fn redrive(store: &SqliteStore, redrive: &Redrive) -> Result<Redriven> {
    let redrive = redrive.clone();
    store
        .write("request_redrive", move |s| redrive::redrive(s, &redrive))
        .await
}

pub(crate) async fn redrive_many(
    store: &SqliteStore,
    redrive: &RedriveMany,
) -> Result<Vec<(RequestId, RequestId)>> {
    let many = redrive.clone();
    store
        .write("request_redrive_many", move |s| {
            redrive::redrive_many(s, &many)
        })
        .await
}

pub(crate) async fn get(
    store: &SqliteStore,
    workspace: WorkspaceId,
    id: RequestId,
) -> Result<Option<Request>> {
    store
        .read("request_get", move |s| read::get(s, workspace, id))
        .await
}

pub(crate) async fn find(store: &SqliteStore, id: RequestId) -> Result<Option<Request>> {
    store.read("request_find", move |s| read::find(s, id)).await
}

pub(crate) async fn list(
    store: &SqliteStore,
    filter: &RequestFilter,
    page: Page<RequestId>,
) -> Result<Vec<Request>> {
    let filter = *filter;
    store
        .read("request_list", move |s| read::list(s, &filter, page))
        .await
}

pub(crate) async fn counts(store: &SqliteStore, workspace: WorkspaceId) -> Result<Counts> {
    store
        .read("request_counts", move |s| workspace::counts(s, workspace))
        .await
}

pub(crate) async fn oldest(store: &SqliteStore) -> Result<Oldest> {
    store.read("request_oldest", read::oldest).await
}

pub(crate) async fn timeline(
    store: &SqliteStore,
    workspace: WorkspaceId,
    id: RequestId,
) -> Result<Vec<Event>> {
    store
        .read("request_timeline", move |s| {
            read::timeline(s, workspace, id)
        })
        .await
}

pub(crate) async fn place(
    store: &SqliteStore,
    workspace: WorkspaceId,
    id: RequestId,
    up_to: u32,
) -> Result<Option<u32>> {
    store
        .read("request_place", move |s| {
            read::place(s, workspace, id, up_to)
        })
        .await
}
