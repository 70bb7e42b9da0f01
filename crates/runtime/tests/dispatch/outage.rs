//! Engine outages: no request fails, no failure is counted, and dispatch resumes when the engine is back.

use crate::dispatch_env::{DispatchEnv, Setup, until};
use crate::faulty_engine::Fault;
use crate::fixtures::{cycle, round};
use crate::logs;
use leasehold_core::RequestStatus;
use leasehold_core::breaker::{BreakerSettings, BreakerState};
use leasehold_testbed::BackendKind;
use leasehold_testkit::{DevServerOptions, FaultProxy, TestTemporal};
use tracing::Level;

scenarios! {
    both: engine_down_at_dispatch, engine_down_for_longer_than_any_number_of_attempts,
        engine_killed_and_started_again;
}

async fn engine_down_at_dispatch(on: BackendKind) {
    let proxy = FaultProxy::to(TestTemporal::shared().address()).await;
    proxy.refuse();
    let setup = Setup {
        manual_clock: true,
        temporal: Some(proxy.address()),
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let workspace = env.workspace(20).await;
    let ids = env.enqueue(&workspace, 10).await;
    let dispatcher = env.dispatcher();
    assert_eq!(cycle(&dispatcher).await.released, 10);
    assert_eq!(env.breaker.state(), BreakerState::Open);
    logs::assert_once(Level::ERROR, &["engine unavailable; dispatch paused"]);
    // Only the first failed start of an outage is logged as an error.
    logs::assert_once(Level::ERROR, &["Failed to start Temporal workflow"]);
    // An open breaker prevents claims.
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    for id in &ids {
        let request = env.get(&workspace, *id).await;
        assert_eq!(request.status, RequestStatus::Pending);
        assert_eq!((request.attempt_count, request.dispatch_failures), (1, 0));
        // The start certainly did not happen, so the request holds no slot.
        assert_eq!(request.execution, None);
    }
    assert_eq!(env.in_use(&workspace).await, 0);
    proxy.accept_again();
    let prober = env.prober();
    until("the breaker is no longer open", async || {
        round(&prober).await;
        env.breaker.state() != BreakerState::Open
    })
    .await;
    logs::assert_once(Level::INFO, &["engine answers again", "seconds="]);
    assert_eq!(cycle(&dispatcher).await.dispatched, 10);
    let mut executions = Vec::new();
    for id in ids {
        executions.push(env.execution(&workspace, id).await);
    }
    env.assert_one_run_each(executions).await;
}

async fn engine_down_for_longer_than_any_number_of_attempts(on: BackendKind) {
    let setup = Setup {
        manual_clock: true,
        breaker: BreakerSettings {
            threshold: u32::MAX,
            ..BreakerSettings::default()
        },
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject_all(Some(Fault::Unavailable));
    let dispatcher = env.dispatcher();
    for attempts in 1..=10 {
        assert_eq!(cycle(&dispatcher).await.released, 1);
        let request = env.get(&workspace, id).await;
        assert_eq!(request.status, RequestStatus::Pending);
        assert_eq!(
            (request.attempt_count, request.dispatch_failures),
            (attempts, 0)
        );
        env.pass_backoffs();
    }
    env.engine.inject_all(None);
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn engine_killed_and_started_again(on: BackendKind) {
    let mut server = TestTemporal::start(DevServerOptions::default().on_file()).unwrap();
    let setup = Setup {
        temporal: Some(server.address().to_owned()),
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let workspace = env.workspace(50).await;
    let mut runtime = env.runtime(|_| {});
    let mut ids = env.enqueue(&workspace, 5).await;
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
    server.kill().unwrap();
    ids.extend(env.enqueue(&workspace, 20).await);
    until("the breaker is open", async || {
        runtime.circuit_breaker().state() == BreakerState::Open
    })
    .await;
    server.start_again().unwrap();
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
    let mut executions = Vec::new();
    for id in ids {
        let request = env.get(&workspace, id).await;
        assert_eq!(request.dispatch_failures, 0);
        executions.extend(request.execution);
    }
    env.assert_one_run_each(executions).await;
    assert!(futures::FutureExt::now_or_never(runtime.crashed()).is_none());
    runtime.stop().await;
}
