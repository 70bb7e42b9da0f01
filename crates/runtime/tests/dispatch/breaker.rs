//! The circuit breaker: opens after consecutive failures, claims nothing while open, and ramps up the load when the engine is back.

use crate::dispatch_env::{DispatchEnv, Setup, until};
use crate::faulty_engine::Fault;
use crate::fixtures::{cycle, round};
use leasehold_core::RequestStatus;
use leasehold_core::breaker::{BreakerSettings, BreakerState};
use leasehold_testbed::BackendKind;

scenarios! {
    both: load_grows_in_steps_after_an_outage, bad_health_stops_claiming, failures_of_one_request_do_not_open_the_breaker;
}

async fn load_grows_in_steps_after_an_outage(on: BackendKind) {
    let setup = Setup {
        breaker: BreakerSettings {
            threshold: 5,
            ramp_from: 1,
            full: 8,
        },
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let workspace = env.workspace(50).await;
    let ids = env.enqueue(&workspace, 20).await;
    env.engine.set_healthy(false);
    let prober = env.prober();
    round(&prober).await;
    assert_eq!(env.breaker.allowance(), 0);
    env.engine.set_healthy(true);
    until("the prober has closed the breaker", async || {
        round(&prober).await;
        env.breaker.allowance() > 0
    })
    .await;
    assert_eq!(env.breaker.allowance(), 1);
    assert_eq!(cycle(&env.dispatcher()).await.dispatched, 20);
    let in_flight = env.engine.calls().in_flight;
    assert_eq!(in_flight[0], 1);
    assert!(in_flight[1..3].iter().all(|n| *n <= 2), "{in_flight:?}");
    assert!(in_flight[3..7].iter().all(|n| *n <= 4), "{in_flight:?}");
    assert!(in_flight.iter().all(|n| *n <= 8), "{in_flight:?}");
    assert_eq!(env.breaker.state(), BreakerState::Closed { failures: 0 });
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
}

async fn bad_health_stops_claiming(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(5).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.set_healthy(false);
    round(&env.prober()).await;
    // The texts that show the error say themselves that the engine is unavailable.
    assert_eq!(env.breaker.outage_error().as_deref(), Some("injected"));
    let dispatcher = env.dispatcher();
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    assert_eq!(env.faults.calls("request_claim"), 0);
    assert_eq!(env.get(&workspace, id).await.attempt_count, 0);
    env.engine.set_healthy(true);
    until("the prober has closed the breaker", async || {
        round(&env.prober()).await;
        env.breaker.allowance() > 0
    })
    .await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn failures_of_one_request_do_not_open_the_breaker(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(50).await;
    let bad = env.enqueue_one(&workspace).await;
    env.engine.inject(bad, &vec![Fault::CallLost; 10]);
    let dispatcher = env.dispatcher();
    for _ in 0..10 {
        let good = env.enqueue_one(&workspace).await;
        cycle(&dispatcher).await;
        assert_eq!(
            env.status(&workspace, good).await,
            RequestStatus::Dispatched
        );
        env.pass_backoffs();
    }
    let request = env.get(&workspace, bad).await;
    assert_eq!((request.attempt_count, request.dispatch_failures), (10, 0));
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}
