//! A synthetic next version of the program: this one in the process of the test, with migrations and functions that the test applies. It is not stopped
//! when the schema is too new for this program, because the schema is its own.

use crate::TIMEOUT;
use leasehold_core::{Timestamp, VersionBody};
use leasehold_engine_embedded::{EmbeddedEngine, EmbeddedOptions, NodeRunner, NodeRunnerOptions};
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_runtime::{
    DispatchMode, Runtime, RuntimeOptions, StoreSource, TimeoutSweeperOptions,
};
use leasehold_store::Store;
use leasehold_store_postgres::MIGRATIONS;
use leasehold_testbed::{TestWorkspace, WorkspaceOptions, postgres};
use leasehold_testkit::{TestDatabase, eventually};
use leasehold_worker::{JobContext, JobError, Worker, WorkerHandle};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

const OWNER: &str = "next-program";
const QUEUE: &str = "tasks";

/// Its services, its workers, and a connection for what its migrations do.
pub(crate) struct NextProgram {
    pub(crate) store: Arc<dyn Store>,
    sql: Client,
    runtime: Runtime,
    nodes: NodeRunner,
    workers: WorkerHandle,
}

impl NextProgram {
    pub(crate) async fn start(database: &TestDatabase) -> Self {
        let store = postgres::store(database.url());
        let url = database.url_in("leasehold");
        let (sql, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let source = Arc::new(StoreSource::new(store.clone()));
        let outbound = Outbound::new(OutboundOptions::default()).unwrap();
        let nodes = NodeRunner::start(source.clone(), outbound, &NodeRunnerOptions::default());
        let engine = EmbeddedEngine::new(store.clone(), EmbeddedOptions::new(OWNER));
        let mut options = RuntimeOptions {
            timeout_sweeper: Some(TimeoutSweeperOptions::default()),
            ..RuntimeOptions::new(OWNER)
        };
        options.dispatcher.mode = DispatchMode::Parallel;
        let workers = Worker::builder(source)
            .queue(QUEUE)
            .lease(Duration::from_secs(60))
            .handler("work", async |task: Value, _: JobContext| {
                Ok(task["input"].clone())
            })
            .handler("fail", async |_: Value, _: JobContext| {
                Err::<Value, _>(JobError::permanent("told to fail"))
            })
            .build()
            .unwrap();
        Self {
            runtime: Runtime::start(store.clone(), Some(Arc::new(engine)), options),
            nodes: nodes.unwrap(),
            workers: workers.start(),
            store,
            sql,
        }
    }

    /// Creates a workspace with a graph: a task of this kind, a delay and another task.
    pub(crate) async fn workspace(&self, kind: &str) -> TestWorkspace {
        let task = |id: &str, kind: &str| json!({"id": id, "type": "task", "queue": QUEUE, "kind": kind, "input": id});
        let graph = json!({
            "nodes": [task("a", kind), {"id": "b", "type": "delay", "milliseconds": 20}, task("c", "work")],
            "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
        });
        let options = WorkspaceOptions {
            limit: Some(1_000),
            body: VersionBody::Graph(serde_json::from_value(graph).unwrap()),
            ..WorkspaceOptions::default()
        };
        TestWorkspace::with(&*self.store, options).await
    }

    /// Adds a column to every table, one after the other, and applies the next release of every function.
    pub(crate) async fn migrate_compatibly(&self) {
        let tables = self.sql.query(include_str!("sql/next_tables.sql"), &[]);
        for row in tables.await.unwrap() {
            let add = include_str!("sql/next_column.sql").replace("{table}", row.get("name"));
            self.sql.batch_execute(&add).await.unwrap();
        }
        let functions = include_str!("sql/next_functions.sql");
        self.sql.batch_execute(functions).await.unwrap();
        let last = MIGRATIONS.last().unwrap().number;
        self.record(last + 1, last).await;
    }

    /// Records a migration that only programs with this migration can use. Returns when, by the database's clock.
    pub(crate) async fn migrate_incompatibly(&self) -> Timestamp {
        let number = MIGRATIONS.last().unwrap().number + 2;
        self.record(number, number).await
    }

    async fn record(&self, number: u32, compatible_from: u32) -> Timestamp {
        let record = include_str!("sql/next_migration.sql");
        let (number, needed) = (number.cast_signed(), compatible_from.cast_signed());
        let row = self.sql.query_one(record, &[&number, &needed]).await;
        let micros: i64 = row.unwrap().get("applied_us");
        Timestamp::from_microsecond(micros).unwrap()
    }

    /// Fails a request with a reason that only the next program knows.
    pub(crate) async fn fail_with_new_reason(&self) -> (TestWorkspace, leasehold_core::RequestId) {
        let workspace = self.workspace("fail").await;
        let request = workspace
            .enqueue(&*self.store, vec![workspace.request()])
            .await[0];
        let failed = async || workspace.counts(&*self.store).await.failed == 1;
        assert!(eventually(TIMEOUT, failed).await, "it did not fail");
        let update = include_str!("sql/next_reason.sql");
        assert_eq!(self.sql.execute(update, &[&request.0]).await.unwrap(), 1);
        (workspace, request)
    }

    /// The name, the body and the recorded release of every function.
    pub(crate) async fn functions(&self) -> Vec<(String, String, i32)> {
        let rows = self.sql.query(include_str!("sql/next_bodies.sql"), &[]);
        let rows = rows.await.unwrap();
        rows.iter()
            .map(|row| (row.get("name"), row.get("body"), row.get("release")))
            .collect()
    }

    /// Counts the requests that instances with this in their name have dispatched.
    pub(crate) async fn dispatched_by(&self, name: &str) -> i64 {
        let count = include_str!("sql/dispatched_by.sql");
        self.sql.query_one(count, &[&name]).await.unwrap().get(0)
    }

    pub(crate) async fn stop(self) {
        self.workers.stop().await;
        self.nodes.stop().await;
        self.runtime.stop().await;
    }
}
