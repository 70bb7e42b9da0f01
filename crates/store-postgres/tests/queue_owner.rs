//! The migration that adds owners to queues: existing queues are shared with the workspaces whose graphs name them. Publishing and deleting concurrently.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::queue_access::Publisher;
use leasehold_core::{Plan, WorkspaceId};
use leasehold_store::definition::{DefinitionStore, NewVersion};
use leasehold_store::queue::{QueueStore, SharedWith};
use leasehold_store::workspace::WorkspaceStore;
use leasehold_store::{Actor, MigrationState, SchemaStore, StepKind, fresh_id};
use leasehold_store_postgres::{PostgresOptions, PostgresStore, migration_script};
use leasehold_testbed::{create_definition, create_workspace};
use leasehold_testkit::TestPostgres;
use serde_json::{Value, json};
use support::raw::connect;

/// The migration under test.
const NUMBER: u32 = 17;
const PUBLISH_BEFORE: &str = include_str!("sql/queue_owner_version.sql");
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
    let database = TestPostgres::shared().fresh_database(None).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let mut status = store.schema_status().await.unwrap();
    for step in &mut status {
        // Later migrations do not depend on it, and the SQL functions and the store need them.
        if step.kind == StepKind::Migration && step.number == NUMBER {
            step.state = MigrationState::Applied;
        }
    }
    let client = connect(&database).await;
    let script = migration_script(&status);
    client.batch_execute(&script).await.unwrap();
    let mut names = Vec::new();
    let bodies = [
        graph(&["mail", "unused", "mail"]),
        graph(&["mail"]),
        json!({"binding": {"workflow_type": "Order", "task_queue": "mail"}}),
    ];
    for body in bodies {
        let workspace = create_workspace(&store, Plan::Free, None).await;
        let definition = create_definition(&store, workspace.id, "order").await;
        for _ in 0..2 {
            let id: WorkspaceId = fresh_id();
            let row: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&id.0, &workspace.id.0, &definition.0, &body];
            client.execute(PUBLISH_BEFORE, &row).await.unwrap();
        }
        names.push(workspace.name);
    }
    for queue in ["mail", "other"] {
        client.execute(QUEUE_BEFORE, &[&queue]).await.unwrap();
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

#[tokio::test]
async fn workspace_deleted_during_a_publish_owns_no_queue() {
    let database = support::database().await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    let client = connect(&database).await;
    for round in 0..20 {
        let workspace = create_workspace(&store, Plan::Free, None).await.id;
        let definition = create_definition(&store, workspace, "order").await;
        let new = NewVersion {
            id: fresh_id(),
            workspace,
            definition,
            body: serde_json::from_value(graph(&[&format!("q{round}")])).unwrap(),
            params_schema: None,
            execution_timeout: None,
            publisher: Publisher::Workspace,
        };
        let by = Actor::Local;
        let (published, deleted) = tokio::join!(
            store.version_publish(&new, &by),
            store.workspace_delete(workspace, &by)
        );
        published.unwrap();
        assert!(deleted.unwrap());
        let owned = include_str!("sql/queue_owner_count.sql");
        let row = client.query_one(owned, &[&workspace.0]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 0);
    }
}
