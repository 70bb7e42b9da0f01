//! Notifications between processes: when they are sent, and what happens when connections break.
#![allow(clippy::unwrap_used)]

mod spy;

use crate::support::{self, raw};
use leasehold_core::ExecutionEnd;
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::notification::{Notification, NotificationStore};
use leasehold_store::request::NewRequest;
use leasehold_store::{Clock, SchemaStore, Store};
use leasehold_store_conformance::factory::new_request;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{TestDatabase, TestPostgres, eventually};
use serde_json::json;
use spy::NotificationSpy;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Client;

const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const LOCK_WAITS: &str = include_str!("sql/lock_waits.sql");
const TERMINATE: &str = include_str!("sql/notify_terminate.sql");
const SESSIONS: &str = include_str!("sql/notify_sessions.sql");
const WAITERS: &str = include_str!("sql/notify_waiters.sql");
const COUNT: &str = include_str!("sql/notify_count.sql");
const CALLS: &str = include_str!("sql/notify_calls.sql");
const OFF: &str = include_str!("sql/notify_off.sql");

const SOON: Duration = Duration::from_secs(120);
/// Less than the time until a listener tries again to arm after an open transaction has blocked it.
const BEFORE_RETRY: Duration = Duration::from_secs(4);
/// How often a scenario is repeated that a slow machine made meaningless.
const ATTEMPTS: usize = 10;
const SILENCE: Duration = Duration::from_millis(200);

/// Simulates a process: a store with its own connections on the shared database.
fn process(url: &str) -> Fixture {
    let clock = clock();
    let options = PostgresOptions {
        clock: Clock::Manual(clock.clone()),
        ..PostgresOptions::new(url)
    };
    Fixture::new(Arc::new(PostgresStore::new(&options).unwrap()), clock)
}

async fn is_woken(f: &Fixture, kind: Notification) -> bool {
    timeout(SOON, f.store.notification_wait(kind)).await.is_ok()
}

/// Whether the waiter is woken for work by what happens meanwhile. It waits all the time: an unused waiter lock would be released after
/// some seconds, which a slow machine may need.
async fn is_woken_by<T>(f: &Fixture, meanwhile: impl Future<Output = T>) -> bool {
    tokio::join!(is_woken(f, Notification::Work), meanwhile).0
}

/// Waits for work in the background, so that the waiter lock of this process stays in use.
fn keep_waiting(f: &Fixture) -> JoinHandle<()> {
    let store = Arc::clone(&f.store);
    tokio::spawn(async move { store.notification_wait(Notification::Work).await })
}

/// A process that does not wait is busy.
async fn stop_waiting(waiting: JoinHandle<()>) {
    waiting.abort();
    let _ = waiting.await;
}

async fn is_silent(f: &Fixture) -> bool {
    timeout(SILENCE, f.store.notification_wait(Notification::Work))
        .await
        .is_err()
}

async fn arms(f: &Fixture) -> bool {
    f.store.notification_arm().await.unwrap()
}

/// Arms, and consumes earlier notifications.
async fn start_waiting(f: &Fixture) {
    let quiet = eventually(SOON, || async { arms(f).await && is_silent(f).await }).await;
    assert!(quiet, "notifications do not stop");
}

async fn enqueue_by_sql(client: &Client, workspace: &TestWorkspace) {
    client
        .query_one(
            ENQUEUE,
            &[
                &workspace.workspace.0,
                &workspace.definition.0,
                &json!(null),
            ],
        )
        .await
        .unwrap();
}

async fn is_lock_awaited(client: &Client) -> bool {
    let row = client.query_one(LOCK_WAITS, &[]).await.unwrap();
    row.get::<_, i64>("waiting") > 0
}

#[tokio::test]
async fn other_processes_and_the_sql_function_wake_a_waiter() {
    let database = support::database().await;
    let (waiter, other) = (process(database.url()), process(database.url()));
    let workspace = other.workspace(5).await;
    let client = raw::connect(&database).await;
    start_waiting(&waiter).await;
    assert!(is_woken_by(&waiter, other.enqueue(&workspace, 1)).await);
    start_waiting(&waiter).await;
    assert!(is_woken_by(&waiter, enqueue_by_sql(&client, &workspace)).await);
    let running = other.drain(10).await.requests;
    other.dispatch(&running[0]).await;
    start_waiting(&waiter).await;
    let finish = other.finish(running[0].execution, ExecutionEnd::Completed);
    assert!(is_woken_by(&waiter, finish).await);
    for kind in [Notification::Cancel, Notification::Ended] {
        while timeout(SILENCE, waiter.store.notification_wait(kind))
            .await
            .is_ok()
        {}
    }
    other.dispatch(&running[1]).await;
    other.cancel(workspace.workspace, running[1].id).await;
    assert!(is_woken(&waiter, Notification::Cancel).await);
    other.store.notify(Notification::Ended).await.unwrap();
    assert!(is_woken(&waiter, Notification::Ended).await);
}

