//! The circuit breaker: opens when enough different requests fail to start, claims nothing while open, and ramps up the load when the engine is back.

use crate::dispatch_env::{DispatchEnv, Setup, until};
use crate::faulty_engine::{Fault, barrier};
use crate::fixtures::{begin_cycle, cycle, parallel, round};
use leasehold_core::breaker::{BreakerSettings, BreakerState};
use leasehold_core::{RequestId, RequestStatus};
use leasehold_runtime::Dispatcher;
use leasehold_testbed::{BackendKind, TestWorkspace};

scenarios! {
    both: load_grows_in_steps_after_an_outage, bad_health_stops_claiming,
        one_poison_request_never_opens_the_breaker_on_a_quiet_server,
        five_requests_of_two_workspaces_open_it, only_workspace_under_way_opens_it_alone,
        one_failure_while_recovering_does_not_reopen,
        fresh_requests_start_beside_kept_ones_while_recovering,
        pause_of_a_poison_start_grows_and_further_while_others_succeed;
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
    assert_eq!(env.breaker.state(), BreakerState::Closed);
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

/// Nothing else is started, so no answer of another start lies between the failures.
async fn one_poison_request_never_opens_the_breaker_on_a_quiet_server(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(50).await;
    let bad = env.enqueue_one(&workspace).await;
    env.engine.inject(bad, &vec![Fault::CallLost; 20]);
    let dispatcher = env.dispatcher();
    for _ in 0..20 {
        assert_eq!(cycle(&dispatcher).await.released, 1);
        assert_eq!(env.breaker.state(), BreakerState::Closed);
        env.pass_backoffs();
    }
    assert_eq!(env.breaker.failing_requests(), 1);
    let request = env.get(&workspace, bad).await;
    assert_eq!((request.attempt_count, request.dispatch_failures), (20, 0));
    let good = env.enqueue_one(&workspace).await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 2);
    assert_eq!(
        env.status(&workspace, good).await,
        RequestStatus::Dispatched
    );
    assert_eq!(env.breaker.failing_requests(), 0);
}

async fn five_requests_of_two_workspaces_open_it(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let (one, other) = (env.workspace(50).await, env.workspace(50).await);
    env.enqueue(&one, 3).await;
    env.enqueue(&other, 1).await;
    env.engine.inject_all(Some(Fault::CallLost));
    let dispatcher = env.dispatcher();
    for _ in 0..3 {
        assert_eq!(cycle(&dispatcher).await.released, 4);
        assert_eq!(env.breaker.state(), BreakerState::Closed, "four requests");
        env.pass_backoffs();
    }
    env.enqueue(&other, 1).await;
    assert_eq!(cycle(&dispatcher).await.released, 5);
    assert_eq!(env.breaker.state(), BreakerState::Open);
}

async fn only_workspace_under_way_opens_it_alone(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let (bad, good) = (env.workspace(50).await, env.workspace(50).await);
    let failing = env.enqueue(&bad, 5).await;
    for id in &failing {
        env.engine.inject(*id, &vec![Fault::CallLost; 2]);
    }
    let other = env.enqueue_one(&good).await;
    let answer = barrier();
    env.engine
        .inject(other, &[Fault::WaitsBefore(answer.clone())]);
    let (_stop, running) = begin_cycle(env.dispatcher_with(parallel("first")));
    until("the starts of the workspace have failed", async || {
        env.get(&bad, failing[4]).await.attempt_count == 1
    })
    .await;
    assert_eq!(env.breaker.state(), BreakerState::Closed);
    answer.add_permits(1);
    let report = running.await.unwrap();
    assert_eq!((report.released, report.dispatched), (5, 1));
    env.pass_backoffs();
    let dispatcher = env.dispatcher_with(parallel("second"));
    assert_eq!(cycle(&dispatcher).await.released, 5);
    assert_eq!(env.breaker.state(), BreakerState::Open);
}

