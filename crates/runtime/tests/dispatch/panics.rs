//! A panic in one step of the dispatcher, or in a round of a service, fails that step; the next one works.

use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::faulty_store::StoreFault;
use crate::fixtures::{NEVER, begin_cycle, cycle, options, round};
use leasehold_core::RequestStatus;
use leasehold_runtime::{Dispatcher, DispatcherOptions, LockOptions};
use leasehold_telemetry::{ExpositionFormat, Telemetry};
use leasehold_testbed::BackendKind;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const EVENT: &str = "task of the dispatcher panicked; its step failed";
/// Renewed and extended every eight seconds, and not lost on a slow machine.
const LEASE: Duration = Duration::from_secs(24);

scenarios! {
    both: panic_in_claim_is_a_failed_claim, panic_in_flush_leaves_the_claims_to_recovery,
        panic_in_renew_is_a_failed_renewal, panic_in_arm_leaves_notifications_unarmed,
        panic_in_a_round_of_a_service_is_counted;
    postgres: panic_in_extend_lock_is_a_failed_extension;
}

/// Creates a dispatcher whose metrics the scenario reads.
fn dispatcher(
    env: &DispatchEnv,
    change: impl FnOnce(&mut DispatcherOptions),
) -> (Dispatcher, Telemetry) {
    let telemetry = Telemetry::default();
    let mut options = options("dispatcher");
    options.telemetry = telemetry.clone();
    options.start_timeout = NEVER;
    change(&mut options);
    (env.dispatcher_with(options), telemetry)
}

/// Asserts that exactly one panic of this task was counted.
fn assert_counted(telemetry: &Telemetry, task: &str) {
    let text = telemetry
        .metrics
        .render(ExpositionFormat::Prometheus)
        .unwrap();
    let expected = format!("leasehold_task_panics_total{{task=\"{task}\"}} 1");
    assert!(
        text.lines().any(|line| line == expected),
        "{expected} is not in\n{text}"
    );
}

async fn panic_in_claim_is_a_failed_claim(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.faults.inject("request_claim", &[StoreFault::Panics]);
    let (dispatcher, telemetry) = dispatcher(&env, |_| {});
    let failed = dispatcher.run_once(&CancellationToken::new()).await;
    assert!(
        failed
            .unwrap_err()
            .to_string()
            .contains("panicked: injected")
    );
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Dispatched);
    crate::assert_event(EVENT);
    assert_counted(&telemetry, "claim");
}

async fn panic_in_flush_leaves_the_claims_to_recovery(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.faults
        .inject("request_dispatched", &[StoreFault::Panics]);
    let (dispatcher, telemetry) = dispatcher(&env, |_| {});
    let report = cycle(&dispatcher).await;
    assert_eq!((report.dispatched, report.lost), (0, 1));
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Claimed);
    assert_counted(&telemetry, "flush");
    let execution = env.execution(&workspace, id).await;
    env.pass_backoffs();
    round(&env.recoverer()).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
    env.pass_backoffs();
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
    env.assert_one_run_each(vec![execution]).await;
}

async fn panic_in_renew_is_a_failed_renewal(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let answer = barrier();
    env.engine.inject(id, &[Fault::WaitsBefore(answer.clone())]);
    env.faults.inject("request_renew", &[StoreFault::Panics]);
    let (dispatcher, telemetry) = dispatcher(&env, |options| options.claim_lease = LEASE);
    let (_stop, running) = begin_cycle(dispatcher);
    until("the claim is renewed again", async || {
        env.faults.calls("request_renew") > 1
    })
    .await;
    answer.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
    assert_counted(&telemetry, "renew");
}

async fn panic_in_arm_leaves_notifications_unarmed(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    env.faults.inject("notification_arm", &[StoreFault::Panics]);
    let (dispatcher, telemetry) = dispatcher(&env, |_| {});
    assert_eq!(cycle(&dispatcher).await.batches, [0; 0]);
    assert_counted(&telemetry, "arm");
    let workspace = env.workspace(1).await;
    env.enqueue_one(&workspace).await;
    assert_eq!(cycle(&dispatcher).await.dispatched, 1);
}

async fn panic_in_extend_lock_is_a_failed_extension() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let answer = barrier();
    env.engine.inject(id, &[Fault::WaitsBefore(answer.clone())]);
    env.faults.inject("lock_extend", &[StoreFault::Panics]);
    let (dispatcher, telemetry) = dispatcher(&env, |options| {
        options.lock = LockOptions {
            at_most_for: LEASE,
            at_least_for: Duration::ZERO,
        };
    });
    let (_stop, running) = begin_cycle(dispatcher);
    until("the lock is extended again", async || {
        env.faults.calls("lock_extend") > 1
    })
    .await;
    answer.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
    assert_counted(&telemetry, "extend_lock");
}

async fn panic_in_a_round_of_a_service_is_counted(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    env.faults.inject("request_recover", &[StoreFault::Panics]);
    let telemetry = Telemetry::default();
    let metrics = telemetry.clone();
    let mut runtime = env.runtime(|options| options.telemetry = metrics);
    until("the recoverer runs again", async || {
        env.faults.calls("request_recover") > 1
    })
    .await;
    assert!(futures::FutureExt::now_or_never(runtime.crashed()).is_none());
    assert_counted(&telemetry, "recoverer");
    runtime.stop().await;
}
