//! The migration that adds owners to queues: existing queues are shared with the workspaces whose graphs name them.
#![allow(clippy::unwrap_used)]

use leasehold_core::Plan;
use leasehold_store::queue::{QueueStore, SharedWith};
use leasehold_store::{MigrationState, SchemaStore};
use leasehold_store_sqlite::{SqliteOptions, SqliteStore, migration_script};
use leasehold_testbed::{create_definition, create_workspace};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// The migration under test.
const NUMBER: u32 = 17;
const PUBLISH_BEFORE: &str = include_str!("../sql/version/create.sql");
const QUEUE_BEFORE: &str = include_str!("sql/queue_owner_queue.sql");

fn graph(queues: &[&str]) -> Value {
    let node = |(n, queue): (usize, &&str)| {
        let id = n.to_string();
        json!({"id": id, "type": "task", "queue": queue})
    };
    let nodes: Vec<Value> = queues.iter().enumerate().map(node).collect();
    json!({"graph": {"nodes": nodes, "edges": []}})
}

#[tokio::test]
async fn existing_queues_are_shared_with_the_workspaces_whose_graphs_name_them() {
    let dir = leasehold_testkit::temp_dir();
    let file = dir.path().join("leasehold.db");
    let store = SqliteStore::open(&file, &SqliteOptions::default()).unwrap();
    let mut status = store.schema_status().await.unwrap();
    // Later migrations do not depend on it, and the store needs them.
    for step in status.iter_mut().filter(|step| step.number == NUMBER) {
        step.state = MigrationState::Applied;
    }
    let connection = Connection::open(&file).unwrap();
    connection
        .execute_batch(&migration_script(&status))
        .unwrap();
    let mut names = Vec::new();
    let bodies = [
        graph(&["mail", "unused", "mail"]),
        graph(&["mail"]),
        json!({"binding": {"workflow_type": "Order", "task_queue": "mail"}}),
    ];
    for body in bodies {
        let workspace = create_workspace(&store, Plan::Free, None).await;
        let definition = create_definition(&store, workspace.id, "order").await;
        for number in 1..=2 {
            let id: leasehold_core::VersionId = leasehold_store::fresh_id();
            let (id, of) = (id.0.into_bytes(), workspace.id.0.into_bytes());
            let definition = definition.0.into_bytes();
            let none: Option<i64> = None;
            let row = params![id, of, definition, number, body.to_string(), none, none, 1];
            let mut insert = connection.prepare(PUBLISH_BEFORE).unwrap();
            insert.query_row(row, |_| Ok(())).unwrap();
        }
        names.push(workspace.name);
    }
    for queue in ["mail", "other"] {
        connection.execute(QUEUE_BEFORE, [queue]).unwrap();
    }
    store.schema_migrate().await.unwrap();
    let queues = ["mail", "other", "unused"].map(str::to_owned);
    let found = store.queue_ownership(&queues).await.unwrap();
    let mut both = names[..2].to_vec();
    both.sort_unstable();
    let expected = [both, Vec::new(), vec![names[0].clone()]];
    for ((found, queue), expected) in found.into_iter().zip(queues).zip(expected) {
        assert_eq!((found.queue, found.owner), (queue, None));
        assert_eq!(found.shared_with, SharedWith::Workspaces(expected));
    }
}
