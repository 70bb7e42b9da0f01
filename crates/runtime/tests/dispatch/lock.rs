//! The named lock of the exclusive mode: held by another instance, expired, table missing, database lost. PostgreSQL only: a
//! SQLite file has one process, which needs no lock.

use crate::dispatch_env::{DispatchEnv, Setup, postgres_address, until};
use crate::fixtures::{NEVER, cycle, options, round};
use crate::logs;
use leasehold_core::RequestStatus;
use leasehold_core::breaker::BreakerSettings;
use leasehold_runtime::{CircuitBreaker, Dispatcher, DispatcherOptions, LockOptions};
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use leasehold_testbed::BackendKind;
use leasehold_testkit::FaultProxy;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Level;

const SHEDLOCK_DROP: &str = include_str!("../sql/shedlock_drop.sql");
const SHEDLOCK_CREATE: &str = include_str!("../sql/shedlock_create.sql");
const SHEDLOCK_LOCK: &str = include_str!("../sql/shedlock_lock.sql");
const HELD_FOR: Duration = Duration::from_secs(15);

scenarios! {
    both: ;
    postgres: lock_unavailable, lock_expired_while_its_holder_was_stalled, lock_table_missing,
        database_lost_at_the_lock, lock_is_extended_during_a_long_batch, only_one_of_two_dispatchers_works,
        dispatcher_without_engine_releases_the_lock_to_another, locked_row_of_the_lock_does_not_stop_dispatch;
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

/// Acquires the dispatchers' lock for another owner.
async fn take_lock(env: &DispatchEnv) -> LockToken {
    let request = LockRequest {
        name: "processExecutionQueue".to_owned(),
        owner: "another instance".to_owned(),
        at_most_for: NEVER,
    };
    match env.store.lock_acquire(&request).await.unwrap() {
        LockAcquired::Acquired { token, .. } => token,
        LockAcquired::Held { by, .. } => panic!("{by} holds it"),
    }
}

async fn lock_unavailable() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let token = take_lock(&env).await;
    let dispatcher = env.dispatcher();
    assert!(!may_work(&dispatcher).await);
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
    assert_eq!(env.engine.calls().starts, []);
    assert_eq!(
        logs::count(Level::WARN, &[]) + logs::count(Level::ERROR, &[]),
        0
    );
    // The dispatcher retries without being stopped.
    let running = env.run(options("dispatcher"));
    let token = env.store.lock_release(&token, Duration::ZERO).await;
    assert!(token.unwrap());
    env.until_all(&workspace, &[id], RequestStatus::Dispatched)
        .await;
    assert_eq!(env.get(&workspace, id).await.attempt_count, 0);
    running.stop().await;
}

async fn lock_expired_while_its_holder_was_stalled() {
    let env = DispatchEnv::with_manual_clock(BackendKind::Postgres).await;
    let workspace = env.workspace(5).await;
    let first = env.dispatcher_with(named("first"));
    let second = env.dispatcher_with(named("second"));
    assert!(may_work(&first).await);
    assert!(!may_work(&second).await);
    env.advance(HELD_FOR);
    assert!(may_work(&second).await);
    let ids = env.enqueue(&workspace, 3).await;
    // The first still assumes that it holds the lock; its claim detects the loss.
    let stale = cycle(&first).await;
    assert_eq!((stale.batches, stale.dispatched), (vec![], 0));
    for id in &ids {
        assert_eq!(env.status(&workspace, *id).await, RequestStatus::Pending);
    }
    until("the first stands by", async || !may_work(&first).await).await;
    logs::assert_once(Level::WARN, &["lock lost", "owner=first"]);
    assert_eq!(cycle(&second).await.dispatched, 3);
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
}

/// Only the first dispatcher cannot reach the engine. It must release the lock to the second.
async fn dispatcher_without_engine_releases_the_lock_to_another() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(1).await;
    let before = env.enqueue_one(&workspace).await;
    let first = env.run(options("first"));
    let dispatched = RequestStatus::Dispatched;
    env.until_all(&workspace, &[before], dispatched).await;
    env.engine.set_healthy(false);
    round(&env.prober()).await;
    assert_eq!(env.breaker.allowance(), 0);
    let closed = Arc::new(CircuitBreaker::new(BreakerSettings::default()));
    let store = env.other_process();
    let second = Dispatcher::new(store, env.engine.clone(), closed, options("second"));
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let running = tokio::spawn(async move { second.run(&stopped).await });
    env.set_limit(&workspace, 2).await;
    let id = env.enqueue_one(&workspace).await;
    env.until_all(&workspace, &[id], dispatched).await;
    let locks = env.store.lock_list().await.unwrap();
    let lock = locks
        .iter()
        .find(|lock| lock.name == "processExecutionQueue");
    assert_eq!(lock.unwrap().owner, "second");
    stop.cancel();
    running.await.unwrap();
    first.stop().await;
}

