//! The stream of changes in PostgreSQL. A place in it is a pair of snapshots, so that what commits late is not missed.

use crate::place::{Place, Snapshot, Stream};
use crate::row;
use crate::store::{Params, PostgresStore, sql};
use async_trait::async_trait;
use leasehold_core::WorkspaceId;
use leasehold_core::limits::PAGE_MAX;
use leasehold_store::change::{Change, ChangePage, ChangeStart, ChangeStore};
use leasehold_store::{Error, ErrorKind, Result};
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
        let Now { stream, snapshot } = now(self).await?;
        let mut place = match start {
            ChangeStart::Oldest => Place::at(stream, None, snapshot.clone()),
            ChangeStart::Now => Place::at(stream, Some(snapshot.clone()), snapshot.clone()),
            ChangeStart::After(cursor) => Place::parse(cursor)
                .filter(|place| place.stream == stream && place.until.xmax() <= snapshot.xmax())
                .ok_or_else(|| {
                    let problem = "the cursor is not one of this stream";
                    Error::new(CONTEXT, ErrorKind::Value(problem.to_owned()))
                })?,
        };
        let limit = i64::from(limit.clamp(1, PAGE_MAX));
        let mut rows = read(self, &place, workspace, limit).await?;
        if rows.is_empty() {
            place = Place::at(stream, Some(place.until), snapshot);
            rows = read(self, &place, workspace, limit).await?;
        }
        let full = i64::try_from(rows.len()).is_ok_and(|n| n >= limit);
        let changes: Vec<Change> = rows
            .iter()
            .map(|row| change(&place, row))
            .collect::<Result<_>>()?;
        let cursor = match changes.last() {
            Some(last) if full => last.cursor.clone(),
            // There is no more between these two snapshots, of the workspace that was asked for: on behind them.
            _ => Place::at(stream, Some(place.until.clone()), place.until).cursor(),
        };
        Ok(ChangePage { changes, cursor })
    }
}

/// The stream and its present end.
struct Now {
    stream: Stream,
    snapshot: Snapshot,
}

async fn now(store: &PostgresStore) -> Result<Now> {
    let row = store.one(CONTEXT, sql!("change/now"), &[]).await?;
    let text: &str = row.get("snapshot");
    let strange = || ErrorKind::Broken(format!("PostgreSQL's snapshot `{text}` cannot be read"));
    Ok(Now {
        stream: Stream {
            cluster: row.get::<_, i64>("cluster").cast_unsigned(),
            database: row.get("database"),
        },
        snapshot: Snapshot::parse(text).ok_or_else(|| Error::new(CONTEXT, strange()))?,
    })
}

fn change(place: &Place, row: &Row) -> Result<Change> {
    let place = Place {
        request: row.get("request_id"),
        event: row.get("id"),
        ..place.clone()
    };
    Ok(Change {
        event: row::event(row)?,
        cursor: place.cursor(),
    })
}

async fn read(
    store: &PostgresStore,
    place: &Place,
    workspace: Option<WorkspaceId>,
    limit: i64,
) -> Result<Vec<Row>> {
    let until = place.until.to_string();
    let workspace = workspace.map(|id| id.0);
    let (request, event) = (&place.request, &place.event);
    match (&place.from, &workspace) {
        (None, None) => {
            let params: &Params<'_> = &[&until, request, event, &limit];
            store.many(CONTEXT, sql!("change/history"), params).await
        }
        (None, Some(own)) => {
            let params: &Params<'_> = &[&until, request, event, &limit, own];
            let statement = sql!("change/history_of_workspace");
            store.many(CONTEXT, statement, params).await
        }
        (Some(from), own) => {
            let from = from.to_string();
            let params: &Params<'_> = &[&from, &until, event, &limit, own];
            store.many(CONTEXT, sql!("change/window"), params).await
        }
    }
}
