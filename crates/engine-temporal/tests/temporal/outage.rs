//! What happens when the server is away, goes away, comes back, or is silent. Times are bounds, never speeds.

use crate::proxy::Proxy;
use crate::{PATIENCE, engine, order};
use futures::future::join_all;
use leasehold_core::ExecutionId;
use leasehold_engine::{Description, Engine, Error, StartOutcome};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::{TestTemporal, eventually};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(500);

fn engine_at(address: &str, connect_timeout: Duration, call_timeout: Duration) -> TemporalEngine {
    TemporalEngine::new(TemporalOptions {
        address: address.to_owned(),
        connect_timeout,
        call_timeout,
        ..TemporalOptions::default()
    })
    .unwrap()
}

fn is_untouched(outcome: &StartOutcome) -> bool {
    matches!(outcome, StartOutcome::Unavailable { reached: false, .. })
}

/// Whether it runs after all, as somebody sees who can hear the server.
async fn runs(execution: ExecutionId) -> bool {
    let direct = engine();
    eventually(PATIENCE, async || {
        direct.describe(execution).await == Ok(Description::Open)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_and_comes_back_is_found_again() {
    let start_server = || TestTemporal::start(leasehold_testkit::TemporalOptions::default());
    let mut server = tokio::task::spawn_blocking(start_server)
        .await
        .unwrap()
        .unwrap();
    let engine = engine_at(server.address(), PATIENCE, PATIENCE);
    assert_eq!(engine.start(&order()).await, StartOutcome::Started);

    tokio::task::block_in_place(|| server.kill()).unwrap();
    let noticed = eventually(PATIENCE, async || {
        is_untouched(&engine.start(&order()).await)
    });
    assert!(noticed.await);
    for outcome in join_all((0..64).map(async |_| engine.start(&order()).await)).await {
        assert!(is_untouched(&outcome), "{outcome:?}");
    }
    assert!(matches!(engine.health().await, Err(Error::Unavailable(_))));

    tokio::task::block_in_place(|| server.start_again()).unwrap();
    assert_eq!(engine.health().await, Ok(()));
    assert_eq!(engine.start(&order()).await, StartOutcome::Started);
}

#[tokio::test]
async fn an_engine_can_be_made_before_its_server() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let engine = engine_at(&address.to_string(), PATIENCE, PATIENCE);
    let outcome = engine.start(&order()).await;
    assert!(is_untouched(&outcome), "{outcome:?}");
    let error = engine.describe(order().execution).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(text) if text.contains("refused")),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_that_means_nothing_is_no_connection() {
    let engine = engine_at("no-such-host.invalid:7233", PATIENCE, PATIENCE);
    let outcome = engine.start(&order()).await;
    assert!(is_untouched(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn a_port_that_accepts_and_never_answers_is_no_connection() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let engine = engine_at(&address, SHORT, PATIENCE * 10);
    let calls = join_all((0..64).map(async |_| engine.start(&order()).await));
    for outcome in timeout(PATIENCE, calls).await.unwrap() {
        assert!(is_untouched(&outcome), "{outcome:?}");
    }
    let mut attempts = 0;
    while let Ok(Ok(_)) = timeout(Duration::from_millis(1), silent.accept()).await {
        attempts += 1;
    }
    assert_eq!(attempts, 1, "all wait for one attempt");
}

#[tokio::test]
async fn a_start_whose_answer_is_late_is_unknown_and_may_run() {
    let proxy = Proxy::to(TestTemporal::shared().address()).await;
    let through = engine_at(&proxy.address(), PATIENCE, SHORT * 6);
    assert_eq!(through.health().await, Ok(()));
    proxy.hold_answers();
    let start = order();
    let (outcome, runs) = tokio::join!(through.start(&start), runs(start.execution));
    assert!(
        matches!(outcome, StartOutcome::Unknown { .. }),
        "{outcome:?}"
    );
    assert!(runs);
    assert_eq!(engine().start(&start).await, StartOutcome::Started);
}

#[tokio::test]
async fn a_server_that_falls_silent_is_left_and_found_again() {
    let proxy = Proxy::to(TestTemporal::shared().address()).await;
    let through = engine_at(&proxy.address(), SHORT, SHORT);
    assert_eq!(through.health().await, Ok(()));
    proxy.hold_answers();
    assert!(!is_untouched(&through.start(&order()).await));
    let next = through.start(&order()).await;
    assert!(is_untouched(&next), "it was not sent: {next:?}");
    proxy.release_answers();
    let found = eventually(PATIENCE, async || through.health().await.is_ok());
    assert!(found.await);
}

#[tokio::test]
async fn a_broken_connection_leaves_a_start_unknown() {
    let proxy = Proxy::to(TestTemporal::shared().address()).await;
    let through = engine_at(&proxy.address(), SHORT, PATIENCE);
    assert_eq!(through.health().await, Ok(()));
    proxy.hold_answers();
    let start = order();
    let (outcome, _blackhole) = tokio::join!(through.start(&start), async {
        assert!(runs(start.execution).await);
        proxy.swallow_connections().await
    });
    assert!(
        matches!(
            outcome,
            StartOutcome::Unknown { .. } | StartOutcome::Unavailable { reached: true, .. }
        ),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn calls_do_not_queue_up_behind_attempts_to_reconnect() {
    let proxy = Proxy::to(TestTemporal::shared().address()).await;
    let through = engine_at(&proxy.address(), SHORT, PATIENCE * 10);
    assert_eq!(through.health().await, Ok(()));
    let _blackhole = proxy.swallow_connections().await;
    // One after the other they would take 64 times the limit of one attempt.
    let calls = join_all((0..64).map(async |_| through.start(&order()).await));
    for outcome in timeout(SHORT * 32, calls).await.unwrap() {
        assert!(
            matches!(
                outcome,
                StartOutcome::Unavailable { .. } | StartOutcome::Unknown { .. }
            ),
            "{outcome:?}"
        );
    }
    let next = timeout(PATIENCE, through.start(&order())).await.unwrap();
    assert!(is_untouched(&next), "{next:?}");
}
