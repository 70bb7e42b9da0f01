//! A dispatcher that dies or stalls: its claims expire, are recovered as unknown starts, and are started once.

use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::faulty_store::StoreFault;
use crate::fixtures::{NEVER, Running, begin_cycle, cycle, parallel, round};
use crate::logs;
use leasehold_core::{RequestId, RequestStatus};
use leasehold_runtime::DispatcherOptions;
use leasehold_store::lock::LockRequest;
use leasehold_testbed::{BackendKind, TestWorkspace};
use std::time::{Duration, Instant};
use tracing::Level;

scenarios! {
    both: dispatcher_dies_after_the_claim, dispatcher_dies_after_the_engine_accepted,
        dispatcher_dies_before_dispatched_was_written, dispatcher_dies_after_dispatched_was_written,
        late_dispatcher_cannot_write, claims_of_a_living_dispatcher_are_renewed,
        stalled_dispatcher_sends_no_start, recovery_does_not_touch_valid_claims,
        recovery_waits_while_another_recovers;
}

/// Runs a dispatcher that claims once and whose next claim blocks.
pub(crate) fn run_doomed(env: &DispatchEnv, options: DispatcherOptions) -> Running {
    let faults = [StoreFault::Passes, StoreFault::Waits(barrier())];
    env.faults.inject("request_claim", &faults);
    env.run(options)
}

/// Crashes the dispatcher once its next claim is blocked, so that no late call follows.
pub(crate) async fn crash(env: &DispatchEnv, doomed: Running) {
    until("its next claim is blocked", async || {
        env.faults.calls("request_claim") == 2
    })
    .await;
    doomed.crash();
}

/// After the first dispatcher died: its claim is recovered, and a second dispatcher starts the same execution.
async fn assert_resolved_by_another(env: &DispatchEnv, workspace: &TestWorkspace, id: RequestId) {
    let execution = env.execution(workspace, id).await;
    assert_eq!(env.status(workspace, id).await, RequestStatus::Claimed);
    env.pass_backoffs();
    round(&env.recoverer()).await;
    logs::assert_once(
        Level::WARN,
        &["Recovered 1 stale queue items", "count=1", "timeout=15s"],
    );
    crate::assert_event("Recovered … stale queue items");
    let request = env.get(workspace, id).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!((request.attempt_count, request.dispatch_failures), (1, 0));
    assert_eq!(request.execution, Some(execution));
    assert_eq!(env.in_use(workspace).await, 1);
    let second = env.dispatcher_with(parallel("second"));
    assert_eq!(cycle(&second).await.dispatched, 1);
    assert_eq!(env.execution(workspace, id).await, execution);
    assert_eq!(env.status(workspace, id).await, RequestStatus::Dispatched);
    env.assert_one_run_each(vec![execution]).await;
}

async fn dispatcher_dies_after_the_claim(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::Hangs]);
    let first = run_doomed(&env, parallel("first"));
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    crash(&env, first).await;
    assert_resolved_by_another(&env, &workspace, id).await;
}

async fn dispatcher_dies_after_the_engine_accepted(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::WaitsAfter(barrier())]);
    let first = run_doomed(&env, parallel("first"));
    until("Temporal has started it", async || {
        env.temporal.runs().await.len() == 1
    })
    .await;
    crash(&env, first).await;
    assert_resolved_by_another(&env, &workspace, id).await;
}

async fn dispatcher_dies_before_dispatched_was_written(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.faults
        .inject("request_dispatched", &[StoreFault::Waits(barrier())]);
    let first = run_doomed(&env, parallel("first"));
    until("it writes DISPATCHED", async || {
        env.faults.calls("request_dispatched") == 1
    })
    .await;
    crash(&env, first).await;
    assert_resolved_by_another(&env, &workspace, id).await;
}

async fn dispatcher_dies_after_dispatched_was_written(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let first = run_doomed(&env, parallel("first"));
    env.until_all(&workspace, &[id], RequestStatus::Dispatched)
        .await;
    crash(&env, first).await;
    env.pass_backoffs();
    round(&env.recoverer()).await;
    assert_eq!(cycle(&env.dispatcher()).await.batches, [0; 0]);
    let request = env.get(&workspace, id).await;
    assert_eq!(
        (request.status, request.attempt_count),
        (RequestStatus::Dispatched.into(), 0)
    );
}

