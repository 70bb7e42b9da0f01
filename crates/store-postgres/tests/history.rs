//! The stress run on PostgreSQL, and a check of its history, commit by commit.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::{RequestId, RequestStatus, Timestamp, WorkspaceId};
use leasehold_store::change::Event;
use leasehold_store_conformance::history::{
    History, HistoryBuilder, HistoryChange, RecordedEvent, check,
};
use leasehold_store_conformance::{Fixture, clock, stress};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{TestDatabase, sized};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use tokio_postgres::{Client, Row};

/// A snapshot as PostgreSQL prints it: `xmin:xmax:xip,…`.
struct Snapshot {
    xmax: i64,
    open: HashSet<i64>,
}

impl Snapshot {
    fn parse(text: &str) -> Self {
        let parts: Vec<&str> = text.split(':').collect();
        let open = parts[2]
            .split(',')
            .filter(|p| !p.is_empty())
            .map(|p| p.parse().unwrap());
        Self {
            xmax: parts[1].parse().unwrap(),
            open: open.collect(),
        }
    }

    fn sees(&self, xid: i64) -> bool {
        xid < self.xmax && !self.open.contains(&xid)
    }
}

/// The changes of one transaction.
#[derive(Default)]
struct Group {
    xid: i64,
    seen: Option<String>,
    limits: Vec<HistoryChange>,
    events: Vec<RecordedEvent>,
}

fn status(row: &Row, column: &str) -> Option<RequestStatus> {
    row.get::<_, Option<&str>>(column)
        .map(|name| name.parse().unwrap())
}

fn read(row: &Row) -> RecordedEvent {
    RecordedEvent {
        event: Event {
            request: RequestId(row.get("request_id")),
            workspace: WorkspaceId(row.get("workspace_id")),
            from: status(row, "from_status").map(Into::into),
            to: status(row, "to_status").unwrap().into(),
            at: row.get("at"),
            by: row.get("by_whom"),
            reason: row.get("reason"),
        },
        priority: row.get("priority"),
        created_at: row.get("created_at"),
        due: row.get("due"),
    }
}

/// Reads the transactions in commit order.
async fn groups(client: &Client) -> Vec<Group> {
    let mut found: BTreeMap<(Timestamp, i64), Group> = BTreeMap::new();
    for row in client
        .query(include_str!("sql/history_limits.sql"), &[])
        .await
        .unwrap()
    {
        let xid = row.get("xid");
        let workspace = WorkspaceId(row.get("workspace_id"));
        let limit = row.get::<_, i32>("concurrency_limit").unsigned_abs();
        let group = found.entry((row.get("committed_at"), xid)).or_default();
        group.xid = xid;
        group.limits.push(HistoryChange::Limit { workspace, limit });
        group.limits.push(HistoryChange::Paused {
            workspace,
            paused: row.get("paused"),
        });
    }
    for row in client
        .query(include_str!("sql/history_events.sql"), &[])
        .await
        .unwrap()
    {
        let xid = row.get("xid");
        let group = found.entry((row.get("committed_at"), xid)).or_default();
        group.xid = xid;
        group.seen = row.get("seen");
        group.events.push(read(&row));
    }
    found.into_values().collect()
}

async fn history(client: &Client) -> History {
    let groups = groups(client).await;
    let mut reader = HistoryBuilder::default();
    let mut xids: Vec<i64> = Vec::new();
    for group in groups {
        let claims = group
            .events
            .iter()
            .any(|read| read.event.to == RequestStatus::Claimed);
        let seen = match &group.seen {
            Some(text) if claims => {
                let snapshot = Snapshot::parse(text);
                xids.iter()
                    .position(|xid| !snapshot.sees(*xid))
                    .unwrap_or(xids.len()) as u64
            }
            _ => xids.len() as u64,
        };
        let mut changes = group.limits;
        changes.extend(group.events.into_iter().map(|read| reader.moved(read)));
        reader.commit(seen, changes);
        xids.push(group.xid);
    }
    let left = client
        .query(include_str!("sql/history_left.sql"), &[])
        .await
        .unwrap();
    reader.end(
        left.iter()
            .map(|row| (RequestId(row.get("id")), status(row, "status").unwrap()))
            .collect(),
    )
}

async fn stress_run_on(database: &TestDatabase, size: stress::Size) -> Client {
    let client = support::raw::connect(database).await;
    client
        .batch_execute(include_str!("sql/history_setup.sql"))
        .await
        .unwrap();
    let options = PostgresOptions {
        max_connections: size.claimers + 4,
        ..PostgresOptions::new(database.url())
    };
    let store = PostgresStore::new(&options).unwrap();
    stress::run(&Fixture::new(Arc::new(store), clock()), size).await;
    client
}

/// Eight claimers, workspaces of all plans, thousands of requests, executions that end at random, plans that change and
/// leases that expire: at every commit the limit in force was kept, nothing was claimed twice or lost, and the best
/// request that a claim could see was admitted first.
#[tokio::test(flavor = "multi_thread")]
async fn every_commit_of_a_stress_run_keeps_the_guarantees() {
    let database = support::database().await;
    let size = stress::Size {
        workspaces: sized(40, 200),
        requests: sized(4_000, 20_000),
        claimers: 8,
    };
    let client = stress_run_on(&database, size).await;
    let history = history(&client).await;
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
