//! The change stream in PostgreSQL. A position in it is a pair of snapshots, so that events that commit late are not missed.

use crate::row;
use crate::store::{Params, PostgresStore, sql};
use crate::stream_position::{Snapshot, StreamId, StreamPosition};
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
        let StreamEnd { stream, snapshot } = stream_end(self).await?;
        let mut position = match start {
            ChangeStart::Oldest => StreamPosition::at(stream, None, snapshot.clone()),
            ChangeStart::Now => {
                StreamPosition::at(stream, Some(snapshot.clone()), snapshot.clone())
            }
            ChangeStart::After(cursor) => StreamPosition::parse(cursor)
                .filter(|position| {
                    position.stream == stream && position.until.xmax() <= snapshot.xmax()
                })
                .ok_or_else(|| {
                    let problem =
                        "the cursor does not belong to this stream; start again without a cursor";
                    Error::new(CONTEXT, ErrorKind::Value(problem.to_owned()))
                })?,
        };
        let limit = i64::from(limit.clamp(1, PAGE_MAX));
        let mut rows = read(self, &position, workspace, limit).await?;
        if rows.is_empty() {
            position = StreamPosition::at(stream, Some(position.until), snapshot);
            rows = read(self, &position, workspace, limit).await?;
        }
        let full = i64::try_from(rows.len()).is_ok_and(|n| n >= limit);
        let changes: Vec<Change> = rows
            .iter()
            .map(|row| change(&position, row))
            .collect::<Result<_>>()?;
        let cursor = match changes.last() {
            Some(last) if full => last.cursor.clone(),
            // No more events of this filter are between the two snapshots: continue after them.
            _ => StreamPosition::at(stream, Some(position.until.clone()), position.until).cursor(),
        };
        Ok(ChangePage { changes, cursor })
    }
}

/// The stream and its current end.
struct StreamEnd {
    stream: StreamId,
    snapshot: Snapshot,
}

async fn stream_end(store: &PostgresStore) -> Result<StreamEnd> {
    let row = store.one(CONTEXT, sql!("change/now"), &[]).await?;
    let text: &str = row.get("snapshot");
    let malformed = || ErrorKind::Broken(format!("cannot parse PostgreSQL's snapshot `{text}`"));
    Ok(StreamEnd {
        stream: StreamId {
            cluster: row.get::<_, i64>("cluster").cast_unsigned(),
            database: row.get("database"),
        },
        snapshot: Snapshot::parse(text).ok_or_else(|| Error::new(CONTEXT, malformed()))?,
    })
}

fn change(position: &StreamPosition, row: &Row) -> Result<Change> {
    let position = StreamPosition {
        request: row.get("request_id"),
        event: row.get("id"),
        ..position.clone()
    };
    Ok(Change {
        event: row::event(row)?,
        cursor: position.cursor(),
    })
}

async fn read(
    store: &PostgresStore,
    position: &StreamPosition,
    workspace: Option<WorkspaceId>,
    limit: i64,
) -> Result<Vec<Row>> {
    let until = position.until.to_string();
    let workspace = workspace.map(|id| id.0);
    let (request, event) = (&position.request, &position.event);
    match (&position.from, &workspace) {
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
