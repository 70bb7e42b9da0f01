//! The partitions of the event log: they begin and expire beside open transactions, and no event is lost or counted twice.
#![allow(clippy::unwrap_used)]

use crate::support;

use crate::pooler::through_pgbouncer;
use leasehold_core::{RequestId, RequestStatus};
use leasehold_store::ErrorKind;
use leasehold_store::change::{ChangeCursor, ChangeStart, ChangeStore};
use leasehold_store::diagnosis::Diagnosis;
use leasehold_store::prune::{Prune, PruneStore};
use leasehold_store::{Clock, DatabaseStore};
use leasehold_store_conformance::drift_check;
use leasehold_store_conformance::factory::ok;
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::TestDatabase;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use support::pace::promptly;
use support::raw::connect;
use tokio::time::timeout;
use tokio_postgres::Client;

const AGE: &str = include_str!("sql/event_log_age.sql");
const TABLES: &str = include_str!("sql/event_log_tables.sql");
const PARTITIONS: &str = include_str!("sql/event_log_partitions.sql");
const IDS: &str = include_str!("sql/event_log_ids.sql");
const READ: &str = include_str!("sql/event_log_read.sql");
const ENQUEUE: &str = include_str!("sql/enqueue.sql");

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// The retention of these tests; a partition's length is 21 hours.
const RETENTION: Duration = Duration::from_secs(7 * DAY);
/// For pruning while a transaction uses what it drops. The transaction ends later, so a prune that waits for it never ends.
const BOUNDED: Duration = Duration::from_secs(60);
/// Seconds after which pruning tries again to drop a partition.
const PAUSE: u64 = 60;
/// Tables that exist before they are attached.
const SPARE: usize = 8;
/// Requests that are pruned one a call.
const BATCHES: usize = 5;

/// A store on a database with a publication of all tables, and an operator's connection.
struct TestEnv {
    f: Fixture,
    store: Arc<PostgresStore>,
    client: Client,
    database: TestDatabase,
}

impl TestEnv {
    async fn new() -> Self {
        Self::with(|database| PostgresOptions::new(database.url())).await
    }

    async fn with(options: impl FnOnce(&TestDatabase) -> PostgresOptions) -> Self {
        let database = support::database().await;
        let clock = clock();
        let options = PostgresOptions {
            clock: Clock::Manual(clock.clone()),
            ..options(&database)
        };
        let store = Arc::new(PostgresStore::new(&options).unwrap());
        let client = connect(&database).await;
        let publication = include_str!("sql/publication_create.sql");
        client.batch_execute(publication).await.unwrap();
        let renew = include_str!("sql/event_log_renew.sql");
        client.batch_execute(renew).await.unwrap();
        Self {
            f: Fixture::new(store.clone(), clock),
            store,
            client,
            database,
        }
    }

    /// Prunes what is older than the retention.
    async fn prune(&self) {
        ok(timeout(BOUNDED, self.store.prune(&retention(&self.f)))
            .await
            .expect("pruning waits"));
    }

    /// Makes every partition so many seconds older.
    async fn age(&self, seconds: u64) {
        let seconds = f64::from(u32::try_from(seconds).unwrap());
        self.client.execute(AGE, &[&seconds]).await.unwrap();
    }

    /// Lets the last partition expire: its events and those of earlier ones are older than the retention.
    async fn begin_and_expire(&self) {
        self.age(DAY).await;
        self.prune().await;
        self.wait_for_older_transactions().await;
        self.age(8 * DAY).await;
    }

    async fn tables(&self, state: &str) -> Vec<i64> {
        let rows = self.client.query(TABLES, &[]).await.unwrap();
        let rows = rows
            .iter()
            .filter(|row| row.get::<_, &str>("state") == state);
        rows.map(|row| row.get("number")).collect()
    }

    /// The partitions that have begun, whether each is sealed, and the partition from which folds read.
    async fn partitions(&self) -> (Vec<(i64, bool)>, i64) {
        let rows = self.client.query(PARTITIONS, &[]).await.unwrap();
        let events_from: i64 = rows[0].get("events_from");
        let all = rows
            .iter()
            .map(|row| (row.get("number"), row.get("is_sealed")));
        (all.collect(), events_from >> 40)
    }

    /// The partitions of the events of a request.
    async fn partitions_of(&self, request: RequestId) -> Vec<i64> {
        let rows = self.client.query(IDS, &[&request.0]).await.unwrap();
        rows.iter().map(|row| row.get("partition")).collect()
    }