#[tokio::test]
async fn transactions_do_not_notify_while_no_dispatcher_waits() {
    let database = support::database().await;
    let mut spy = NotificationSpy::new(&database).await;
    let (dispatcher, other) = (process(database.url()), process(database.url()));
    let workspace = other.workspace(50).await;
    other.enqueue(&workspace, 3).await;
    let claimed = dispatcher.claim_one().await;
    dispatcher
        .finish(claimed.execution, ExecutionEnd::Completed)
        .await;
    assert_eq!(spy.received().await, [""; 0], "no dispatcher waited");
    start_waiting(&dispatcher).await;
    assert!(is_woken_by(&dispatcher, other.enqueue(&workspace, 20)).await);
    assert_eq!(spy.received().await, ["work"], "one for the whole call");
    let quiet = eventually(SOON, || async {
        other.enqueue(&workspace, 1).await;
        is_silent(&dispatcher).await
    });
    assert!(quiet.await, "a notified waiter is busy");
    spy.received().await;
    other.enqueue(&workspace, 1).await;
    assert_eq!(spy.received().await, [""; 0]);
}

/// The waiter finds work by polling; its claim stops the notifications.
#[tokio::test]
async fn waiter_that_finds_work_by_polling_stops_notifications() {
    let database = support::database().await;
    let client = raw::connect(&database).await;
    let dispatcher = process(database.url());
    let workspace = dispatcher.workspace(5).await;
    let later = NewRequest {
        run_at: Some(dispatcher.now() + Duration::from_secs(5)),
        ..new_request(&workspace)
    };
    dispatcher.enqueue_one(&workspace, later).await;
    let waits = async || {
        let row = client.query_one(WAITERS, &[]).await.unwrap();
        row.get::<_, i64>("waiters") == 1
    };
    start_waiting(&dispatcher).await;
    // Only the claim can release the lock of a waiter.
    let waiting = keep_waiting(&dispatcher);
    assert_eq!(dispatcher.claim(1).await.requests.len(), 0);
    assert!(waits().await, "a claim without work changes nothing");
    stop_waiting(waiting).await;
    dispatcher.advance(5);
    assert_eq!(dispatcher.claim(1).await.requests.len(), 1);
    assert!(eventually(SOON, async || !waits().await).await);
}

#[tokio::test]
async fn work_committed_while_arming_is_found_by_the_next_poll() {
    let database = support::database().await;
    let mut spy = NotificationSpy::new(&database).await;
    let waiter = process(database.url());
    let workspace = waiter.workspace(50).await;
    let (early, late) = (raw::connect(&database).await, raw::connect(&database).await);
    for _ in 0..ATTEMPTS {
        start_waiting(&waiter).await;
        waiter.enqueue(&workspace, 1).await;
        assert_eq!(waiter.drain(1).await.requests.len(), 1);
        while !is_silent(&waiter).await {}
        spy.received().await;
        early.batch_execute("BEGIN").await.unwrap();
        enqueue_by_sql(&early, &workspace).await;
        let store = Arc::clone(&waiter.store);
        let arming = tokio::spawn(async move { store.notification_arm().await.unwrap() });
        let is_awaited = eventually(SOON, || async {
            arming.is_finished() || is_lock_awaited(&late).await
        });
        assert!(is_awaited.await, "arming waits for the open transaction");
        enqueue_by_sql(&late, &workspace).await;
        early.batch_execute("COMMIT").await.unwrap();
        let is_armed = arming.await.unwrap();
        let received = spy.received().await;
        let found = waiter.drain(5).await.requests;
        assert_eq!(found.len(), 2);
        if is_armed {
            assert_eq!(received, ["work"], "only the late transaction notified");
            return;
        }
        // Arming gave up before `early` committed: the machine was too slow for the order under test.
    }
    panic!("arming gave up {ATTEMPTS} times");
}

