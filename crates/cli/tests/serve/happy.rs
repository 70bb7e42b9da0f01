//! Fifteen requests without faults, on both stores.

use crate::life::{self, REQUESTS};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{TIMEOUT, blocking, database};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_store::SchemaStore;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::temp_dir;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn fifteen_requests_are_claimed_in_batches_and_reconciled() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let mut serve = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("dispatch.batch_size", "10")
        .set("log.level", "debug")
        // Only the reconciler can find finished executions.
        .set("sweep.interval", "1h")
        .start();
    let workspace = OrderWorkspace::new(database::store(database.url()), 100).await;
    let all = life::enqueue(&workspace).await;

    life::assert_started(&workspace, &namespace, &all).await;
    let claims: Vec<String> = serve
        .lines()
        .iter()
        .filter_map(|line| line.split_once("Processing ").map(|(_, rest)| rest))
        .filter_map(|rest| rest.split_once(" queue items").map(|(n, _)| n.to_owned()))
        .collect();
    assert_eq!(claims, ["10", "5"]);

    life::end(&workspace, &namespace, &all).await;
    let ended = life::assert_ended(&workspace, &namespace, &all).await;
    let seen_after = ended.iter().map(|(request, run)| {
        let seen = request.finished_at.unwrap();
        seen.duration_since(run.close_time.unwrap()).as_millis()
    });
    println!("the slowest reconciliation took {:?} ms", seen_after.max());
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn fifteen_requests_on_sqlite() {
    let dir = temp_dir();
    let path = dir.path().join("leasehold.db");
    let store = Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
    store.schema_migrate().await.unwrap();
    let namespace = Namespace::fresh();
    let engine = TemporalEngine::new(TemporalOptions {
        address: namespace.address().to_owned(),
        namespace: namespace.name.clone(),
        ..TemporalOptions::default()
    });
    let mut options = RuntimeOptions::new("in process");
    options.dispatcher.batch_size = 10;
    options.full_sweep.interval = Duration::from_secs(3600);
    let runtime = Runtime::start(store.clone(), Some(Arc::new(engine.unwrap())), options);
    let workspace = OrderWorkspace::new(store, 100).await;
    let all = life::enqueue(&workspace).await;
    assert_eq!(all.len(), REQUESTS);

    life::assert_started(&workspace, &namespace, &all).await;
    life::end(&workspace, &namespace, &all).await;
    life::assert_ended(&workspace, &namespace, &all).await;
    runtime.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_on_a_sqlite_file_starts_and_stops() {
    let dir = temp_dir();
    let url = format!("sqlite:{}/new/leasehold.db", dir.path().display());
    let namespace = Namespace::fresh();
    let program = Program::temporal()
        .flag("--store")
        .flag(&url)
        .flag("--temporal-address")
        .flag(namespace.address())
        .flag("--temporal-namespace")
        .flag(&namespace.name);
    let mut serve = program.start();
    let line = serve.lines().join("\n");
    assert!(line.contains(&url), "{line}");
    assert!(line.contains(&namespace.name), "{line}");

    // One process owns the file.
    let mut second = program.spawn();
    let status = blocking(|| second.wait(TIMEOUT));
    assert_eq!(status.code(), Some(8));
    assert!(serve.is_running());
    program::stop(&mut serve);
    assert!(program::lines(&serve, "stopped") > 0);
}