    /// Waits until no transaction of the server, also of other databases, is older than the second partition. Until then the first does not expire.
    async fn wait_for_older_transactions(&self) {
        let over = include_str!("sql/event_log_older_transactions.sql");
        let over = leasehold_testkit::eventually(Duration::from_secs(60), async || {
            let row = self.client.query_one(over, &[]).await.unwrap();
            row.get::<_, bool>("over")
        });
        assert!(over.await, "a transaction stays open");
    }

    async fn now(&self) -> ChangeCursor {
        let page = self.store.change_list(&ChangeStart::Now, None, 1).await;
        page.unwrap().cursor
    }

    /// The requests of all changes from a start on.
    async fn changes(&self, start: ChangeStart) -> Vec<RequestId> {
        let (mut start, mut read) = (start, Vec::new());
        loop {
            let page = self.store.change_list(&start, None, 2).await.unwrap();
            read.extend(page.changes.iter().map(|change| change.event.request));
            if !page.more {
                return read;
            }
            start = ChangeStart::After(page.cursor);
        }
    }
}

fn retention(f: &Fixture) -> Prune {
    let before = f.now().checked_sub(RETENTION).ok();
    Prune {
        completed_before: before,
        failed_before: before,
        limit: 100,
    }
}

async fn enqueue(client: &Client, workspace: &TestWorkspace) -> RequestId {
    let (workspace, definition) = (workspace.workspace.0, workspace.definition.0);
    let params = json!(null);
    let row = client
        .query_one(ENQUEUE, &[&workspace, &definition, &params])
        .await;
    RequestId(row.unwrap().get("id"))
}

#[tokio::test]
async fn partition_begins_after_an_eighth_of_the_retention() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(5).await;
    let first = env.f.enqueue(&t, 1).await[0];
    env.age(20 * HOUR).await;
    env.prune().await;
    assert_eq!(env.partitions().await, (vec![(0, true)], 0));
    assert_eq!(env.tables("attached").await, [0, 1]);
    assert_eq!(env.tables("spare").await.len(), SPARE);
    env.age(2 * HOUR).await;
    env.prune().await;
    let second = env.f.enqueue(&t, 1).await[0];
    assert_eq!(env.partitions().await, (vec![(0, true), (1, true)], 1));
    assert_eq!(env.partitions_of(first).await, [0]);
    assert_eq!(env.partitions_of(second).await, [1]);
    assert_eq!(env.tables("attached").await, [0, 1, 2]);
    assert_eq!(env.tables("spare").await.len(), SPARE);
    // Events are kept for ever if failed requests are: one partition is enough.
    env.age(2 * DAY).await;
    let forever = Prune {
        failed_before: None,
        ..retention(&env.f)
    };
    ok(env.store.prune(&forever).await);
    assert_eq!(env.partitions().await.0.len(), 2);
}

#[tokio::test]
async fn late_event_of_an_earlier_partition_is_counted_and_read_once() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(9).await;
    let writer = connect(&env.database).await;
    let start = env.now().await;
    writer.batch_execute("BEGIN").await.unwrap();
    let mut all = vec![enqueue(&writer, &t).await];
    env.age(DAY).await;
    // Neither attaching a table nor moving the sequence waits for the writer, and no one waits for them.
    promptly(env.prune()).await;
    assert_eq!(env.partitions().await, (vec![(0, true), (1, false)], 0));
    all.extend(env.f.enqueue(&t, 1).await);
    all.push(enqueue(&writer, &t).await);
    assert_eq!(env.f.drain(9).await.requests.len(), 1);
    let middle = env.now().await;
    env.prune().await;
    assert_eq!(env.partitions().await.1, 0, "folds still read the first");
    writer.batch_execute("COMMIT").await.unwrap();
    assert_eq!(env.partitions_of(all[0]).await, [0]);
    assert_eq!(env.partitions_of(all[2]).await, [1]);
    // Folded while folds read both partitions, or by the fold before they read the second only.
    env.prune().await;
    assert_eq!(env.partitions().await, (vec![(0, true), (1, true)], 1));
    let counts = env.f.counts(t.workspace).await;
    assert_eq!((counts.pending, counts.claimed), (2, 1));
    all.extend(env.f.enqueue(&t, 2).await);
    assert_eq!(env.f.drain(9).await.requests.len(), 4);
    drift_check::none(&*env.f.store).await;
    let late = env.changes(ChangeStart::After(middle)).await;
    assert_eq!(late.len(), 8, "two late, two new, four claimed: {late:?}");
    assert!(late.contains(&all[0]));
    let read = env.changes(ChangeStart::After(start)).await;
    assert_eq!(read.len(), 10);
    for request in &all {
        assert_eq!(read.iter().filter(|id| *id == request).count(), 2);
    }
}