#[tokio::test]
async fn arming_times_out_on_a_long_open_transaction() {
    let database = support::database().await;
    let mut spy = NotificationSpy::new(&database).await;
    let waiter = process(database.url());
    let workspace = waiter.workspace(5).await;
    let (stays, other) = (raw::connect(&database).await, raw::connect(&database).await);
    stays.batch_execute("BEGIN").await.unwrap();
    enqueue_by_sql(&stays, &workspace).await;
    assert!(!arms(&waiter).await);
    let begun = Instant::now();
    spy.received().await;
    enqueue_by_sql(&other, &workspace).await;
    let received = spy.received().await;
    // A listener that tries again is notified.
    if begun.elapsed() < BEFORE_RETRY {
        assert_eq!(received, [""; 0], "no dispatcher waits");
    }
    stays.batch_execute("COMMIT").await.unwrap();
    assert!(eventually(SOON, || arms(&waiter)).await);
}

#[tokio::test]
async fn one_waiter_holds_the_lock_and_all_listeners_are_notified() {
    let database = support::database().await;
    let (first, second) = (process(database.url()), process(database.url()));
    let workspace = first.workspace(5).await;
    let other = raw::connect(&database).await;
    start_waiting(&first).await;
    let enqueue = async {
        while !is_silent(&second).await {}
        assert!(!arms(&second).await);
        enqueue_by_sql(&other, &workspace).await;
    };
    assert!(is_woken_by(&first, enqueue).await);
    assert!(
        is_woken(&second, Notification::Work).await,
        "all listeners are notified"
    );
    let acquired = eventually(SOON, || arms(&second)).await;
    assert!(acquired, "the lock is free when its holder is busy");
}

/// The first finds work by polling, so nothing is notified: the second learns of it only by acquiring the waiter lock.
#[tokio::test]
async fn second_waiter_takes_over_when_the_first_is_busy() {
    let database = support::database().await;
    let (first, second) = (process(database.url()), process(database.url()));
    let workspace = first.workspace(5).await;
    let later = NewRequest {
        run_at: Some(first.now() + Duration::from_secs(5)),
        ..new_request(&workspace)
    };
    first.enqueue_one(&workspace, later).await;
    let client = raw::connect(&database).await;
    start_waiting(&first).await;
    let waiting = keep_waiting(&first);
    while !is_silent(&second).await {}
    assert!(!arms(&second).await);
    // An attempt to acquire the lock that times out on a slow machine wakes the second, too.
    let silent = eventually(SOON, || is_silent(&second)).await;
    assert!(silent, "only the first would be notified");
    stop_waiting(waiting).await;
    first.advance(5);
    assert_eq!(first.claim(1).await.requests.len(), 1);
    assert!(
        is_woken(&second, Notification::Work).await,
        "notifications may have been missed"
    );
    assert!(
        is_woken_by(&second, enqueue_by_sql(&client, &workspace)).await,
        "it holds the waiter lock"
    );
}

#[tokio::test]
async fn unused_waiter_lock_is_released() {
    let database = support::database().await;
    let (gone, other) = (process(database.url()), process(database.url()));
    start_waiting(&gone).await;
    assert!(eventually(SOON, || arms(&gone)).await);
    assert!(eventually(SOON, || arms(&other)).await);
}

#[tokio::test]
async fn with_notify_off_only_this_process_wakes_its_waiters() {
    let database = support::database().await;
    let clock = clock();
    let name = "unnotified";
    let options = PostgresOptions {
        clock: Clock::Manual(clock.clone()),
        notify: false,
        max_connections: 1,
        ..PostgresOptions::new(format!("{}?application_name={name}", database.url()))
    };
    let store: Arc<dyn Store> = Arc::new(PostgresStore::new(&options).unwrap());
    let (unnotified, other) = (Fixture::new(store, clock), process(database.url()));
    let workspace = unnotified.workspace(5).await;
    assert!(!arms(&unnotified).await);
    unnotified.enqueue(&workspace, 1).await;
    assert!(is_woken(&unnotified, Notification::Work).await);
    other.store.notify(Notification::Work).await.unwrap();
    assert!(is_silent(&unnotified).await);
    let client = raw::connect(&database).await;
    let row = client.query_one(SESSIONS, &[&name]).await.unwrap();
    assert_eq!(
        row.get::<_, i64>("sessions"),
        1,
        "it has no listener connection"
    );
    start_waiting(&other).await;
    assert!(
        is_woken_by(&other, unnotified.enqueue(&workspace, 1)).await,
        "it still notifies other processes"
    );
}

