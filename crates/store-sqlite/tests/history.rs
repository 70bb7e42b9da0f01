//! The stress test on SQLite: checks the invariants of every committed event in its history.
#![allow(clippy::unwrap_used)]

use leasehold_core::{RequestId, RequestStatus, Timestamp, WorkspaceId};
use leasehold_store::SchemaStore;
use leasehold_store::change::Event;
use leasehold_store_conformance::history::{
    History, HistoryBuilder, HistoryChange, RecordedEvent, check,
};
use leasehold_store_conformance::{Fixture, clock, stress};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::sized;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

fn id(row: &Row<'_>, column: &str) -> Uuid {
    Uuid::from_bytes(row.get(column).unwrap())
}

fn time(row: &Row<'_>, column: &str) -> Timestamp {
    Timestamp::from_microsecond(row.get(column).unwrap()).unwrap()
}

fn status(row: &Row<'_>, column: &str) -> Option<RequestStatus> {
    row.get::<_, Option<String>>(column)
        .unwrap()
        .map(|name| name.parse().unwrap())
}

fn rows<T>(connection: &Connection, sql: &str, read: impl Fn(&Row<'_>) -> T) -> Vec<T> {
    let mut statement = connection.prepare(sql).unwrap();
    let found = statement.query_map([], |row| Ok(read(row))).unwrap();
    found.map(Result::unwrap).collect()
}

fn event(row: &Row<'_>) -> (i64, RecordedEvent) {
    let read = RecordedEvent {
        event: Event {
            request: RequestId(id(row, "request_id")),
            workspace: WorkspaceId(id(row, "workspace_id")),
            from: status(row, "from_status").map(Into::into),
            to: status(row, "to_status").unwrap().into(),
            at: time(row, "at"),
            by: row.get("by_whom").unwrap(),
            reason: row.get("reason").unwrap(),
        },
        priority: row.get("priority").unwrap(),
        created_at: time(row, "created_at"),
        // The stress test schedules nothing, so every PENDING request is in the line.
        due: true,
    };
    (row.get("id").unwrap(), read)
}

fn limit(row: &Row<'_>) -> (i64, [HistoryChange; 2]) {
    let workspace = WorkspaceId(id(row, "workspace_id"));
    let changes = [
        HistoryChange::Limit {
            workspace,
            limit: row.get("concurrency_limit").unwrap(),
        },
        HistoryChange::Paused {
            workspace,
            paused: row.get("paused").unwrap(),
        },
    ];
    (row.get("after_event").unwrap(), changes)
}

/// Reads the history with one commit for each event, which is stricter than the actual group commits.
fn history(connection: &Connection) -> History {
    let mut reader = HistoryBuilder::default();
    let mut limits = rows(connection, include_str!("sql/history_limits.sql"), limit)
        .into_iter()
        .peekable();
    for (event, read) in rows(connection, include_str!("sql/history_events.sql"), event) {
        while let Some((_, changes)) = limits.next_if(|(after, _)| *after < event) {
            reader.commit(reader.next_position() - 1, changes.to_vec());
        }
        let change = reader.moved(read);
        reader.commit(reader.next_position() - 1, vec![change]);
    }
    let left = rows(connection, include_str!("sql/history_left.sql"), |row| {
        (RequestId(id(row, "id")), status(row, "status").unwrap())
    });
    reader.end(left.into_iter().collect::<BTreeMap<_, _>>())
}

/// The same stress test as on PostgreSQL: eight claimers, 200 workspaces of all plans, 20,000 requests.
#[tokio::test(flavor = "multi_thread")]
async fn every_commit_of_the_stress_test_keeps_the_invariants() {
    let dir = leasehold_testkit::temp_dir();
    let file = dir.path().join("leasehold.db");
    let store = SqliteStore::open(&file, &SqliteOptions::default()).unwrap();
    store.schema_migrate().await.unwrap();
    let connection = Connection::open(&file).unwrap();
    connection
        .execute_batch(include_str!("sql/history_setup.sql"))
        .unwrap();
    let size = stress::Size {
        workspaces: sized(40, 200),
        requests: sized(4_000, 20_000),
        claimers: 8,
    };
    stress::run(&Fixture::new(Arc::new(store), clock()), size).await;
    let history = history(&connection);
    assert_eq!(history.left.len(), size.requests);
    assert!(
        history.left.values().all(|status| status.is_finished()),
        "everything has ended"
    );
    match check(&history) {
        Ok(summary) => assert!(
            summary.full > size.requests / 20,
            "limits were hardly reached: {summary:?}"
        ),
        Err(violations) => {
            let first = &violations[..violations.len().min(5)];
            panic!("{} violations, the first: {first:#?}", violations.len())
        }
    }
}
