//! A dispatcher that dies or stands still: its claims run out, are taken back as unknown starts, and are started once.

use crate::cast::{NEVER, Running, begin_cycle, cycle, parallel, round};
use crate::dispatch_env::{DispatchEnv, until};
use crate::faulty_engine::{Fault, barrier};
use crate::faulty_store::Outage;
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
        a_late_dispatcher_writes_nothing, claims_of_a_living_dispatcher_are_renewed,
        a_dispatcher_that_stood_still_sends_nothing, recovery_leaves_living_claims_alone,
        recovery_waits_while_another_recovers;
}

/// Runs a dispatcher that claims once, and whose next claim never arrives.
pub(crate) fn run_doomed(scene: &DispatchEnv, options: DispatcherOptions) -> Running {
    let outages = [Outage::Passes, Outage::Waits(barrier())];
    scene.faults.inject("request_claim", &outages);
    scene.run(options)
}

/// Ends it when nothing of it is under way any more that could come later.
pub(crate) async fn crash(scene: &DispatchEnv, doomed: Running) {
    until("its next claim is sent", async || {
        scene.faults.calls("request_claim") == 2
    })
    .await;
    doomed.crash();
}

/// After the first dispatcher died: its claim is recovered, and a second dispatcher starts the same execution.
async fn assert_resolved_by_another(scene: &DispatchEnv, site: &TestWorkspace, id: RequestId) {
    let execution = scene.execution(site, id).await;
    assert_eq!(scene.status(site, id).await, RequestStatus::Claimed);
    scene.wait_out();
    round(&scene.recoverer()).await;
    logs::assert_once(
        Level::WARN,
        &["Recovered 1 stale queue items", "count=1", "timeout=15s"],
    );
    crate::assert_event("Recovered … stale queue items");
    let request = scene.get(site, id).await;
    assert_eq!(request.status, RequestStatus::Pending);
    assert_eq!((request.attempt_count, request.dispatch_failures), (1, 0));
    assert_eq!(request.execution, Some(execution));
    assert_eq!(scene.in_use(site).await, 1);
    let second = scene.dispatcher_with(parallel("second"));
    assert_eq!(cycle(&second).await.dispatched, 1);
    assert_eq!(scene.execution(site, id).await, execution);
    assert_eq!(scene.status(site, id).await, RequestStatus::Dispatched);
    scene.assert_one_run_each(vec![execution]).await;
}

async fn dispatcher_dies_after_the_claim(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::Hangs]);
    let first = run_doomed(&scene, parallel("first"));
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    crash(&scene, first).await;
    assert_resolved_by_another(&scene, &site, id).await;
}

async fn dispatcher_dies_after_the_engine_accepted(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::WaitsAfter(barrier())]);
    let first = run_doomed(&scene, parallel("first"));
    until("Temporal has it", async || {
        scene.temporal.runs().await.len() == 1
    })
    .await;
    crash(&scene, first).await;
    assert_resolved_by_another(&scene, &site, id).await;
}

async fn dispatcher_dies_before_dispatched_was_written(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene
        .faults
        .inject("request_dispatched", &[Outage::Waits(barrier())]);
    let first = run_doomed(&scene, parallel("first"));
    until("it writes", async || {
        scene.faults.calls("request_dispatched") == 1
    })
    .await;
    crash(&scene, first).await;
    assert_resolved_by_another(&scene, &site, id).await;
}

async fn dispatcher_dies_after_dispatched_was_written(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let first = run_doomed(&scene, parallel("first"));
    scene
        .until_all(&site, &[id], RequestStatus::Dispatched)
        .await;
    crash(&scene, first).await;
    scene.wait_out();
    round(&scene.recoverer()).await;
    assert_eq!(cycle(&scene.dispatcher()).await.batches, [0; 0]);
    let request = scene.get(&site, id).await;
    assert_eq!(
        (request.status, request.attempt_count),
        (RequestStatus::Dispatched, 0)
    );
}

