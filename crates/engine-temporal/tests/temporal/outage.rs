//! Outages: the server is down, restarts, or does not answer. Times are upper bounds, not measurements.

use crate::proxy::Proxy;
use crate::{WAIT_TIMEOUT, engine, order};
use futures::future::join_all;
use leasehold_core::ExecutionId;
use leasehold_engine::{Description, Engine, Error, StartOutcome};
use leasehold_engine_temporal::{TemporalEngine, TemporalOptions};
use leasehold_testkit::{TestTemporal, eventually};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
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

fn is_not_reached(outcome: &StartOutcome) -> bool {
    matches!(outcome, StartOutcome::Unavailable { reached: false, .. })
}

/// Whether the execution runs, as seen over a direct connection.
async fn runs(execution: ExecutionId) -> bool {
    let direct = engine();
    eventually(WAIT_TIMEOUT, async || {
        direct.describe(execution).await == Ok(Description::Open)
    })
    .await
}

/// Waits until the engine is connected; its timeouts are short, so that a slow machine may need several attempts.
async fn until_healthy(engine: &TemporalEngine) {
    let healthy = eventually(WAIT_TIMEOUT, async || engine.health().await.is_ok());
    assert!(healthy.await, "the engine did not connect");
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_reconnects_after_a_server_restart() {
    let start_server = || TestTemporal::start(leasehold_testkit::DevServerOptions::default());
    let mut server = tokio::task::spawn_blocking(start_server)
        .await
        .unwrap()
        .unwrap();
    let engine = engine_at(server.address(), WAIT_TIMEOUT, WAIT_TIMEOUT);
    assert_eq!(engine.start(&order()).await, StartOutcome::Started);

    tokio::task::block_in_place(|| server.kill()).unwrap();
    let noticed = eventually(WAIT_TIMEOUT, async || {
        is_not_reached(&engine.start(&order()).await)
    });
    assert!(noticed.await);
    for outcome in join_all((0..64).map(async |_| engine.start(&order()).await)).await {
        assert!(is_not_reached(&outcome), "{outcome:?}");
    }
    assert!(matches!(engine.health().await, Err(Error::Unavailable(_))));

    tokio::task::block_in_place(|| server.start_again()).unwrap();
    until_healthy(&engine).await;
    assert_eq!(engine.start(&order()).await, StartOutcome::Started);
}

#[tokio::test]
async fn engine_can_be_created_before_its_server_runs() {
    // A bound socket that does not listen: its port refuses connections and stays reserved.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = closed.local_addr().unwrap();
    let engine = engine_at(&address.to_string(), WAIT_TIMEOUT, WAIT_TIMEOUT);
    let outcome = engine.start(&order()).await;
    assert!(is_not_reached(&outcome), "{outcome:?}");
    let error = engine.describe(order().execution).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(text) if text.contains("refused")),
        "{error}"
    );
}

#[tokio::test]
async fn unknown_host_is_not_reached() {
    let engine = engine_at("no-such-host.invalid:7233", WAIT_TIMEOUT, WAIT_TIMEOUT);
    let outcome = engine.start(&order()).await;
    assert!(is_not_reached(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn server_that_never_answers_is_not_reached() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let engine = engine_at(&address, SHORT, WAIT_TIMEOUT * 10);
    let calls = join_all((0..64).map(async |_| engine.start(&order()).await));
    for outcome in timeout(WAIT_TIMEOUT, calls).await.unwrap() {
        assert!(is_not_reached(&outcome), "{outcome:?}");
    }
    let mut attempts = 0;
    while let Ok(Ok(_)) = timeout(Duration::from_millis(1), silent.accept()).await {
        attempts += 1;
    }
    assert_eq!(attempts, 1, "all calls share one attempt");
}

#[tokio::test]
async fn start_with_late_response_is_unknown() {
    let proxy = Proxy::to(TestTemporal::shared().address()).await;
    let through = engine_at(&proxy.address(), WAIT_TIMEOUT, SHORT * 12);
    until_healthy(&through).await;
    proxy.hold_responses();
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
async fn engine_reconnects_after_a_silent_server() {
    let proxy = Proxy::to(TestTemporal::shared().address()).await;
    let through = engine_at(&proxy.address(), SHORT, SHORT);
    until_healthy(&through).await;
    proxy.hold_responses();
    assert!(!is_not_reached(&through.start(&order()).await));
    let next = through.start(&order()).await;
    assert!(
        is_not_reached(&next),
        "expected a call that was not sent: {next:?}"
    );
    proxy.release_responses();
    let found = eventually(WAIT_TIMEOUT, async || through.health().await.is_ok());
    assert!(found.await);
}

#[tokio::test]
async fn start_is_unknown_after_a_broken_connection() {
    let proxy = Proxy::to(TestTemporal::shared().address()).await;
    let through = engine_at(&proxy.address(), SHORT, WAIT_TIMEOUT);
    until_healthy(&through).await;
    proxy.hold_responses();
    let start = order();
    let (outcome, _blackhole) = tokio::join!(through.start(&start), async {
        assert!(runs(start.execution).await);
        proxy.blackhole_connections().await
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
async fn calls_share_one_reconnect_attempt() {
    let proxy = Proxy::to(TestTemporal::shared().address()).await;
    let through = engine_at(&proxy.address(), SHORT, WAIT_TIMEOUT * 10);
    until_healthy(&through).await;
    let _blackhole = proxy.blackhole_connections().await;
    // Sequential attempts would take 64 times the timeout of one.
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
    let next = timeout(WAIT_TIMEOUT, through.start(&order()))
        .await
        .unwrap();
    assert!(is_not_reached(&next), "{next:?}");
}
