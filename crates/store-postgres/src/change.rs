//! The change stream in PostgreSQL. A position in it is a pair of snapshots, so that events that commit late are not missed.
//!
//! One call scans a bounded number of events. The history is read in steps. Later events are read in windows between two snapshots; if more than
//! `CHANGE_SCAN_MAX` events were written since the reader's snapshot, its window ends at an earlier transaction number. PostgreSQL took no snapshot there,
//! and numbers do not follow the order of commits. So a transaction below that number whose events depend on one above it is left to a later window.

use crate::epoch::Epoch;
use crate::pool::{self, Connection};
use crate::row;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::store::{Params, PostgresStore, sql};
use crate::stream_position::StreamPosition;
use async_trait::async_trait;
use leasehold_core::WorkspaceId;
use leasehold_core::limits::{CHANGE_SCAN_MAX, CURSOR_MAX_WRITERS, PAGE_MAX};
use leasehold_store::change::{Change, ChangePage, ChangeStart, ChangeStore};
use leasehold_store::{EpochId, Error, ErrorKind, Result};
use tokio_postgres::Row;

const CONTEXT: &str = "change_list";

#[async_trait]
impl ChangeStore for PostgresStore {
    async fn change_list(
        &self,
        start: &ChangeStart,
        workspace: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<ChangePage> {
        // One connection: its epoch is that of every number that the call reads.
        let client = pool::take(&self.pool, CONTEXT).await?;
        let (session, epoch) = (client.session(), epoch(&client)?);
        let (epoch, first_event) = (epoch.id, epoch.first_event);
        let (snapshot, kept_from) = stream_end(session).await?;
        let end = i64::try_from(snapshot.xmax()).unwrap_or(i64::MAX);
        self.epochs.saw_snapshot(client.epoch, end);
        let mut position = match start {
            ChangeStart::Oldest => {
                StreamPosition::at(epoch, None, bounded(session, &snapshot).await?)
            }
            ChangeStart::Now => {
                let now = bounded(session, &snapshot).await?;
                StreamPosition::at(epoch, Some(now.clone()), now)
            }
            ChangeStart::After(cursor) => {
                let position = StreamPosition::parse(cursor).ok_or_else(malformed)?;
                let position = continued(session, epoch, position).await?;
                match position.until.xmax() <= snapshot.xmax() {
                    true => position,
                    false => return Err(gone()),
                }
            }
        };
        if position.seen().xmin() < kept_from {
            let problem = "events after the cursor have expired; start again without a cursor";
            return Err(Error::new(CONTEXT, ErrorKind::Gone(problem.to_owned())));
        }
        let limit = i64::from(limit.clamp(1, PAGE_MAX));
        let mut scan = Scan::default();
        if !position.is_empty() {
            scan = read(session, &position, first_event, workspace, limit).await?;
        }
        if scan.rows.is_empty() && scan.stopped_at.is_none() {
            let until = window_end(session, &position.until, &snapshot).await?;
            position = StreamPosition::at(epoch, Some(position.until), until);
            scan = read(session, &position, first_event, workspace, limit).await?;
        }
        let full = i64::try_from(scan.rows.len()).is_ok_and(|n| n >= limit);
        let changes: Vec<Change> = scan
            .rows
            .iter()
            .map(|row| change(&position, row))
            .collect::<Result<_>>()?;
        let behind = full || scan.stopped_at.is_some() || position.until != snapshot;
        let cursor = match (changes.last(), scan.stopped_at) {
            (Some(last), _) if full => last.cursor.clone(),
            (_, Some(stopped)) => stopped.cursor(),
            // No more events of this filter are between the two snapshots: continue after them.
            _ => StreamPosition::at(epoch, Some(position.until.clone()), position.until).cursor(),
        };
        // Without progress the reader must wait: too many writers are older than the end of its window.
        let progress = !changes.is_empty() || *start != ChangeStart::After(cursor.clone());
        Ok(ChangePage {
            more: behind && progress,
            changes,
            cursor,
        })
    }
}

/// The events of a page.
#[derive(Default)]
struct Scan {
    rows: Vec<Row>,
    /// Where the scan stopped before it had a full page and before the end of the window.
    stopped_at: Option<StreamPosition>,
}

fn malformed() -> Error {
    let problem = "the cursor does not belong to this stream; start again without a cursor";
    Error::new(CONTEXT, ErrorKind::Value(problem.to_owned()))
}

/// Not even the first partition is listed, so the beginning of the log is not known.
fn no_partition() -> ErrorKind {
    let problem = "the table event_partition is empty, or its first row is not sealed: rows were deleted by hand; restore them from a backup";
    ErrorKind::Broken(problem.to_owned())
}

fn gone() -> Error {
    let problem = "the database was restored, failed over or moved since this cursor was issued, and what follows it cannot be told exactly; read the \
        current state, then start again without a cursor";
    Error::new(CONTEXT, ErrorKind::Gone(problem.to_owned()))
}

/// Returns the epoch of a connection.
fn epoch(client: &Connection) -> Result<Epoch> {
    client.epoch.ok_or_else(|| {
        let problem = "the database has no Leasehold schema; run `leasehold migrate up`";
        Error::new(CONTEXT, ErrorKind::Schema(problem.to_owned()))
    })
}

/// Returns the current end of the stream, and a number below which the transactions of all expired events are.
async fn stream_end(session: Session<'_>) -> Result<(Snapshot, u64)> {
    let row = session.one(sql!("change/now"), &[]).await?;
    let text: &str = row.get("snapshot");
    let malformed = || ErrorKind::Broken(format!("cannot parse PostgreSQL's snapshot `{text}`"));
    let snapshot = Snapshot::parse(text).ok_or_else(|| Error::new(CONTEXT, malformed()))?;
    let kept_from: Option<i64> = row.get("kept_from");
    let kept_from = kept_from.ok_or_else(|| Error::new(CONTEXT, no_partition()))?;
    Ok((snapshot, kept_from.cast_unsigned()))
}

/// Returns the same position in this epoch. One of an earlier epoch is valid if the later ones continued its history, and it saw nothing that they lost.
async fn continued(
    session: Session<'_>,
    epoch: EpochId,
    position: StreamPosition,
) -> Result<StreamPosition> {
    if position.epoch == epoch {
        return Ok(position);
    }
    let row = session
        .one(sql!("epoch/later"), &[&position.epoch.0])
        .await?;
    let is_continued: Option<bool> = row.get("is_continued");
    let start = row.get::<_, Option<i64>>("start_xid");
    let start = start.filter(|_| is_continued == Some(true));
    let start = start.map(i64::cast_unsigned).ok_or_else(gone)?;
    position.continued_in(epoch, start).ok_or_else(gone)
}

/// Returns the latest snapshot that a cursor can hold: the current one, or an earlier one if too many transactions are in progress.
async fn bounded(session: Session<'_>, now: &Snapshot) -> Result<Snapshot> {
    match now.within(CURSOR_MAX_WRITERS) == *now {
        true => Ok(now.clone()),
        false => window_end(session, &now.oldest(), now).await,
    }
}

fn change(position: &StreamPosition, row: &Row) -> Result<Change> {
    let position = position.after(row.get("request_id"), row.get("id"));
    Ok(Change {
        event: row::event(row)?,
        cursor: position.cursor(),
    })
}

/// Returns the end of the window after `from`: the current end of the stream, or an earlier one if too many events or writers are in between.
async fn window_end(session: Session<'_>, from: &Snapshot, now: &Snapshot) -> Result<Snapshot> {
    let end = now.within(CURSOR_MAX_WRITERS);
    let (start, scan) = (from.to_string(), i64::from(CHANGE_SCAN_MAX));
    let params: &Params<'_> = &[&start, &end.to_string(), &scan];
    let row = session.one(sql!("change/window_end"), params).await?;
    let xid = |name| row.get::<_, Option<i64>>(name).map(i64::cast_unsigned);
    let mut end = match (xid("first"), xid("beyond")) {
        // One transaction has more events than a window may have: the window has only that one.
        (Some(first), Some(beyond)) => end.before(beyond.max(first + 1)),
        _ => end,
    };
    // A snapshot of PostgreSQL that sees an event sees all earlier events of the same request.
    while end != *now {
        let params: &Params<'_> = &[&start, &end.to_string()];
        let rows = session.many(sql!("change/dependent"), params);
        let hidden = rows.await?.into_iter();
        let hidden: Vec<u64> = hidden
            .map(|row| row.get::<_, i64>("xid").cast_unsigned())
            .collect();
        if hidden.is_empty() {
            break;
        }
        end.hide(&hidden);
        end = end.within(CURSOR_MAX_WRITERS);
    }
    Ok(end)
}

async fn read(
    session: Session<'_>,
    position: &StreamPosition,
    first_event: i64,
    workspace: Option<WorkspaceId>,
    limit: i64,
) -> Result<Scan> {
    let Some(from) = &position.from else {
        return read_history(session, position, first_event, workspace, limit).await;
    };
    let (from, until) = (from.to_string(), position.until.to_string());
    let workspace = workspace.map(|id| id.0);
    let params: &Params<'_> = &[&from, &until, &position.event, &limit, &workspace];
    Ok(Scan {
        rows: session.many(sql!("change/window"), params).await?,
        stopped_at: None,
    })
}

/// Reads the events of the history, as far as one call may scan. Those before `first_event` have transaction numbers of another cluster.
async fn read_history(
    session: Session<'_>,
    position: &StreamPosition,
    first_event: i64,
    workspace: Option<WorkspaceId>,
    limit: i64,
) -> Result<Scan> {
    let until = position.until.to_string();
    let (request, event) = (&position.request, &position.event);
    let scan = i64::from(CHANGE_SCAN_MAX);
    let own = workspace.map(|id| id.0).unwrap_or_default();
    let of_all: &Params<'_> = &[&until, request, event, &limit, &scan, &first_event];
    let of_one: &Params<'_> = &[&until, request, event, &limit, &scan, &first_event, &own];
    let rows = match workspace {
        None => session.many(sql!("change/history"), of_all).await?,
        Some(_) => {
            let statement = sql!("change/history_of_workspace");
            session.many(statement, of_one).await?
        }
    };
    let mut stopped_at = None;
    if i64::try_from(rows.len()).is_ok_and(|n| n < limit) {
        let of_all: &Params<'_> = &[request, event, &scan];
        let of_one: &Params<'_> = &[request, event, &scan, &own];
        let end = match workspace {
            None => session.maybe(sql!("change/history_end"), of_all),
            Some(_) => {
                let statement = sql!("change/history_end_of_workspace");
                session.maybe(statement, of_one)
            }
        };
        let end = end.await?;
        stopped_at = end.map(|row| position.after(row.get("request_id"), row.get("id")));
    }
    Ok(Scan { rows, stopped_at })
}