#[tokio::test]
async fn expired_partition_is_dropped_and_what_remains_says_so() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(5).await;
    let before = env.now().await;
    let finished = env.f.enqueue_completed(&t).await.id;
    let open = env.f.enqueue(&t, 1).await[0];
    env.age(DAY).await;
    env.prune().await;
    let claimed = env.f.claim_one().await;
    assert_eq!(claimed.id, open);
    env.wait_for_older_transactions().await;
    let after = env.now().await;
    let counts = env.f.counts(t.workspace).await;
    env.age(8 * DAY).await;
    env.prune().await;
    assert_eq!(env.tables("attached").await, [1, 2, 3]);
    assert_eq!(env.tables("spare").await.len(), SPARE);
    assert_eq!(env.f.counts(t.workspace).await, counts);
    drift_check::none(&*env.f.store).await;

    let timeline = env.f.timeline(t.workspace, open).await;
    let statuses: Vec<_> = timeline.iter().map(|event| event.to.clone()).collect();
    assert_eq!(statuses, [RequestStatus::Claimed]);
    assert_eq!(env.f.timeline(t.workspace, finished).await, []);
    assert_eq!(env.changes(ChangeStart::Oldest).await, [open]);
    env.f.dispatch(&claimed).await;
    assert_eq!(env.changes(ChangeStart::After(after)).await, [open]);
    let refused = ChangeStart::After(before);
    let refused = env.store.change_list(&refused, None, 10).await.unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::Gone(_)), "{refused}");
}

#[tokio::test]
async fn pruned_request_leaves_its_events_and_the_history_leaves_it_out() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(5).await;
    let start = env.now().await;
    let pruned = env.f.enqueue_completed(&t).await.id;
    let kept = env.f.enqueue(&t, 1).await[0];
    env.f.advance(8 * DAY);
    env.prune().await;
    assert_eq!(env.partitions_of(pruned).await, [0; 4]);
    assert_eq!(env.f.timeline(t.workspace, pruned).await, []);
    assert_eq!(env.changes(ChangeStart::Oldest).await, [kept]);
    let live = env.changes(ChangeStart::After(start)).await;
    assert_eq!(live, [pruned, pruned, pruned, pruned, kept]);
    let counts = env.f.counts(t.workspace).await;
    assert_eq!((counts.completed, counts.pending), (0, 1));
    drift_check::none(&*env.f.store).await;
}

#[tokio::test]
async fn interrupted_detachment_is_completed_later_and_stops_no_one() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(5).await;
    env.f.enqueue(&t, 1).await;
    env.begin_and_expire().await;
    let reader = connect(&env.database).await;
    reader.batch_execute("BEGIN").await.unwrap();
    reader.query_one(READ, &[]).await.unwrap();
    let others = async {
        for _ in 0..5 {
            promptly(env.f.enqueue(&t, 1)).await;
            promptly(env.f.claim(1)).await;
        }
    };
    tokio::join!(env.prune(), others);
    assert_eq!(env.tables("detaching").await, [0]);
    // A detachment that was interrupted does not stop the log from advancing.
    env.age(DAY).await;
    env.f.advance(PAUSE);
    env.prune().await;
    assert_eq!(env.tables("detaching").await, [0]);
    assert_eq!(env.f.enqueue(&t, 1).await.len(), 1);
    reader.batch_execute("COMMIT").await.unwrap();
    env.f.advance(PAUSE);
    env.prune().await;
    assert_eq!(env.tables("detaching").await, [0_i64; 0]);
    assert!(!env.tables("spare").await.contains(&0));
    assert!(!env.tables("attached").await.contains(&0));
}

