//! Temporal is away while requests keep coming. First by name, so that it runs beside all the others.

use crate::order_workspace::OrderWorkspace;
use crate::program::{self, Program};
use crate::temporal::{self, Namespace};
use crate::{PATIENCE, blocking, database};
use leasehold_core::Timestamp;
use leasehold_testkit::{TemporalOptions, TestTemporal, sized};
use serde_json::json;
use std::time::Duration;
use tokio::time::interval;

const PACE: Duration = Duration::from_millis(250);

/// Enqueues one after the other until so much time has passed on the database's clock. Returns when it began.
async fn load(site: &OrderWorkspace, length: Duration) -> Timestamp {
    let mut pace = interval(PACE);
    let mut begun = None;
    loop {
        pace.tick().await;
        let id = site.enqueue(json!({"do": "wait"})).await;
        let now = site.get(id).await.created_at;
        let begun = *begun.get_or_insert(now);
        if now.duration_since(begun) >= length.try_into().unwrap() {
            return begun;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn temporal_that_is_away_costs_no_request_anything() {
    let database = database::fresh().await;
    let mut server =
        blocking(|| TestTemporal::start(TemporalOptions::default().on_file())).unwrap();
    let mut serve = Program::new(database.url(), server.address(), "default").start();
    let pid = serve.pid();
    let site = OrderWorkspace::new(database::store(database.url()), 100_000).await;
    load(&site, Duration::from_secs(3)).await;
    site.until("dispatched before", |counts| {
        counts.pending + counts.claimed == 0
    })
    .await;
    let before = site.counts().await.dispatched;

    blocking(|| server.stop()).unwrap();
    load(&site, Duration::from_secs(sized(20, 120))).await;
    let counts = site.counts().await;
    assert_eq!(counts.dispatched, before, "{counts:?}");
    assert_eq!(counts.failed, 0, "{counts:?}");
    assert!(program::lines(&serve, "the engine is unavailable") > 0);

    blocking(|| server.start_again()).unwrap();
    let back = load(&site, Duration::from_secs(3)).await;
    let all = |counts: &leasehold_store::request::Counts| counts.pending + counts.claimed == 0;
    site.until_for(PATIENCE * 2, "dispatched after", all).await;

    let requests = site.all().await;
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
