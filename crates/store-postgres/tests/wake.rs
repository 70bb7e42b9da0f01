//! Wake-ups between processes: who notifies whom and when, and what becomes of it when connections break.
#![allow(clippy::unwrap_used)]

mod ear;

use crate::support::{self, raw};
use ear::Ear;
use leasehold_core::ExecutionEnd;
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::NewRequest;
use leasehold_store::wake::{Wake, WakeStore};
use leasehold_store::{Clock, SchemaStore, Store};
use leasehold_store_conformance::factory::new_request;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{TestDatabase, TestPostgres, eventually};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::Client;

const ENQUEUE: &str = include_str!("sql/enqueue.sql");
const SOMEONE_WAITS: &str = include_str!("sql/someone_waits.sql");
const CUT: &str = include_str!("sql/wake_cut.sql");
const SESSIONS: &str = include_str!("sql/wake_sessions.sql");
const SEATS: &str = include_str!("sql/wake_seats.sql");
const COUNT: &str = include_str!("sql/wake_count.sql");
const CALLS: &str = include_str!("sql/wake_calls.sql");
const OFF: &str = include_str!("sql/wake_off.sql");

const SOON: Duration = Duration::from_secs(20);
/// Less than an unused seat is kept.
const WITHOUT_DELAY: Duration = Duration::from_secs(4);
const SILENCE: Duration = Duration::from_millis(200);

/// One process: a store with its own connections, beside others on the same database.
fn process(url: &str) -> Fixture {
    let clock = clock();
    let options = PostgresOptions {
        clock: Clock::Manual(clock.clone()),
        ..PostgresOptions::new(url)
    };
    Fixture::new(Arc::new(PostgresStore::new(&options).unwrap()), clock)
}

async fn is_rung(f: &Fixture, wake: Wake) -> bool {
    timeout(SOON, f.store.wake_wait(wake)).await.is_ok()
}

async fn is_silent(f: &Fixture) -> bool {
    timeout(SILENCE, f.store.wake_wait(Wake::Work))
        .await
        .is_err()
}

async fn arms(f: &Fixture) -> bool {
    f.store.wake_arm().await.unwrap()
}

/// Armed, and everything rung before is heard out.
async fn fall_asleep(f: &Fixture) {
    let asleep = eventually(SOON, || async { arms(f).await && is_silent(f).await }).await;
    assert!(asleep, "it never gets quiet");
}

async fn enqueue_by_hand(client: &Client, site: &TestWorkspace) {
    client
        .query_one(
            ENQUEUE,
            &[&site.workspace.0, &site.definition.0, &json!(null)],
        )
        .await
        .unwrap();
}

async fn someone_waits(client: &Client) -> bool {
    eventually(SOON, || async {
        let row = client.query_one(SOMEONE_WAITS, &[]).await.unwrap();
        row.get::<_, i64>("waiting") > 0
    })
    .await
}

#[tokio::test]
async fn another_process_and_the_sql_function_wake_a_sleeper() {
    let database = support::database().await;
    let (sleeper, other) = (process(database.url()), process(database.url()));
    let site = other.site(5).await;
    fall_asleep(&sleeper).await;
    other.enqueue(&site, 1).await;
    assert!(is_rung(&sleeper, Wake::Work).await);
    fall_asleep(&sleeper).await;
    enqueue_by_hand(&raw::connect(&database).await, &site).await;
    assert!(is_rung(&sleeper, Wake::Work).await);
    let running = other.drain(10).await.requests;
    other.dispatch(&running[0]).await;
    fall_asleep(&sleeper).await;
    other
        .finish(running[0].execution, ExecutionEnd::Completed)
        .await;
    assert!(is_rung(&sleeper, Wake::Work).await);
    for wake in [Wake::Cancel, Wake::Ended] {
        while timeout(SILENCE, sleeper.store.wake_wait(wake))
            .await
            .is_ok()
        {}
    }
    other.dispatch(&running[1]).await;
    other.cancel(site.workspace, running[1].id).await;
    assert!(is_rung(&sleeper, Wake::Cancel).await);
    other.store.wake_ring(Wake::Ended).await.unwrap();
    assert!(is_rung(&sleeper, Wake::Ended).await);
}

#[tokio::test]
async fn nobody_is_notified_where_nobody_sleeps() {
    let database = support::database().await;
    let mut ear = Ear::new(&database).await;
    let (dispatcher, other) = (process(database.url()), process(database.url()));
    let site = other.site(50).await;
    other.enqueue(&site, 3).await;
    let claimed = dispatcher.claim_one().await;
    dispatcher
        .finish(claimed.execution, ExecutionEnd::Completed)
        .await;
    assert_eq!(ear.hear().await, [""; 0], "nobody ever slept");
    fall_asleep(&dispatcher).await;
    other.enqueue(&site, 20).await;
    assert_eq!(ear.hear().await, ["work"], "one for the whole call");
    assert!(is_rung(&dispatcher, Wake::Work).await);
    let quiet = eventually(SOON, || async {
        other.enqueue(&site, 1).await;
        is_silent(&dispatcher).await
    });
    assert!(quiet.await, "who was rung for is awake");
    ear.hear().await;
    other.enqueue(&site, 1).await;
    assert_eq!(ear.hear().await, [""; 0]);
}

