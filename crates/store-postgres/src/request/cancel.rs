//! Cancels open requests, and redrives failed ones.

use crate::row::{self, maybe_id, named};
use crate::store::{PostgresStore, sql};
use leasehold_core::limits::SWEEP_MAX_BATCH;
use leasehold_core::{ExecutionId, RequestId, RequestStatus};
use leasehold_store::notification::Notification;
use leasehold_store::request::{Cancel, Cancelled, Redrive, RedriveMany, Redriven};
use leasehold_store::{Error, ErrorKind, Result, fresh_id};
use uuid::Uuid;

pub(crate) async fn cancel(store: &PostgresStore, cancel: &Cancel) -> Result<Cancelled> {
    let row = store
        .maybe(
            "request_cancel",
            sql!("request/cancel"),
            &[
                &store.given_now(),
                &cancel.workspace.0,
                &cancel.request.0,
                &cancel.by,
                &cancel.force,
            ],
        )
        .await?;
    let Some(row) = row else {
        return Ok(Cancelled::NotFound);
    };
    let execution = maybe_id::<ExecutionId>(&row, "execution_id");
    if row.get("is_unacknowledged") {
        store.notifier.wake(Notification::Cancel);
    }
    Ok(match (named(&row, "status")?, execution) {
        (RequestStatus::Pending, None) => Cancelled::Cancelled,
        (RequestStatus::Pending, Some(execution)) => {
            store.notifier.wake(Notification::Work);
            Cancelled::Requested(execution)
        }
        (RequestStatus::Claimed, Some(execution)) => Cancelled::Requested(execution),
        (RequestStatus::Dispatched, Some(execution)) => Cancelled::Running(execution),
        (RequestStatus::Completed | RequestStatus::Failed, _) => Cancelled::AlreadyFinished,
        (RequestStatus::Claimed | RequestStatus::Dispatched, None) => {
            let text = format!(
                "request {} is CLAIMED or DISPATCHED but has no execution",
                cancel.request
            );
            return Err(Error::new("request_cancel", ErrorKind::Broken(text)));
        }
    })
}

pub(crate) async fn redrive(store: &PostgresStore, redrive: &Redrive) -> Result<Redriven> {
    const CONTEXT: &str = "request_redrive";
    loop {
        let row = store
            .maybe(
                CONTEXT,
                sql!("request/redrive"),
                &[
                    &store.given_now(),
                    &redrive.workspace.0,
                    &redrive.failed.0,
                    &redrive.id.0,
                    &redrive.by,
                ],
            )
            .await?;
        let Some(row) = row else {
            return Ok(Redriven::NotFound);
        };
        if let Some(new) = maybe_id(&row, "inserted") {
            store.notifier.wake(Notification::Work);
            return Ok(Redriven::Enqueued(new));
        }
        if named::<RequestStatus>(&row, "status")? != RequestStatus::Failed {
            return Ok(Redriven::NotFailed);
        }
        if !row.get::<_, bool>("alive") {
            return Ok(Redriven::DefinitionNotFound);
        }
        let live = store
            .maybe(CONTEXT, sql!("request/live_redrive"), &[&redrive.failed.0])
            .await?;
        // None: the redrive ended between the two statements; try again.
        if let Some(row) = live {
            return Ok(Redriven::AlreadyLive(row::id(&row, "id")));
        }
    }
}

pub(crate) async fn redrive_many(
    store: &PostgresStore,
    redrive: &RedriveMany,
) -> Result<Vec<(RequestId, RequestId)>> {
    let limit = redrive.limit.min(SWEEP_MAX_BATCH);
    let ids: Vec<Uuid> = (0..limit).map(|_| fresh_id()).collect();
    let rows = store
        .many(
            "request_redrive_many",
            sql!("request/redrive_many"),
            &[
                &store.given_now(),
                &redrive.workspace.0,
                &redrive.reason.map(|reason| reason.as_str()),
                &i64::from(limit),
                &ids,
                &redrive.by,
                &redrive.definition.map(Uuid::from),
                &i64::try_from(redrive.max_bytes).unwrap_or(i64::MAX),
            ],
        )
        .await?;
    store.notifier.wake_for_work(!rows.is_empty());
    Ok(rows
        .iter()
        .map(|row| (row::id(row, "redrive_of"), row::id(row, "id")))
        .collect())
}