/// Opens the breaker with a failed health check, and lets the engine answer again.
async fn recover(env: &DispatchEnv) {
    let prober = env.prober();
    env.engine.set_healthy(false);
    until("a health check has failed", async || {
        round(&prober).await;
        !env.breaker.is_engine_healthy()
    })
    .await;
    assert_eq!(env.breaker.state(), BreakerState::Open);
    env.engine.set_healthy(true);
    until("the breaker is no longer open", async || {
        round(&prober).await;
        env.breaker.state() != BreakerState::Open
    })
    .await;
    assert!(env.breaker.is_engine_healthy());
}

async fn one_failure_while_recovering_does_not_reopen(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(50).await;
    recover(&env).await;
    let bad = env.enqueue_one(&workspace).await;
    env.engine.inject(bad, &vec![Fault::CallLost; 10]);
    let dispatcher = env.dispatcher();
    for _ in 0..10 {
        assert_eq!(cycle(&dispatcher).await.released, 1);
        assert_eq!(env.breaker.allowance(), 8);
        env.pass_backoffs();
    }
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn fresh_requests_start_beside_kept_ones_while_recovering(on: BackendKind) {
    let setup = Setup {
        manual_clock: true,
        breaker: BreakerSettings {
            threshold: 5,
            ramp_from: 4,
            full: 8,
        },
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let workspace = env.workspace(50).await;
    let kept = env.enqueue(&workspace, 8).await;
    let answers = barrier();
    for id in &kept {
        let hangs = Fault::WaitsBefore(answers.clone());
        env.engine.inject(*id, &[Fault::CallLost, hangs]);
    }
    assert_eq!(cycle(&env.dispatcher()).await.released, 8);
    recover(&env).await;
    env.pass_backoffs();
    let fresh = env.enqueue(&workspace, 2).await;
    let (_stop, running) = begin_cycle(env.dispatcher_with(parallel("second")));
    env.until_all(&workspace, &fresh, RequestStatus::Dispatched)
        .await;
    let claimed = async |id: RequestId| env.status(&workspace, id).await == RequestStatus::Claimed;
    assert!(claimed(kept[0]).await && claimed(kept[1]).await);
    assert!(!claimed(kept[2]).await, "half of the starts are of others");
    answers.add_permits(kept.len());
    assert_eq!(running.await.unwrap().dispatched, 10);
    assert_eq!(env.breaker.state(), BreakerState::Closed);
}

/// Runs a cycle in which this request fails, and returns how long it waits for the next start.
async fn pause_after(
    env: &DispatchEnv,
    dispatcher: &Dispatcher,
    of: (&TestWorkspace, RequestId),
) -> u64 {
    assert_eq!(cycle(dispatcher).await.released, 1);
    let due = env.get(of.0, of.1).await.run_at;
    let pause = due.duration_since(env.store.now().await.unwrap());
    env.pass_backoffs();
    pause.as_secs().unsigned_abs()
}

async fn pause_of_a_poison_start_grows_and_further_while_others_succeed(on: BackendKind) {
    for fault in [Fault::CallLost, Fault::Overloaded] {
        let env = DispatchEnv::with_manual_clock(on).await;
        let workspace = env.workspace(50).await;
        let bad = env.enqueue_one(&workspace).await;
        env.engine.inject(bad, &vec![fault; 20]);
        let dispatcher = env.dispatcher();
        let mut pauses = Vec::new();
        for _ in 0..7 {
            pauses.push(pause_after(&env, &dispatcher, (&workspace, bad)).await);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        pauses.clear();
        for _ in 0..6 {
            env.enqueue_one(&workspace).await;
            pauses.push(pause_after(&env, &dispatcher, (&workspace, bad)).await);
        }
        // The first of them may fail before the other start is answered.
        assert_eq!(pauses[..4], [30; 4]);
        assert_eq!(pauses[5], 60);
    }
}
