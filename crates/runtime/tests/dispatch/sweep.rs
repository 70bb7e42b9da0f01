//! The sweep: finds what hints missed, and tells what the engine has lost from what it may never have heard of.

use crate::cast::{cycle, round};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Blur, Fault, barrier};
use crate::logs;
use crate::temporal::operator;
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_engine::{Description, Engine};
use leasehold_service::Service;
use leasehold_store::lock::LockRequest;
use leasehold_testbed::BackendKind;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

scenarios! {
    both: the_sweep_finds_what_hints_missed, an_execution_the_engine_lost_fails_after_missing_twice,
        an_unknown_start_that_the_engine_does_not_know_is_left_alone,
        a_claimed_start_that_the_engine_does_not_know_is_left_alone, only_one_instance_sweeps,
        a_start_that_arrives_while_the_sweep_looks_is_not_lost, one_that_cannot_be_asked_about_holds_up_no_other,
        an_engine_that_knows_nothing_is_not_believed;
}

async fn the_sweep_finds_what_hints_missed(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(3).await;
    let ids = scene.enqueue(&site, 3).await;
    cycle(&scene.dispatcher()).await;
    let execution = scene.execution(&site, ids[1]).await;
    scene.engine.terminate(execution, "stop").await.unwrap();
    round(&scene.sweeper(Duration::from_secs(60))).await;
    assert_eq!(scene.status(&site, ids[1]).await, RequestStatus::Failed);
    for id in [ids[0], ids[2]] {
        assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    }
    assert_eq!(scene.in_use(&site).await, 2);
}

async fn an_execution_the_engine_lost_fails_after_missing_twice(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    let execution = scene.execution(&site, id).await;
    operator(&["delete", "--yes"], execution);
    until("Temporal has forgotten it", async || {
        scene.engine.describe(execution).await == Ok(Description::NotFound)
    })
    .await;
    let sweeper = scene.sweeper(Duration::from_millis(1));
    round(&sweeper).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    until("it is lost", async || {
        round(&sweeper).await;
        scene.status(&site, id).await == RequestStatus::Failed
    })
    .await;
    let request = scene.get(&site, id).await;
    assert_eq!(request.failure_reason, Some(FailureReason::EngineLost));
    assert_eq!(scene.in_use(&site).await, 0);
    let named = format!("request={id}");
    logs::assert_once(Level::ERROR, &["the engine no longer knows", &named]);
}

/// Three passes of a sweep that would call anything lost at once.
async fn sweep_hard(scene: &DispatchEnv) {
    let sweeper = scene.sweeper(Duration::ZERO);
    for _ in 0..6 {
        sweeper.run_once().await.unwrap();
    }
    assert!(scene.faults.calls("execution_list_active") >= 4);
}

async fn an_unknown_start_that_the_engine_does_not_know_is_left_alone(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::CallLost]);
    let dispatcher = scene.dispatcher();
    cycle(&dispatcher).await;
    let before = scene.get(&site, id).await;
    sweep_hard(&scene).await;
    assert_eq!(scene.get(&site, id).await, before);
    assert_eq!(scene.in_use(&site).await, 1);
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn a_claimed_start_that_the_engine_does_not_know_is_left_alone(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let (_stop, running) = crate::cast::begin_cycle(scene.dispatcher());
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    sweep_hard(&scene).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Claimed);
    assert_eq!(scene.in_use(&site).await, 1);
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
}

async fn only_one_instance_sweeps(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let lock = LockRequest {
        name: "sweepOpenExecutions".to_owned(),
        owner: "somebody".to_owned(),
        at_most_for: crate::cast::NEVER,
    };
    scene.store.lock_acquire(&lock).await.unwrap();
    round(&scene.sweeper(Duration::ZERO)).await;
    assert_eq!(scene.faults.calls("execution_list_active"), 0);
}

async fn a_start_that_arrives_while_the_sweep_looks_is_not_lost(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::CallLost]);
    let dispatcher = scene.dispatcher();
    cycle(&dispatcher).await;
    let sweeper = Arc::new(scene.sweeper(Duration::ZERO));
    for _ in 0..4 {
        sweeper.run_once().await.unwrap();
    }
    let hold = barrier();
    let execution = scene.execution(&site, id).await;
    scene.engine.blur(execution, Blur::WaitsAfter(hold.clone()));
    let before = scene.engine.descriptions();
    let looking = tokio::spawn({
        let sweeper = sweeper.clone();
        async move {
            for _ in 0..4 {
                sweeper.run_once().await.unwrap();
            }
        }
    });
    until("the engine said that it does not know it", async || {
        scene.engine.descriptions() > before
    })
    .await;
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    hold.add_permits(1_000);
    looking.await.unwrap();
    assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    assert_eq!(scene.in_use(&site).await, 1);
}

async fn one_that_cannot_be_asked_about_holds_up_no_other(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(3).await;
    let ids = scene.enqueue(&site, 3).await;
    cycle(&scene.dispatcher()).await;
    let first = scene.execution(&site, ids[0]).await;
    scene.engine.blur(first, Blur::Unavailable);
    let sweeper = scene.sweeper(Duration::from_secs(60));
    assert!(sweeper.run_once().await.is_err(), "it says so");
    let last = scene.execution(&site, ids[2]).await;
    scene.engine.terminate(last, "stop").await.unwrap();
    until("the others are swept", async || {
        let _ = sweeper.run_once().await;
        scene.status(&site, ids[2]).await == RequestStatus::Failed
    })
    .await;
    assert_eq!(scene.status(&site, ids[0]).await, RequestStatus::Dispatched);
}

async fn an_engine_that_knows_nothing_is_not_believed(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    cycle(&scene.dispatcher()).await;
    let execution = scene.execution(&site, id).await;
    operator(&["delete", "--yes"], execution);
    until("Temporal has forgotten it", async || {
        scene.engine.describe(execution).await == Ok(Description::NotFound)
    })
    .await;
    let sweeper = scene.careful_sweeper();
    until("it says so", async || {
        sweeper.run_once().await.unwrap();
        logs::count(Level::ERROR, &["knows none of the open executions"]) > 0
    })
    .await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Dispatched);
    assert_eq!(scene.in_use(&site).await, 1);
}
