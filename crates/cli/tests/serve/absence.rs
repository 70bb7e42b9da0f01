//! A Temporal outage while requests keep arriving. Its name sorts first, so that it runs beside all others.

use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::{self, Namespace};
use crate::{TIMEOUT, blocking, database};
use leasehold_core::Timestamp;
use leasehold_testkit::{DevServerOptions, TestTemporal, sized};
use serde_json::json;
use std::time::Duration;
use tokio::time::interval;

const PACE: Duration = Duration::from_millis(250);

/// Enqueues at a constant rate for `length` on the database's clock. Returns the start time.
async fn load(workspace: &OrderWorkspace, length: Duration) -> Timestamp {
    let mut pace = interval(PACE);
    let mut started = None;
    loop {
        pace.tick().await;
        let id = workspace.enqueue(json!({"do": "wait"})).await;
        let now = workspace.get(id).await.created_at;
        let started = *started.get_or_insert(now);
        if now.duration_since(started) >= length.try_into().unwrap() {
            return started;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn temporal_outage_fails_no_request() {
    let database = database::fresh().await;
    let mut server =
        blocking(|| TestTemporal::start(DevServerOptions::default().on_file())).unwrap();
    let mut serve = Program::new(database.url(), server.address(), "default").start();
    let pid = serve.pid();
    let workspace = OrderWorkspace::new(database::store(database.url()), 100_000).await;
    load(&workspace, Duration::from_secs(3)).await;
    workspace
        .until("dispatched before", |counts| {
            counts.pending + counts.claimed == 0
        })
        .await;
    let before = workspace.counts().await.dispatched;

    blocking(|| server.stop()).unwrap();
    load(&workspace, Duration::from_secs(sized(10, 120))).await;
    program::wait_for_lines(&serve, "engine unavailable; dispatch paused", 1).await;
    let counts = workspace.counts().await;
    assert_eq!(counts.dispatched, before, "{counts:?}");
    assert_eq!(counts.failed, 0, "{counts:?}");

    blocking(|| server.start_again()).unwrap();
    let back = load(&workspace, Duration::from_secs(3)).await;
    let all = |counts: &leasehold_store::request::Counts| counts.pending + counts.claimed == 0;
    workspace
        .until_for(TIMEOUT * 2, "dispatched after", all)
        .await;

    let requests = workspace.all().await;
    assert!(requests.len() as u64 > before);
    for request in &requests {
        assert_eq!(request.dispatch_failures, 0, "{request:?}");
        assert!(request.dispatched_at.is_some(), "{request:?}");
        assert_eq!(request.failure_reason, None, "{request:?}");
    }
    let last = requests.iter().filter_map(|request| request.dispatched_at);
    let last = last.max().unwrap();
    println!(
        "{} requests; the last of them started {} ms after Temporal was back",
        requests.len(),
        last.duration_since(back).as_millis()
    );
    let namespace = Namespace::named(&server, "default");
    let runs = namespace.all_runs(requests.len()).await;
    temporal::assert_one_run_each(&runs, requests.iter().map(|request| request.execution));
    assert!(serve.is_running());
    assert_eq!(serve.pid(), pid);
    program::stop(&mut serve);
}
