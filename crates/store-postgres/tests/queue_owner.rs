//! Owners of queues: a workspace is deleted while it publishes.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::Plan;
use leasehold_core::queue_access::Publisher;
use leasehold_store::definition::{DefinitionStore, NewVersion};
use leasehold_store::workspace::WorkspaceStore;
use leasehold_store::{Actor, fresh_id};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testbed::{create_definition, create_workspace};
use serde_json::{Value, json};
use support::raw::connect;

fn graph(queues: &[&str]) -> Value {
    let node = |(n, queue): (usize, &&str)| {
        let id = n.to_string();
        json!({"id": id, "type": "task", "queue": queue})
    };
    let nodes: Vec<Value> = queues.iter().enumerate().map(node).collect();
    json!({"graph": {"nodes": nodes, "edges": []}})
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