async fn late_dispatcher_cannot_write(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.engine.inject(id, &[Fault::WaitsAfter(hold.clone())]);
    // The final poll before it sleeps must not claim the recovered request.
    let polls = [StoreFault::Passes, StoreFault::Waits(hold.clone())];
    env.faults.inject("request_claim", &polls);
    // The long lease prevents a renewal between the expiry and the recovery.
    let (stop, first) = begin_cycle(env.dispatcher_with(DispatcherOptions {
        claim_lease: Duration::from_secs(300),
        ..parallel("first")
    }));
    until(
        "Temporal has started it and the next claim is blocked",
        async || env.temporal.runs().await.len() == 1 && env.faults.calls("request_claim") == 2,
    )
    .await;
    // It claims no more and waits for its start in flight.
    stop.cancel();
    env.pass_backoffs();
    round(&env.recoverer()).await;
    let second = cycle(&env.dispatcher_with(parallel("second"))).await;
    assert_eq!(second.dispatched, 1, "{}", logs::all());
    let before = env.get(&workspace, id).await;
    hold.add_permits(2);
    assert_eq!(first.await.unwrap().lost, 1);
    assert_eq!(env.get(&workspace, id).await, before);
    let named = format!("request={id}");
    logs::assert_once(Level::WARN, &["claim lost", &named]);
    env.assert_one_run_each(vec![before.execution.unwrap()])
        .await;
}

/// Expires while a dispatcher is stalled.
const SHORT_LEASE: Duration = Duration::from_millis(600);
/// Renewed after a third of it, which a busy machine may delay by seconds.
const RENEWED_LEASE: Duration = Duration::from_secs(10);

/// Returns options with this claim lease.
fn leased_for(claim_lease: Duration) -> DispatcherOptions {
    DispatcherOptions {
        claim_lease,
        ..parallel("dispatcher")
    }
}

async fn claims_of_a_living_dispatcher_are_renewed(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let (_stop, running) = begin_cycle(env.dispatcher_with(leased_for(RENEWED_LEASE)));
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    let first = env.get(&workspace, id).await.lease_expires_at.unwrap();
    let recoverer = env.recoverer();
    until("the first lease would have expired", async || {
        round(&recoverer).await;
        let request = env.get(&workspace, id).await;
        request.lease_expires_at.unwrap() > first + RENEWED_LEASE
    })
    .await;
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
    assert_eq!(env.get(&workspace, id).await.attempt_count, 0);
}

async fn stalled_dispatcher_sends_no_start(on: BackendKind) {
    let env = DispatchEnv::new(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.faults
        .inject("version_get", &[StoreFault::Waits(hold.clone())]);
    // A stalled process renews nothing either.
    let blocked = StoreFault::Waits(barrier());
    env.faults.inject("request_renew", &[blocked]);
    let (_stop, running) = begin_cycle(env.dispatcher_with(leased_for(SHORT_LEASE)));
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    let claimed = Instant::now();
    until("its lease has expired", async || {
        claimed.elapsed() > SHORT_LEASE
    })
    .await;
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().lost, 1);
    assert_eq!(env.engine.calls().starts, []);
    round(&env.recoverer()).await;
    assert_eq!(
        cycle(&env.dispatcher_with(parallel("second")))
            .await
            .dispatched,
        1
    );
}

async fn recovery_does_not_touch_valid_claims(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(10).await;
    let ids = env.enqueue(&workspace, 2).await;
    let hold = barrier();
    for id in &ids {
        let wait = Fault::WaitsBefore(hold.clone());
        env.engine.inject(*id, &[wait]);
    }
    let one = DispatcherOptions {
        batch_size: 1,
        ..parallel("dead")
    };
    let dead = run_doomed(&env, one);
    env.until_all(&workspace, &ids[..1], RequestStatus::Claimed)
        .await;
    crash(&env, dead).await;
    env.pass_backoffs();
    let (stop, alive) = begin_cycle(env.dispatcher());
    env.until_all(&workspace, &ids, RequestStatus::Claimed)
        .await;
    let begun = env.execution(&workspace, ids[1]).await;
    until("it is being started", async || {
        env.engine.starts_of(begun) == 1
    })
    .await;
    stop.cancel();
    // While one dispatcher is active, only the claim of the dead one is recovered.
    round(&env.recoverer()).await;
    assert_eq!(env.get(&workspace, ids[0]).await.attempt_count, 1);
    assert_eq!(env.status(&workspace, ids[1]).await, RequestStatus::Claimed);
    hold.add_permits(10);
    assert_eq!(alive.await.unwrap().dispatched, 1);
    assert_eq!(env.get(&workspace, ids[1]).await.attempt_count, 0);
}

async fn recovery_waits_while_another_recovers(on: BackendKind) {
    let env = DispatchEnv::with_manual_clock(on).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    env.engine.inject(id, &[Fault::Hangs]);
    let dead = run_doomed(&env, parallel("dead"));
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    crash(&env, dead).await;
    env.pass_backoffs();
    let lock = LockRequest {
        name: "recoverStaleQueueItems".to_owned(),
        owner: "another instance".to_owned(),
        at_most_for: NEVER,
    };
    env.store.lock_acquire(&lock).await.unwrap();
    let recoverer = env.recoverer();
    round(&recoverer).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Claimed);
    env.advance(NEVER);
    round(&recoverer).await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
}