async fn lock_table_missing() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let client = env.sql_client().await;
    client.batch_execute(SHEDLOCK_DROP).await.unwrap();
    let running = env.run(named("dispatcher"));
    let expected = ["dispatcher failed to complete a round", "shedlock"];
    until("the failure is logged", async || {
        logs::count(Level::ERROR, &expected) == 1
    })
    .await;
    assert_eq!(env.status(&workspace, id).await, RequestStatus::Pending);
    client.batch_execute(SHEDLOCK_CREATE).await.unwrap();
    env.until_all(&workspace, &[id], RequestStatus::Dispatched)
        .await;
    until("the recovery is logged", async || {
        logs::count(Level::INFO, &["dispatcher recovered"]) == 1
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
    let env = DispatchEnv::with(BackendKind::Postgres, setup).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    proxy.refuse();
    proxy.cut();
    let running = env.run(named("dispatcher"));
    let expected = ["dispatcher failed to complete a round", "lock_acquire"];
    until("the failure is logged", async || {
        logs::count(Level::ERROR, &expected) == 1
    })
    .await;
    proxy.accept_again();
    env.until_all(&workspace, &[id], RequestStatus::Dispatched)
        .await;
    let request = env.get(&workspace, id).await;
    assert_eq!((request.attempt_count, request.dispatch_failures), (0, 0));
    running.stop().await;
}

/// A lock without extension would expire during a batch that takes longer than its lease.
async fn lock_is_extended_during_a_long_batch() {
    use crate::faulty_engine::{Fault, barrier};
    /// Extended after a third of it, which a busy machine may delay by seconds.
    const LOCK: Duration = Duration::from_secs(6);
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(1).await;
    let id = env.enqueue_one(&workspace).await;
    let hold = barrier();
    env.engine.inject(id, &[Fault::WaitsBefore(hold.clone())]);
    let mut quick = named("first");
    quick.lock.at_most_for = LOCK;
    let first = env.run(quick);
    env.until_all(&workspace, &[id], RequestStatus::Claimed)
        .await;
    let until_when = async || {
        let locks = env.store.lock_list().await.unwrap();
        locks[0].until
    };
    let taken_until = until_when().await;
    let second = env.dispatcher_with(named("second"));
    until("the first lease of the lock has passed", async || {
        assert!(!may_work(&second).await);
        until_when().await > taken_until + LOCK
    })
    .await;
    hold.add_permits(1);
    env.until_all(&workspace, &[id], RequestStatus::Dispatched)
        .await;
    first.stop().await;
}

async fn only_one_of_two_dispatchers_works() {
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(50).await;
    let first = env.run(named("first"));
    until("the first has the lock", async || {
        let locks = env.store.lock_list().await.unwrap();
        locks.iter().any(|lock| lock.owner == "first")
    })
    .await;
    let second = env.run(named("second"));
    let ids = env.enqueue(&workspace, 30).await;
    env.until_all(&workspace, &ids, RequestStatus::Dispatched)
        .await;
    for id in ids {
        let events = env.store.request_timeline(workspace.workspace, id).await;
        let claimers = events.unwrap().into_iter().skip(1).map(|event| event.by);
        assert!(claimers.into_iter().all(|by| by == "first"));
    }
    first.stop().await;
    let next = env.enqueue_one(&workspace).await;
    env.until_all(&workspace, &[next], RequestStatus::Dispatched)
        .await;
    second.stop().await;
}

/// While a forgotten transaction holds the row, no instance can acquire the lock, so its last holder goes on, also after the lock's time has passed.
async fn locked_row_of_the_lock_does_not_stop_dispatch() {
    const LOCK: Duration = Duration::from_secs(2);
    let env = DispatchEnv::new(BackendKind::Postgres).await;
    let workspace = env.workspace(50).await;
    let mut quick = named("first");
    quick.lock.at_most_for = LOCK;
    let first = env.run(quick);
    let before = env.enqueue_one(&workspace).await;
    let dispatched = RequestStatus::Dispatched;
    env.until_all(&workspace, &[before], dispatched).await;
    let operator = env.sql_client().await;
    operator.batch_execute("BEGIN").await.unwrap();
    let locked = operator.query(SHEDLOCK_LOCK, &[]).await.unwrap();
    assert_eq!(locked.len(), 1);
    let second = env.dispatcher_with(named("second"));
    until("the time of the lock has passed", async || {
        let beside = env.enqueue_one(&workspace).await;
        env.until_all(&workspace, &[beside], dispatched).await;
        assert!(!may_work(&second).await);
        let locks = env.store.lock_list().await.unwrap();
        locks[0].until < env.store.now().await.unwrap()
    })
    .await;
    let after = env.enqueue_one(&workspace).await;
    env.until_all(&workspace, &[after], dispatched).await;
    operator.batch_execute("ROLLBACK").await.unwrap();
    until("the lock is held again", async || {
        let locks = env.store.lock_list().await.unwrap();
        locks[0].until > env.store.now().await.unwrap()
    })
    .await;
    let next = env.enqueue_one(&workspace).await;
    env.until_all(&workspace, &[next], dispatched).await;
    logs::assert_once(
        Level::WARN,
        &["row of a held lock is locked", "owner=first"],
    );
    first.stop().await;
}
