//! The engine away: nothing fails for it, nothing is counted, and dispatch goes on when it is back.

use crate::cast::{cycle, round};
use crate::dispatch_env::{DispatchEnv, Setup, until};
use crate::faulty_engine::Fault;
use crate::logs;
use leasehold_core::RequestStatus;
use leasehold_core::breaker::{BreakerSettings, BreakerState};
use leasehold_testbed::BackendKind;
use leasehold_testkit::{FaultProxy, TemporalOptions, TestTemporal};
use tracing::Level;

scenarios! {
    both: engine_down_at_dispatch, engine_down_for_longer_than_any_number_of_attempts,
        engine_killed_and_started_again;
}

async fn engine_down_at_dispatch(on: BackendKind) {
    let proxy = FaultProxy::to(TestTemporal::shared().address()).await;
    proxy.refuse();
    let setup = Setup {
        own_clock: true,
        temporal: Some(proxy.address()),
        ..Setup::default()
    };
    let scene = DispatchEnv::with(on, setup).await;
    let site = scene.site(20).await;
    let ids = scene.enqueue(&site, 10).await;
    let dispatcher = scene.dispatcher();
    assert_eq!(cycle(&dispatcher).await.released, 10);
    assert_eq!(scene.gate.state(), BreakerState::Open);
    logs::assert_once(
        Level::ERROR,
        &["the engine is unavailable; nothing is dispatched"],
    );
    // The first start that failed is told of, the others of the outage are not.
    logs::assert_once(Level::ERROR, &["Failed to start Temporal workflow"]);
    // While it is open nothing is even claimed.
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    for id in &ids {
        let request = scene.get(&site, *id).await;
        assert_eq!(request.status, RequestStatus::Pending);
        assert_eq!((request.attempt_count, request.dispatch_failures), (1, 0));
        // Nothing can have been started, so it holds no slot.
        assert_eq!(request.execution, None);
    }
    assert_eq!(scene.in_use(&site).await, 0);
    proxy.accept_again();
    let prober = scene.prober();
    until("the engine is seen to be back", async || {
        round(&prober).await;
        scene.gate.state() != BreakerState::Open
    })
    .await;
    logs::assert_once(Level::INFO, &["the engine answers again", "seconds="]);
    assert_eq!(cycle(&dispatcher).await.dispatched, 10);
    let mut executions = Vec::new();
    for id in ids {
        executions.push(scene.execution(&site, id).await);
    }
    scene.assert_one_run_each(executions).await;
}

async fn engine_down_for_longer_than_any_number_of_attempts(on: BackendKind) {
    let setup = Setup {
        own_clock: true,
        breaker: BreakerSettings {
            threshold: u32::MAX,
            ..BreakerSettings::default()
        },
        ..Setup::default()
    };
    let scene = DispatchEnv::with(on, setup).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject_all(Some(Fault::Unavailable));
    let dispatcher = scene.dispatcher();
    for attempts in 1..=10 {
        assert_eq!(cycle(&dispatcher).await.released, 1);
        let request = scene.get(&site, id).await;
        assert_eq!(request.status, RequestStatus::Pending);
        assert_eq!(
            (request.attempt_count, request.dispatch_failures),
            (attempts, 0)
        );
        scene.wait_out();
    }
    scene.engine.inject_all(None);
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn engine_killed_and_started_again(on: BackendKind) {
    let mut server = TestTemporal::start(TemporalOptions::default().on_file()).unwrap();
    let setup = Setup {
        temporal: Some(server.address().to_owned()),
        ..Setup::default()
    };
    let scene = DispatchEnv::with(on, setup).await;
    let site = scene.site(50).await;
    let mut runtime = scene.runtime(|_| {});
    let mut ids = scene.enqueue(&site, 5).await;
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
    server.kill().unwrap();
    ids.extend(scene.enqueue(&site, 20).await);
    until("the breaker is open", async || {
        runtime.gate().state() == BreakerState::Open
    })
    .await;
    server.start_again().unwrap();
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
    let mut executions = Vec::new();
    for id in ids {
        let request = scene.get(&site, id).await;
        assert_eq!(request.dispatch_failures, 0);
        executions.extend(request.execution);
    }
    scene.assert_one_run_each(executions).await;
    assert!(futures::FutureExt::now_or_never(runtime.broken()).is_none());
    runtime.stop().await;
}
