//! The named lock of the exclusive mode: held by another, expired, its table missing, its database away. PostgreSQL only: a
//! SQLite file has one process, which needs no lock.

use crate::cast::{NEVER, cycle, options, round};
use crate::dispatch_env::{DispatchEnv, Setup, postgres_address, until};
use crate::logs;
use leasehold_core::RequestStatus;
use leasehold_core::breaker::BreakerSettings;
use leasehold_runtime::{Dispatcher, DispatcherOptions, Gate, LockOptions};
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Level;

const SHEDLOCK_DROP: &str = include_str!("../sql/shedlock_drop.sql");
const SHEDLOCK_CREATE: &str = include_str!("../sql/shedlock_create.sql");
const HELD_FOR: Duration = Duration::from_secs(15);

scenarios! {
    both: ;
    postgres: lock_unavailable, lock_expired_while_its_holder_stood_still, lock_table_missing,
        database_lost_at_the_lock, lock_is_kept_alive_while_a_batch_takes_long, only_one_of_two_dispatchers_works,
        who_cannot_reach_the_engine_gives_way_to_one_who_can;
}

fn named(owner: &str) -> DispatcherOptions {
    DispatcherOptions {
        lock: LockOptions {
            at_most_for: HELD_FOR,
            at_least_for: Duration::ZERO,
        },
        ..options(owner)
    }
}

async fn may_work(dispatcher: &Dispatcher) -> bool {
    let ran = dispatcher.run_once(&CancellationToken::new()).await;
    ran.unwrap().is_some()
}

/// Takes the dispatchers' lock for somebody else.
async fn take_lock(scene: &DispatchEnv) -> LockToken {
    let request = LockRequest {
        name: "processExecutionQueue".to_owned(),
        owner: "somebody".to_owned(),
        at_most_for: NEVER,
    };
    match scene.store.lock_acquire(&request).await.unwrap() {
        LockAcquired::Acquired { token, .. } => token,
        LockAcquired::Held { by, .. } => panic!("{by} holds it"),
    }
}

async fn lock_unavailable() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let token = take_lock(&scene).await;
    let dispatcher = scene.dispatcher();
    assert!(!may_work(&dispatcher).await);
    assert_eq!(scene.status(&site, id).await, RequestStatus::Pending);
    assert_eq!(scene.engine.calls().starts, []);
    assert_eq!(
        logs::count(Level::WARN, &[]) + logs::count(Level::ERROR, &[]),
        0
    );
    // It tries again by itself.
    let running = scene.run(options("dispatcher"));
    let token = scene.store.lock_release(&token, Duration::ZERO).await;
    assert!(token.unwrap());
    scene
        .until_all(&site, &[id], RequestStatus::Dispatched)
        .await;
    assert_eq!(scene.get(&site, id).await.attempt_count, 0);
    running.stop().await;
}

async fn lock_expired_while_its_holder_stood_still() {
    let scene = DispatchEnv::still(BackendKind::Postgres).await;
    let site = scene.site(5).await;
    let first = scene.dispatcher_with(named("first"));
    let second = scene.dispatcher_with(named("second"));
    assert!(may_work(&first).await);
    assert!(!may_work(&second).await);
    scene.advance(HELD_FOR);
    assert!(may_work(&second).await);
    let ids = scene.enqueue(&site, 3).await;
    // The first believes that it holds the lock still; the claim itself finds out.
    let fooled = cycle(&first).await;
    assert_eq!((fooled.batches, fooled.dispatched), (vec![], 0));
    for id in &ids {
        assert_eq!(scene.status(&site, *id).await, RequestStatus::Pending);
    }
    until("the first stands by", async || !may_work(&first).await).await;
    logs::assert_once(Level::WARN, &["lock lost", "owner=first"]);
    assert_eq!(cycle(&second).await.dispatched, 3);
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
}