async fn a_late_dispatcher_writes_nothing(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene.engine.inject(id, &[Fault::WaitsAfter(hold.clone())]);
    // It looks once more before it sleeps; that must not take what is recovered.
    let looks = [Outage::Passes, Outage::Waits(hold.clone())];
    scene.faults.inject("request_claim", &looks);
    // No renewal of it comes between the end of its claim and the recovery.
    let (stop, first) = begin_cycle(scene.dispatcher_with(DispatcherOptions {
        claim_lease: Duration::from_secs(300),
        ..parallel("first")
    }));
    until("Temporal has it, and it looks for more", async || {
        scene.temporal.runs().await.len() == 1 && scene.faults.calls("request_claim") == 2
    })
    .await;
    // It claims no more; what it has begun it waits for.
    stop.cancel();
    scene.wait_out();
    round(&scene.recoverer()).await;
    let second = cycle(&scene.dispatcher_with(parallel("second"))).await;
    assert_eq!(second.dispatched, 1, "{}", logs::all());
    let before = scene.get(&site, id).await;
    hold.add_permits(2);
    assert_eq!(first.await.unwrap().lost, 1);
    assert_eq!(scene.get(&site, id).await, before);
    let named = format!("request={id}");
    logs::assert_once(Level::WARN, &["claim lost", &named]);
    scene
        .assert_one_run_each(vec![before.execution.unwrap()])
        .await;
}

/// Options of a dispatcher whose claims end soon.
fn hurried() -> DispatcherOptions {
    DispatcherOptions {
        claim_lease: Duration::from_millis(600),
        ..parallel("dispatcher")
    }
}

async fn claims_of_a_living_dispatcher_are_renewed(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let (_stop, running) = begin_cycle(scene.dispatcher_with(hurried()));
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    let first = scene.get(&site, id).await.lease_expires_at.unwrap();
    let recoverer = scene.recoverer();
    until("the first lease would have ended", async || {
        round(&recoverer).await;
        let request = scene.get(&site, id).await;
        request.lease_expires_at.unwrap() > first + Duration::from_millis(600)
    })
    .await;
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().dispatched, 1);
    assert_eq!(scene.get(&site, id).await.attempt_count, 0);
}

async fn a_dispatcher_that_stood_still_sends_nothing(on: BackendKind) {
    let scene = DispatchEnv::new(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene
        .faults
        .inject("version_get", &[Outage::Waits(hold.clone())]);
    // Whoever stands still renews nothing either.
    let still = Outage::Waits(barrier());
    scene.faults.inject("request_renew", &[still]);
    let (_stop, running) = begin_cycle(scene.dispatcher_with(hurried()));
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    let claimed = Instant::now();
    until("its lease has ended", async || {
        claimed.elapsed() > Duration::from_millis(600)
    })
    .await;
    hold.add_permits(1);
    assert_eq!(running.await.unwrap().lost, 1);
    assert_eq!(scene.engine.calls().starts, []);
    round(&scene.recoverer()).await;
    assert_eq!(
        cycle(&scene.dispatcher_with(parallel("second")))
            .await
            .dispatched,
        1
    );
}

async fn recovery_leaves_living_claims_alone(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(10).await;
    let ids = scene.enqueue(&site, 2).await;
    let hold = barrier();
    for id in &ids {
        let wait = Fault::WaitsBefore(hold.clone());
        scene.engine.inject(*id, &[wait]);
    }
    let one = DispatcherOptions {
        batch_size: 1,
        ..parallel("dead")
    };
    let dead = run_doomed(&scene, one);
    scene
        .until_all(&site, &ids[..1], RequestStatus::Claimed)
        .await;
    crash(&scene, dead).await;
    scene.wait_out();
    let (stop, alive) = begin_cycle(scene.dispatcher());
    scene.until_all(&site, &ids, RequestStatus::Claimed).await;
    let begun = scene.execution(&site, ids[1]).await;
    until("it is being started", async || {
        scene.engine.starts_of(begun) == 1
    })
    .await;
    stop.cancel();
    // While one dispatcher is at work, the claim of the dead one is taken back and no other.
    round(&scene.recoverer()).await;
    assert_eq!(scene.get(&site, ids[0]).await.attempt_count, 1);
    assert_eq!(scene.status(&site, ids[1]).await, RequestStatus::Claimed);
    hold.add_permits(10);
    assert_eq!(alive.await.unwrap().dispatched, 1);
    assert_eq!(scene.get(&site, ids[1]).await.attempt_count, 0);
}

async fn recovery_waits_while_another_recovers(on: BackendKind) {
    let scene = DispatchEnv::still(on).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    scene.engine.inject(id, &[Fault::Hangs]);
    let dead = run_doomed(&scene, parallel("dead"));
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    crash(&scene, dead).await;
    scene.wait_out();
    let lock = LockRequest {
        name: "recoverStaleQueueItems".to_owned(),
        owner: "somebody".to_owned(),
        at_most_for: NEVER,
    };
    scene.store.lock_acquire(&lock).await.unwrap();
    let recoverer = scene.recoverer();
    round(&recoverer).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Claimed);
    scene.advance(NEVER);
    round(&recoverer).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Pending);
}
