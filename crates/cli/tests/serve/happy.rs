//! The way of fifteen requests when nothing goes wrong, on both stores.

use crate::life::{self, REQUESTS};
use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::Namespace;
use crate::{PATIENCE, blocking, database};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_runtime::{Runtime, RuntimeOptions};
use leasehold_store::SchemaStore;
use leasehold_store_sqlite::{SqliteOptions, SqliteStore};
use leasehold_testkit::temp_dir;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn fifteen_requests_are_claimed_as_ten_and_five_and_followed_to_every_kind_of_end() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    let mut serve = Program::new(database.url(), namespace.address(), &namespace.name)
        .set("dispatch.batch_size", "10")
        .set("log.level", "debug")
        // So that only following can have seen an end.
        .set("sweep.interval", "1h")
        .start();
    let site = OrderWorkspace::new(database::store(database.url()), 100).await;
    let all = life::enqueue(&site).await;

    life::assert_started(&site, &namespace, &all).await;
    let claims: Vec<String> = serve
        .lines()
        .iter()
        .filter_map(|line| line.split_once("Processing ").map(|(_, rest)| rest))
        .filter_map(|rest| rest.split_once(" queue items").map(|(n, _)| n.to_owned()))
        .collect();
    assert_eq!(claims, ["10", "5"]);

    life::end(&site, &namespace, &all).await;
    let ended = life::assert_ended(&site, &namespace, &all).await;
    let seen_after = ended.iter().map(|(request, run)| {
        let seen = request.finished_at.unwrap();
        seen.duration_since(run.close_time.unwrap()).as_millis()
    });
    println!("the latest end was seen {:?} ms after it", seen_after.max());
    program::stop(&mut serve);
}

#[tokio::test(flavor = "multi_thread")]
async fn fifteen_requests_go_the_same_way_on_sqlite() {
    let folder = temp_dir();
    let path = folder.path().join("leasehold.db");
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
    options.sweeper.interval = Duration::from_secs(3600);
    let runtime = Runtime::start(store.clone(), Some(Arc::new(engine.unwrap())), options);
    let site = OrderWorkspace::new(store, 100).await;
    let all = life::enqueue(&site).await;
    assert_eq!(all.len(), REQUESTS);

    life::assert_started(&site, &namespace, &all).await;
    life::end(&site, &namespace, &all).await;
    life::assert_ended(&site, &namespace, &all).await;
    runtime.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_on_a_sqlite_file_starts_says_so_and_stops() {
    let folder = temp_dir();
    let url = format!("sqlite:{}/new/leasehold.db", folder.path().display());
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
    let status = blocking(|| second.wait(PATIENCE));
    assert_eq!(status.code(), Some(8));
    assert!(serve.is_running());
    program::stop(&mut serve);
    assert!(program::lines(&serve, "stopped") > 0);
}