/// Prunes a request a call while a transaction uses the partition that has expired. Asserts that only the first call waits for it.
async fn prune_beside_a_reader(env: TestEnv) {
    let t = env.f.workspace(5).await;
    env.begin_and_expire().await;
    for _ in 0..BATCHES {
        env.f.enqueue_completed(&t).await;
    }
    env.f.advance(8 * DAY);
    let reader = connect(&env.database).await;
    reader.batch_execute("BEGIN").await.unwrap();
    reader.query_one(READ, &[]).await.unwrap();
    let one = Prune {
        limit: 1,
        ..retention(&env.f)
    };
    let prune = async || assert_eq!(ok(env.store.prune(&one).await).requests, 1);
    // Less than the limit of a call, which would close the connection.
    timeout(Duration::from_secs(30), prune())
        .await
        .expect("the first call waits");
    let others = async {
        for _ in 1..BATCHES {
            prune().await;
        }
    };
    let begun = std::time::Instant::now();
    others.await;
    // Each would wait two seconds.
    let waited = begun.elapsed();
    assert!(
        waited < Duration::from_secs(2 * BATCHES as u64 - 2),
        "{waited:?}"
    );
    assert_eq!(env.tables("detaching").await, [0]);
    reader.batch_execute("COMMIT").await.unwrap();
    env.f.advance(PAUSE);
    env.prune().await;
    assert_eq!(env.tables("detaching").await, [0_i64; 0]);
    assert!(!env.tables("attached").await.contains(&0));
}

#[tokio::test]
async fn only_the_first_batch_waits_for_a_partition_in_use() {
    prune_beside_a_reader(TestEnv::new().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_batch_through_pgbouncer_waits_for_a_partition_in_use() {
    prune_beside_a_reader(TestEnv::with(through_pgbouncer).await).await;
}

#[tokio::test]
async fn change_stream_without_a_list_of_partitions_is_broken_and_does_not_panic() {
    let env = TestEnv::new().await;
    let truncate = include_str!("sql/event_log_truncate_partitions.sql");
    env.client.batch_execute(truncate).await.unwrap();
    let error = env.store.change_list(&ChangeStart::Now, None, 1).await;
    let error = error.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Broken(_)), "{error}");
    assert!(error.to_string().contains("event_partition is empty"));
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_prune_at_once_advance_the_log_once() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(5).await;
    env.f.enqueue(&t, 1).await;
    env.begin_and_expire().await;
    let prune = retention(&env.f);
    let stores = (0..4).map(|_| support::store(&env.database, env.f.clock.clone()));
    let stores: Vec<Arc<PostgresStore>> = stores.map(Arc::new).collect();
    for _ in 0..3 {
        let calls = stores.iter().cloned().map(|store| {
            tokio::spawn(async move { ok(timeout(BOUNDED, store.prune(&prune)).await.unwrap()) })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    }
    assert_eq!(env.partitions().await.0, [(1, true), (2, true)]);
    assert_eq!(env.tables("attached").await, [1, 2, 3]);
    assert_eq!(env.tables("spare").await.len(), SPARE);
}

#[tokio::test]
async fn spare_table_without_a_new_column_is_created_again() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(5).await;
    let add = include_str!("sql/event_log_add_column.sql");
    env.client.batch_execute(add).await.unwrap();
    env.age(DAY).await;
    env.prune().await;
    assert_eq!(env.tables("attached").await, [0, 1, 2]);
    env.age(DAY).await;
    env.prune().await;
    let request = env.f.enqueue(&t, 1).await[0];
    assert_eq!(env.partitions_of(request).await, [2]);
}

/// A role that may not change the tables prunes requests, and doctor says what is missing.
#[tokio::test]
async fn role_that_does_not_own_the_log_prunes_requests() {
    let env = TestEnv::new().await;
    let t = env.f.workspace(5).await;
    env.f.enqueue_completed(&t).await;
    env.f.advance(8 * DAY);
    env.age(9 * DAY).await;
    let grant = include_str!("sql/event_log_grant.sql");
    env.client.batch_execute(grant).await.unwrap();
    let url = env.database.url();
    let mark = if url.contains('?') { '&' } else { '?' };
    let options = PostgresOptions {
        clock: Clock::Manual(env.f.clock.clone()),
        ..PostgresOptions::new(format!("{url}{mark}options=-c%20role%3Dpg_monitor"))
    };
    let store = PostgresStore::new(&options).unwrap();
    let advances = async |store: &PostgresStore| match store.diagnose().await.unwrap() {
        Diagnosis::Postgres(facts) => facts.advances_event_log,
        other => panic!("{other:?}"),
    };
    assert_eq!(advances(&store).await, Some(false));
    assert_eq!(advances(&env.store).await, Some(true));
    let pruned = ok(store.prune(&retention(&env.f)).await);
    assert_eq!(pruned.requests, 1);
    assert_eq!(env.partitions().await.0, [(0, true)]);
}
