//! Starts that the engine rejects: counted, retried with backoff, and failed after `max_attempts`. A rejection frees the slot only if
//! nothing can run.

use crate::assert_event;
use crate::dispatch_env::{DispatchEnv, Setup};
use crate::faulty_engine::Fault;
use crate::fixtures::cycle;
use crate::logs;
use leasehold_core::breaker::BreakerState;
use leasehold_core::{FailureReason, RequestStatus};
use leasehold_testbed::BackendKind;
use leasehold_testkit::{DevServerOptions, TestTemporal};
use std::sync::OnceLock;
use std::time::Duration;
use tracing::Level;

scenarios! {
    both: over_long_id_is_refused_until_max_attempts, refusal_of_a_kept_execution_that_runs,
        refusal_of_a_kept_execution_that_the_engine_does_not_know, rejected_start_of_a_cancelled_request;
}

/// Returns a server for which `execution-{id}` is too long.
fn strict() -> &'static TestTemporal {
    static STRICT: OnceLock<TestTemporal> = OnceLock::new();
    STRICT.get_or_init(|| {
        let options = DevServerOptions::default().setting("limit.maxIDLength", "41");
        TestTemporal::start(options).unwrap()
    })
}

async fn over_long_id_is_refused_until_max_attempts(on: BackendKind) {
    let setup = Setup {
        manual_clock: true,
        temporal: Some(strict().address().to_owned()),
        ..Setup::default()
    };
    let env = DispatchEnv::with(on, setup).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let dispatcher = env.dispatcher();
    for failures in 1..=3 {
        let done = cycle(&dispatcher).await;
        let request = env.get(&workspace, id).await;
        assert_eq!(
            (request.attempt_count, request.dispatch_failures),
            (failures, failures)
        );
        assert_eq!(request.execution, None);
        assert_eq!(env.in_use(&workspace).await, 0);
        let error = request.last_error.unwrap();
        assert!(error.contains("exceeds maximum allowed length"), "{error}");
        if failures < 3 {
            assert_eq!(
                (done.released, request.status),
                (1, RequestStatus::Pending.into())
            );
            // Not before 1, then 2 seconds have passed.
            env.advance(Duration::from_millis(u64::from(failures) * 1000 - 1));
            assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
            env.advance(Duration::from_millis(1));
        }
    }
    let request = env.get(&workspace, id).await;
    assert_eq!(request.status, RequestStatus::Failed);
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::DispatchExhausted.into())
    );
    let named = format!("request={id}");
    assert_eq!(
        logs::count(Level::ERROR, &["Failed to start Temporal workflow", &named]),
        3
    );
    // Each failure is logged once.
    assert_eq!(logs::count(Level::ERROR, &[&named]), 3);
    assert_event("Failed to start Temporal workflow");
    logs::assert_once(Level::WARN, &["max_attempts reached", &named]);
    assert_eq!(env.breaker.state(), BreakerState::Closed);
    // Each attempt had its own execution; all are deleted.
    let starts = env.engine.calls().starts;
    assert_eq!(starts.len(), 3);
    for execution in starts {
        assert_eq!(env.engine.starts_of(execution), 1);
        let left = env
            .store
            .execution_get(workspace.workspace, execution)
            .await;
        assert_eq!(left.unwrap(), None);
    }
}

async fn refusal_of_a_kept_execution_that_runs(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::AnswerLost, Fault::Refused]);
    let dispatcher = env.dispatcher();
    cycle(&dispatcher).await;
    let execution = env.execution(&workspace, id).await;
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    let request = env.get(&workspace, id).await;
    assert_eq!(request.status, RequestStatus::Dispatched);
    assert_eq!(
        (request.execution, request.dispatch_failures),
        (Some(execution), 0)
    );
    env.assert_one_run_each(vec![execution]).await;
}

async fn refusal_of_a_kept_execution_that_the_engine_does_not_know(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::CallLost, Fault::Refused]);
    let dispatcher = env.dispatcher();
    cycle(&dispatcher).await;
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.released, 1);
    let request = env.get(&workspace, id).await;
    assert_eq!((request.execution, request.dispatch_failures), (None, 1));
    assert_eq!(env.in_use(&workspace).await, 0);
}

async fn rejected_start_of_a_cancelled_request(on: BackendKind) {
    use crate::faulty_engine::barrier;
    use crate::faulty_store::StoreFault;
    use crate::fixtures::begin_cycle;
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::Refused]);
    let hold = barrier();
    env.faults
        .inject("request_release", &[StoreFault::Waits(hold.clone())]);
    let (_stop, running) = begin_cycle(env.dispatcher());
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    env.cancel(&workspace, id, false).await;
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().failed, 1);
    let request = env.get(&workspace, id).await;
    assert_eq!(
        request.failure_reason,
        Some(FailureReason::Cancelled.into())
    );
    assert_eq!(env.in_use(&workspace).await, 0);
}
