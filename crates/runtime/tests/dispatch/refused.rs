//! Starts that the engine refuses: counted, backed off, given up after as many as are tried. A refusal frees the slot only where
//! nothing can run.

use crate::assert_event;
use crate::cast::cycle;
use crate::dispatch_env::{DispatchEnv, Setup};
use crate::faulty_engine::Fault;
use crate::logs;
use leasehold_core::breaker::BreakerState;
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_testbed::BackendKind;
use leasehold_testkit::{TemporalOptions, TestTemporal};
use std::sync::OnceLock;
use std::time::Duration;
use tracing::Level;

scenarios! {
    both: over_long_id_is_refused_until_max_attempts, refusal_of_a_kept_execution_that_runs,
        refusal_of_a_kept_execution_that_the_engine_does_not_know, a_refused_request_that_nobody_wants_any_more;
}

/// A server for which `execution-{id}` is too long.
fn strict() -> &'static TestTemporal {
    static STRICT: OnceLock<TestTemporal> = OnceLock::new();
    STRICT.get_or_init(|| {
        let options = TemporalOptions::default().setting("limit.maxIDLength", "41");
        TestTemporal::start(options).unwrap()
    })
}

async fn over_long_id_is_refused_until_max_attempts(on: BackendKind) {
    let setup = Setup {
        own_clock: true,
        temporal: Some(strict().address().to_owned()),
        ..Setup::default()
    };
    let scene = DispatchEnv::with(on, setup).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let dispatcher = scene.dispatcher();
    for failures in 1..=3 {
        let done = cycle(&dispatcher).await;
        let request = scene.get(&site, id).await;
        assert_eq!(
            (request.attempt_count, request.dispatch_failures),
            (failures, failures)
        );
        assert_eq!(request.execution, None);
        assert_eq!(scene.in_use(&site).await, 0);
        let error = request.last_error.unwrap();
        assert!(error.contains("exceeds maximum allowed length"), "{error}");
        if failures < 3 {
            assert_eq!((done.released, request.status), (1, RequestStatus::Pending));
            // Not before 1, then 2 seconds have passed.
            scene.advance(Duration::from_millis(u64::from(failures) * 1000 - 1));
            assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
            scene.advance(Duration::from_millis(1));
        }
    }
    let request = scene.get(&site, id).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::DispatchExhausted)
    );
    let named = format!("request={id}");
    assert_eq!(
        logs::count(Level::ERROR, &["Failed to start Temporal workflow", &named]),
        3
    );
    // Each is said once.
    assert_eq!(logs::count(Level::ERROR, &[&named]), 3);
    assert_event("Failed to start Temporal workflow");
    logs::assert_once(Level::WARN, &["refused it as often as is tried", &named]);
    assert_eq!(scene.gate.state(), BreakerState::Closed { troubles: 0 });
    // Each try had an execution of its own; none of them is left.
    let starts = scene.engine.calls().starts;
    assert_eq!(starts.len(), 3);
    for execution in starts {
        assert_eq!(scene.engine.starts_of(execution), 1);
        let left = scene.store.execution_get(site.workspace, execution).await;
        assert_eq!(left.unwrap(), None);
    }
}

async fn refusal_of_a_kept_execution_that_runs(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene
        .engine
        .inject(id, &[Fault::AnswerLost, Fault::Refused]);
    let dispatcher = scene.dispatcher();
    cycle(&dispatcher).await;
    let execution = scene.execution(&site, id).await;
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let request = scene.get(&site, id).await;
    assert_eq!(request.status, RequestStatus::Dispatched);
    assert_eq!(
        (request.execution, request.dispatch_failures),
        (Some(execution), 0)
    );
    scene.assert_one_run_each(vec![execution]).await;
}

async fn refusal_of_a_kept_execution_that_the_engine_does_not_know(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::CallLost, Fault::Refused]);
    let dispatcher = scene.dispatcher();
    cycle(&dispatcher).await;
    scene.wait_out();
    assert_eq!(cycle(&dispatcher).await.released, 1);
    let request = scene.get(&site, id).await;
    assert_eq!((request.execution, request.dispatch_failures), (None, 1));
    assert_eq!(scene.in_use(&site).await, 0);
}

async fn a_refused_request_that_nobody_wants_any_more(on: BackendKind) {
    use crate::cast::begin_cycle;
    use crate::faulty_engine::barrier;
    use crate::faulty_store::Outage;
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::Refused]);
    let hold = barrier();
    scene
        .faults
        .inject("request_release", &[Outage::Waits(hold.clone())]);
    let (_stop, running) = begin_cycle(scene.dispatcher());
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    scene.cancel(&site, id, false).await;
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().failed, 1);
    let request = scene.get(&site, id).await;
    assert_eq!(request.failure_reason, Some(FailureReason::Cancelled));
    assert_eq!(scene.in_use(&site).await, 0);
}