/// Woken by the clock and not by a ring: its claim tells that it is awake.
#[tokio::test]
async fn a_sleeper_that_finds_work_by_itself_is_awake() {
    let database = support::database().await;
    let client = raw::connect(&database).await;
    let dispatcher = process(database.url());
    let site = dispatcher.site(5).await;
    let later = NewRequest {
        run_at: Some(dispatcher.now() + Duration::from_secs(5)),
        ..new_request(&site)
    };
    dispatcher.enqueue_one(&site, later).await;
    let sleeps = async || {
        let row = client.query_one(SEATS, &[]).await.unwrap();
        row.get::<_, i64>("seats") == 1
    };
    fall_asleep(&dispatcher).await;
    assert_eq!(dispatcher.claim(1).await.requests.len(), 0);
    assert!(sleeps().await, "a look that finds nothing changes nothing");
    dispatcher.advance(5);
    assert_eq!(dispatcher.claim(1).await.requests.len(), 1);
    assert!(eventually(WITHOUT_DELAY, async || !sleeps().await).await);
}

#[tokio::test]
async fn what_was_open_before_arming_is_seen_by_the_look_after_it() {
    let database = support::database().await;
    let mut ear = Ear::new(&database).await;
    let sleeper = process(database.url());
    let site = sleeper.site(5).await;
    let (early, late) = (raw::connect(&database).await, raw::connect(&database).await);
    fall_asleep(&sleeper).await;
    sleeper.enqueue(&site, 1).await;
    assert_eq!(sleeper.drain(1).await.requests.len(), 1);
    while !is_silent(&sleeper).await {}
    ear.hear().await;
    early.batch_execute("BEGIN").await.unwrap();
    enqueue_by_hand(&early, &site).await;
    let store = Arc::clone(&sleeper.store);
    let arming = tokio::spawn(async move { store.wake_arm().await.unwrap() });
    assert!(someone_waits(&late).await, "arming waits for what is open");
    enqueue_by_hand(&late, &site).await;
    early.batch_execute("COMMIT").await.unwrap();
    assert!(arming.await.unwrap());
    assert_eq!(ear.hear().await, ["work"], "only the late one notified");
    assert_eq!(sleeper.drain(5).await.requests.len(), 2);
}

#[tokio::test]
async fn arming_gives_up_on_a_transaction_that_stays_open() {
    let database = support::database().await;
    let mut ear = Ear::new(&database).await;
    let sleeper = process(database.url());
    let site = sleeper.site(5).await;
    let (stays, other) = (raw::connect(&database).await, raw::connect(&database).await);
    stays.batch_execute("BEGIN").await.unwrap();
    enqueue_by_hand(&stays, &site).await;
    assert!(!arms(&sleeper).await);
    ear.hear().await;
    enqueue_by_hand(&other, &site).await;
    assert_eq!(ear.hear().await, [""; 0], "nobody sleeps");
    stays.batch_execute("COMMIT").await.unwrap();
    assert!(arms(&sleeper).await);
}

#[tokio::test]
async fn one_sleeper_has_the_seat_and_all_who_listen_hear() {
    let database = support::database().await;
    let (first, second) = (process(database.url()), process(database.url()));
    let site = first.site(5).await;
    fall_asleep(&first).await;
    while !is_silent(&second).await {}
    assert!(!arms(&second).await);
    let other = raw::connect(&database).await;
    enqueue_by_hand(&other, &site).await;
    assert!(is_rung(&first, Wake::Work).await);
    assert!(is_rung(&second, Wake::Work).await, "all who listen hear it");
    let seated = eventually(SOON, || arms(&second)).await;
    assert!(seated, "the seat is free when its sleeper is awake");
}

/// The first finds work by the clock, so that nobody is notified: all that the second can know comes from the seat.
#[tokio::test]
async fn a_second_sleeper_takes_over_when_the_first_is_awake() {
    let database = support::database().await;
    let (first, second) = (process(database.url()), process(database.url()));
    let site = first.site(5).await;
    let later = NewRequest {
        run_at: Some(first.now() + Duration::from_secs(5)),
        ..new_request(&site)
    };
    first.enqueue_one(&site, later).await;
    fall_asleep(&first).await;
    while !is_silent(&second).await {}
    assert!(!arms(&second).await);
    assert!(is_silent(&second).await, "the first would be told");
    first.advance(5);
    assert_eq!(first.claim(1).await.requests.len(), 1);
    assert!(
        is_rung(&second, Wake::Work).await,
        "something may be missed"
    );
    enqueue_by_hand(&raw::connect(&database).await, &site).await;
    assert!(is_rung(&second, Wake::Work).await, "it has the seat");
}