#[tokio::test]
async fn listener_ends_with_the_last_clone_of_its_store() {
    let database = support::database().await;
    let client = raw::connect(&database).await;
    let name = "listening";
    let url = format!("{}?application_name={name}", database.url());
    let store = PostgresStore::new(&PostgresOptions::new(url)).unwrap();
    let sessions = async || {
        let row = client.query_one(SESSIONS, &[&name]).await.unwrap();
        row.get::<_, i64>("sessions")
    };
    let clone = store.clone();
    let arms = async |store: &PostgresStore| store.notification_arm().await.unwrap();
    assert!(eventually(SOON, || arms(&store)).await);
    drop(store);
    assert!(eventually(SOON, || arms(&clone)).await, "clones share it");
    assert_eq!(sessions().await, 1);
    drop(clone);
    assert!(eventually(SOON, async || sessions().await == 0).await);
}

#[tokio::test]
async fn listener_reconnects_after_lost_connection_and_wakes_waiters() {
    let database = support::database().await;
    let (waiter, other) = (process(database.url()), process(database.url()));
    let workspace = other.workspace(5).await;
    start_waiting(&waiter).await;
    let client = raw::connect(&database).await;
    let terminated: i64 = client
        .query_one(TERMINATE, &[])
        .await
        .unwrap()
        .get("terminated");
    assert_eq!(terminated, 1);
    for kind in Notification::ALL {
        assert!(
            is_woken(&waiter, kind).await,
            "notifications may have been missed"
        );
    }
    start_waiting(&waiter).await;
    assert!(is_woken_by(&waiter, other.enqueue(&workspace, 1)).await);
}

async fn migrated(server: &TestPostgres) -> TestDatabase {
    let database = server.fresh_database(None).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    store.schema_migrate().await.unwrap();
    database
}

#[tokio::test(flavor = "multi_thread")]
async fn listener_reconnects_after_server_restart() {
    let mut cluster = leasehold_testkit::fresh_cluster(&[]);
    let database = migrated(&TestPostgres::at(cluster.url())).await;
    let waiter = process(database.url());
    let workspace = waiter.workspace(5).await;
    start_waiting(&waiter).await;
    tokio::task::block_in_place(|| cluster.restart_immediate()).unwrap();
    assert!(
        is_woken(&waiter, Notification::Work).await,
        "notifications may have been missed"
    );
    let client = raw::connect(&database).await;
    start_waiting(&waiter).await;
    assert!(is_woken_by(&waiter, enqueue_by_sql(&client, &workspace)).await);
    drop((waiter, database));
}

/// Once a statement, however many rows: each call checks a shared lock.
#[tokio::test]
async fn statement_checks_once_for_a_waiter() {
    let database = support::database().await;
    let client = raw::connect(&database).await;
    client.batch_execute(COUNT).await.unwrap();
    let calls = async || {
        let row = client.query_one(CALLS, &[]).await.unwrap();
        row.get::<_, i64>("calls")
    };
    let f = process(database.url());
    let workspace = f.workspace(100).await;
    f.enqueue(&workspace, 50).await;
    assert_eq!(calls().await, 1);
    let claimed = f.drain(100).await.requests;
    for request in &claimed {
        f.dispatch(request).await;
    }
    assert_eq!(calls().await, 1, "claiming creates no work");
    let ends: Vec<_> = claimed
        .iter()
        .map(|request| ExecutionFinish {
            execution: request.execution,
            end: ExecutionEnd::Failed,
            error: None,
        })
        .collect();
    f.store.execution_finish("engine", &ends).await.unwrap();
    assert_eq!(calls().await, 2);
    f.store.execution_finish("engine", &ends).await.unwrap();
    f.store.request_recover("sweeper", 10).await.unwrap();
    assert_eq!(calls().await, 2, "nothing changed");
    f.set_limit(workspace.workspace, 7).await;
    assert_eq!(calls().await, 3);
}

/// For transactions that are prepared for two-phase commit: PostgreSQL does not allow NOTIFY in them.
#[tokio::test]
async fn session_can_switch_off_its_notifications() {
    let database = support::database().await;
    let mut spy = NotificationSpy::new(&database).await;
    let client = raw::connect(&database).await;
    let dispatcher = process(database.url());
    let workspace = dispatcher.workspace(5).await;
    start_waiting(&dispatcher).await;
    spy.received().await;
    client.batch_execute(OFF).await.unwrap();
    enqueue_by_sql(&client, &workspace).await;
    assert_eq!(spy.received().await, [""; 0]);
    assert_eq!(
        dispatcher.claim(10).await.requests.len(),
        1,
        "the poll finds it"
    );
}