/// Only the first one's network is cut. It must not keep the lock from the second, which could work.
async fn who_cannot_reach_the_engine_gives_way_to_one_who_can() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(1).await;
    let before = scene.enqueue_one(&site).await;
    let first = scene.run(options("first"));
    let dispatched = RequestStatus::Dispatched;
    scene.until_all(&site, &[before], dispatched).await;
    scene.engine.set_healthy(false);
    round(&scene.prober()).await;
    assert_eq!(scene.gate.allowance(), 0);
    let well = Arc::new(Gate::new(BreakerSettings::default()));
    let store = scene.other_process();
    let second = Dispatcher::new(store, scene.engine.clone(), well, options("second"));
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let running = tokio::spawn(async move { second.run(&stopped).await });
    scene.set_limit(&site, 2).await;
    let id = scene.enqueue_one(&site).await;
    scene.until_all(&site, &[id], dispatched).await;
    let locks = scene.store.lock_list().await.unwrap();
    let lock = locks
        .iter()
        .find(|lock| lock.name == "processExecutionQueue");
    assert_eq!(lock.unwrap().owner, "second");
    stop.cancel();
    running.await.unwrap();
    first.stop().await;
}

async fn lock_table_missing() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hand = scene.by_hand().await;
    hand.batch_execute(SHEDLOCK_DROP).await.unwrap();
    let running = scene.run(named("dispatcher"));
    let said = ["dispatcher cannot do its work", "shedlock"];
    until("it says so", async || logs::count(Level::ERROR, &said) == 1).await;
    assert_eq!(scene.status(&site, id).await, RequestStatus::Pending);
    hand.batch_execute(SHEDLOCK_CREATE).await.unwrap();
    scene
        .until_all(&site, &[id], RequestStatus::Dispatched)
        .await;
    until("it says so", async || {
        logs::count(Level::INFO, &["dispatcher works again"]) == 1
    })
    .await;
    running.stop().await;
}

async fn database_lost_at_the_lock() {
    let proxy = FaultProxy::to(&postgres_address()).await;
    let setup = Setup {
        postgres: Some(proxy.address()),
        ..Setup::default()
    };
    let scene = DispatchEnv::with(BackendKind::Postgres, setup).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    proxy.refuse();
    proxy.cut();
    let running = scene.run(named("dispatcher"));
    let said = ["dispatcher cannot do its work", "lock_acquire"];
    until("it says so", async || logs::count(Level::ERROR, &said) == 1).await;
    proxy.accept_again();
    scene
        .until_all(&site, &[id], RequestStatus::Dispatched)
        .await;
    let request = scene.get(&site, id).await;
    assert_eq!((request.attempt_count, request.dispatch_failures), (0, 0));
    running.stop().await;
}

/// The design documents' lock ends under a batch that takes longer than it; ours is kept alive.
async fn lock_is_kept_alive_while_a_batch_takes_long() {
    use crate::faulty_engine::{Fault, barrier};
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(1).await;
    let id = scene.enqueue_one(&site).await;
    let hold = barrier();
    scene.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let mut quick = named("first");
    quick.lock.at_most_for = Duration::from_millis(900);
    let first = scene.run(quick);
    scene.until_all(&site, &[id], RequestStatus::Claimed).await;
    let until_when = async || {
        let locks = scene.store.lock_list().await.unwrap();
        locks[0].until
    };
    let taken_until = until_when().await;
    let second = scene.dispatcher_with(named("second"));
    until("the time it was taken for has passed", async || {
        assert!(!may_work(&second).await);
        until_when().await > taken_until + Duration::from_millis(900)
    })
    .await;
    hold.add_permits(1);
    scene
        .until_all(&site, &[id], RequestStatus::Dispatched)
        .await;
    first.stop().await;
}

async fn only_one_of_two_dispatchers_works() {
    let scene = DispatchEnv::new(BackendKind::Postgres).await;
    let site = scene.site(50).await;
    let first = scene.run(named("first"));
    until("the first has the lock", async || {
        let locks = scene.store.lock_list().await.unwrap();
        locks.iter().any(|lock| lock.owner == "first")
    })
    .await;
    let second = scene.run(named("second"));
    let ids = scene.enqueue(&site, 30).await;
    scene
        .until_all(&site, &ids, RequestStatus::Dispatched)
        .await;
    for id in ids {
        let events = scene.store.request_timeline(site.workspace, id).await;
        let claimers = events.unwrap().into_iter().skip(1).map(|event| event.by);
        assert!(claimers.into_iter().all(|by| by == "first"));
    }
    first.stop().await;
    let next = scene.enqueue_one(&site).await;
    scene
        .until_all(&site, &[next], RequestStatus::Dispatched)
        .await;
    second.stop().await;
}