#[tokio::test]
async fn a_seat_that_nobody_sleeps_in_is_given_back() {
    let database = support::database().await;
    let (gone, other) = (process(database.url()), process(database.url()));
    fall_asleep(&gone).await;
    assert!(arms(&gone).await);
    assert!(eventually(SOON, || arms(&other)).await);
}

#[tokio::test]
async fn without_notify_only_this_process_is_heard() {
    let database = support::database().await;
    let clock = clock();
    let name = "deaf";
    let options = PostgresOptions {
        clock: Clock::Manual(clock.clone()),
        notify: false,
        max_connections: 1,
        ..PostgresOptions::new(format!("{}?application_name={name}", database.url()))
    };
    let store: Arc<dyn Store> = Arc::new(PostgresStore::new(&options).unwrap());
    let (deaf, other) = (Fixture::new(store, clock), process(database.url()));
    let site = deaf.site(5).await;
    assert!(!arms(&deaf).await);
    deaf.enqueue(&site, 1).await;
    assert!(is_rung(&deaf, Wake::Work).await);
    other.store.wake_ring(Wake::Work).await.unwrap();
    assert!(is_silent(&deaf).await);
    let client = raw::connect(&database).await;
    let row = client.query_one(SESSIONS, &[&name]).await.unwrap();
    assert_eq!(row.get::<_, i64>("sessions"), 1, "it does not listen");
    fall_asleep(&other).await;
    deaf.enqueue(&site, 1).await;
    assert!(is_rung(&other, Wake::Work).await, "it is heard by others");
}

#[tokio::test]
async fn the_listener_ends_with_the_last_of_its_stores() {
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
    assert!(store.wake_arm().await.unwrap());
    drop(store);
    assert!(clone.wake_arm().await.unwrap(), "clones share it");
    assert_eq!(sessions().await, 1);
    drop(clone);
    assert!(eventually(SOON, async || sessions().await == 0).await);
}

#[tokio::test]
async fn a_listener_whose_connection_is_cut_comes_back_and_rings() {
    let database = support::database().await;
    let (sleeper, other) = (process(database.url()), process(database.url()));
    let site = other.site(5).await;
    fall_asleep(&sleeper).await;
    let client = raw::connect(&database).await;
    let cut: i64 = client.query_one(CUT, &[]).await.unwrap().get("cut");
    assert_eq!(cut, 1);
    for wake in Wake::ALL {
        assert!(is_rung(&sleeper, wake).await, "something may be missed");
    }
    fall_asleep(&sleeper).await;
    other.enqueue(&site, 1).await;
    assert!(is_rung(&sleeper, Wake::Work).await);
}

async fn migrated(server: &TestPostgres) -> TestDatabase {
    let database = server.fresh_database(None).await;
    let store = PostgresStore::new(&PostgresOptions::new(database.url())).unwrap();
    store.schema_migrate().await.unwrap();
    database
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_is_listened_to_again() {
    let mut cluster = leasehold_testkit::fresh_cluster(&[]);
    let database = migrated(&TestPostgres::at(cluster.url())).await;
    let sleeper = process(database.url());
    let site = sleeper.site(5).await;
    fall_asleep(&sleeper).await;
    tokio::task::block_in_place(|| cluster.restart_immediate()).unwrap();
    assert!(
        is_rung(&sleeper, Wake::Work).await,
        "something may be missed"
    );
    fall_asleep(&sleeper).await;
    enqueue_by_hand(&raw::connect(&database).await, &site).await;
    assert!(is_rung(&sleeper, Wake::Work).await);
    drop((sleeper, database));
}

/// Once a statement, however many rows: each call costs a look at a lock that all share.
#[tokio::test]
async fn a_statement_asks_once_whether_somebody_sleeps() {
    let database = support::database().await;
    let client = raw::connect(&database).await;
    client.batch_execute(COUNT).await.unwrap();
    let calls = async || {
        let row = client.query_one(CALLS, &[]).await.unwrap();
        row.get::<_, i64>("calls")
    };
    let f = process(database.url());
    let site = f.site(100).await;
    f.enqueue(&site, 50).await;
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
    f.set_limit(site.workspace, 7).await;
    assert_eq!(calls().await, 3);
}

/// For transactions that are prepared for two-phase commit, which a notification would forbid.
#[tokio::test]
async fn a_session_can_switch_its_notifications_off() {
    let database = support::database().await;
    let mut ear = Ear::new(&database).await;
    let client = raw::connect(&database).await;
    let dispatcher = process(database.url());
    let site = dispatcher.site(5).await;
    fall_asleep(&dispatcher).await;
    ear.hear().await;
    client.batch_execute(OFF).await.unwrap();
    enqueue_by_hand(&client, &site).await;
    assert_eq!(ear.hear().await, [""; 0]);
    assert_eq!(
        dispatcher.claim(10).await.requests.len(),
        1,
        "the poll finds it"
    );
}
