//! The breaker: opens on trouble in a row, claims nothing while open, lets the load grow in steps when the engine is back.

use crate::cast::{cycle, round};
use crate::dispatch_env::{DispatchEnv, Setup, until};
use crate::faulty_engine::Fault;
use leasehold_core::RequestStatus;
use leasehold_core::breaker::{BreakerSettings, BreakerState};
use leasehold_testbed::BackendKind;

scenarios! {
    both: after_an_outage_the_load_grows_in_steps, bad_health_stops_claiming, trouble_of_one_request_does_not_stop_others;
}

async fn after_an_outage_the_load_grows_in_steps(on: BackendKind) {
    let setup = Setup {
        breaker: BreakerSettings {
            threshold: 5,
            ramp_from: 1,
            full: 8,
        },
        ..Setup::default()
    };
    let scene = DispatchEnv::with(on, setup).await;
    let site = scene.site(50).await;
    let ids = scene.enqueue(&site, 20).await;
    scene.engine.set_healthy(false);
    let prober = scene.prober();
    round(&prober).await;
    assert_eq!(scene.gate.allowance(), 0);
    scene.engine.set_healthy(true);
    until("its health was asked for again", async || {
        round(&prober).await;
        scene.gate.allowance() > 0
    })
    .await;
    assert_eq!(scene.gate.allowance(), 1);
    assert_eq!(cycle(&scene.dispatcher()).await.dispatched, 20);
    let under_way = scene.engine.calls().under_way;
    assert_eq!(under_way[0], 1);
    assert!(under_way[1..3].iter().all(|n| *n <= 2), "{under_way:?}");
    assert!(under_way[3..7].iter().all(|n| *n <= 4), "{under_way:?}");
    assert!(under_way.iter().all(|n| *n <= 8), "{under_way:?}");
    assert_eq!(scene.gate.state(), BreakerState::Closed { troubles: 0 });
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
}

async fn bad_health_stops_claiming(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(5).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.set_healthy(false);
    round(&scene.prober()).await;
    let dispatcher = scene.dispatcher();
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    assert_eq!(scene.faults.calls("request_claim"), 0);
    assert_eq!(scene.get(&site, id).await.attempt_count, 0);
    scene.engine.set_healthy(true);
    until("its health was asked for again", async || {
        round(&scene.prober()).await;
        scene.gate.allowance() > 0
    })
    .await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn trouble_of_one_request_does_not_stop_others(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(50).await;
    let bad = scene.enqueue_one(&site).await;
    scene.engine.inject(bad, &vec![Fault::CallLost; 10]);
    let dispatcher = scene.dispatcher();
    for _ in 0..10 {
        let good = scene.enqueue_one(&site).await;
        cycle(&dispatcher).await;
        assert_eq!(scene.status(&site, good).await, RequestStatus::Dispatched);
        scene.wait_out();
    }
    let request = scene.get(&site, bad).await;
    assert_eq!((request.attempt_count, request.dispatch_failures), (10, 0));
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}
