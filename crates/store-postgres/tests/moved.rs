//! A database that was moved to another cluster, by logical replication, by a dump or by `pg_upgrade`: numbers continue above those of the old cluster,
//! every job and request can be claimed once, and every event is read once.
#![allow(clippy::unwrap_used)]

use crate::failover::{TIMEOUT, assert_higher, causes, connect, draw_numbers, reconnected, store};
use crate::support;
use leasehold_core::job::{ClaimedJob, JobClaim, JobEnd, JobFinish, JobFinished};
use leasehold_core::{JobId, JsonText, RequestId, RequestStatus};
use leasehold_store::change::{ChangeCursor, ChangeStart, ChangeStore};
use leasehold_store::job::{JobStore, NewJob};
use leasehold_store::prune::{Prune, PruneStore};
use leasehold_store::{DatabaseStore, ErrorKind, SchemaStore};
use leasehold_store_conformance::{Fixture, TestWorkspace, clock};
use leasehold_store_postgres::{PostgresOptions, PostgresStore};
use leasehold_testkit::{
    Cluster, POSTGRES_VERSIONS, PostgresPackage, TestPostgres, debian_postgres, eventually,
    fresh_cluster, postgres_client, temp_dir,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::block_in_place;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

const QUEUE: &str = "moved";
const AGE: &str = include_str!("sql/event_log_age.sql");
const PARTITIONS: &str = include_str!("sql/event_log_partitions.sql");
const DAY: f64 = 24.0 * 3_600.0;
/// A partition of the event log begins after an eighth of it.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3_600);

type Transition = (RequestId, RequestStatus);

/// What a process knows of the database before the move.
struct Before {
    workspace: TestWorkspace,
    pending: Vec<RequestId>,
    queued: BTreeSet<JobId>,
    /// A job whose lease a worker holds.
    held: ClaimedJob,
    highest_job: i64,
    highest_token: i64,
    request_token: i64,
    transitions: Vec<Transition>,
    cursors: Vec<ChangeCursor>,
}

async fn claim(store: &PostgresStore, max: u32) -> Vec<ClaimedJob> {
    let claim = JobClaim {
        queue: QUEUE.to_owned(),
        worker: "me".to_owned(),
        max,
        // Longer than the test.
        lease: Some(Duration::from_secs(3_600)),
    };
    store.job_claim(&claim).await.unwrap().jobs
}

/// Reads every change, and the cursor after each.
async fn changes(store: &PostgresStore) -> (Vec<Transition>, Vec<ChangeCursor>) {
    let (mut start, mut all, mut cursors) = (ChangeStart::Oldest, Vec::new(), Vec::new());
    loop {
        let page = store.change_list(&start, None, 7).await.unwrap();
        for change in page.changes {
            all.push((change.event.request, change.event.to.known().unwrap()));
            cursors.push(change.cursor);
        }
        if !page.more {
            return (all, cursors);
        }
        start = ChangeStart::After(page.cursor);
    }
}

/// Begins a partition of the event log.
async fn begin_partition(store: &PostgresStore, client: &Client) {
    client.execute(AGE, &[&DAY]).await.unwrap();
    let now = store.now().await.unwrap();
    let before = now.checked_sub(RETENTION).ok();
    let prune = Prune {
        completed_before: before,
        failed_before: before,
        limit: 100,
    };
    store.prune(&prune).await.unwrap();
}

/// The last partition of the event log that has begun.
async fn last_partition(client: &Client) -> i64 {
    let rows = client.query(PARTITIONS, &[]).await.unwrap();
    rows.last().unwrap().get("number")
}

/// Writes requests and jobs in all states, and events into four partitions.
async fn fill(store: &PostgresStore, client: &Client) -> Before {
    let f = Fixture::new(Arc::new(store.clone()), clock());
    let workspace = f.workspace(2).await;
    let mut ids = f.enqueue(&workspace, 4).await;
    for _ in 0..2 {
        begin_partition(store, client).await;
        ids.extend(f.enqueue(&workspace, 1).await);
    }
    begin_partition(store, client).await;
    let claimed = f.drain(10).await.requests;
    let pending = ids
        .into_iter()
        .filter(|id| claimed.iter().all(|request| request.id != *id));
    let pending = pending.collect();
    let jobs: Vec<NewJob> = (0..20)
        .map(|_| NewJob::new(QUEUE, "own", JsonText::default()))
        .collect();
    let all = store.job_enqueue(&jobs).await.unwrap();
    let mut taken = claim(store, 2).await;
    let held = taken.pop().unwrap();
    let ended = finish(store, &taken[0]).await;
    assert_eq!(ended, JobFinished::Completed);
    let queued = all.iter().map(|job| job.id);
    let queued = queued.filter(|id| *id != held.id && *id != taken[0].id);
    let (transitions, cursors) = changes(store).await;
    Before {
        workspace,
        pending,
        queued: queued.collect(),
        highest_job: all.iter().map(|job| job.id.0).max().unwrap(),
        highest_token: held.token.max(taken[0].token),
        held,
        request_token: claimed.iter().map(|request| request.token).max().unwrap(),
        transitions,
        cursors,
    }
}

async fn finish(store: &PostgresStore, job: &ClaimedJob) -> JobFinished {
    let finish = JobFinish {
        claim: job.claim(),
        end: JobEnd::Completed { result: None },
    };
    let finished = store.job_finish("me", &[finish]).await.unwrap();
    finished.jobs.into_iter().next().unwrap()
}

/// Checks a store on the moved database.
async fn check(store: &PostgresStore, before: Before) {
    let (transitions, _) = changes(store).await;
    let sorted = |mut all: Vec<Transition>| {
        all.sort_by_key(|(id, _)| *id);
        all
    };
    assert_eq!(sorted(transitions), sorted(before.transitions), "events");
    for cursor in before.cursors {
        let start = ChangeStart::After(cursor);
        let error = store.change_list(&start, None, 10).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Gone(_)), "{error}");
    }
    let now = store.change_list(&ChangeStart::Now, None, 1).await.unwrap();
    assert_eq!(finish(store, &before.held).await, JobFinished::Completed);

    let numbers = draw_numbers(store, 3).await;
    assert!(numbers.jobs.iter().all(|id| *id > before.highest_job));
    assert!(
        numbers
            .tokens
            .iter()
            .all(|token| *token > before.highest_token)
    );
    let new = NewJob::new(QUEUE, "own", JsonText::default());
    let new = store.job_enqueue(&[new]).await.unwrap()[0].id;
    let mut claimed = Vec::new();
    while claimed.len() <= before.queued.len() {
        let more = claim(store, 7).await;
        if more.is_empty() {
            break;
        }
        claimed.extend(more);
    }
    assert_eq!(
        claimed.last().map(|job| job.id),
        Some(new),
        "the new one is last"
    );
    let ids: BTreeSet<JobId> = claimed.iter().map(|job| job.id).collect();
    assert_eq!(ids.len(), claimed.len(), "each is claimed once");
    let expected = before.queued.iter().copied().chain([new]);
    assert_eq!(ids, expected.collect());

    let f = Fixture::new(Arc::new(store.clone()), clock());
    let added = f.enqueue(&before.workspace, 1).await;
    assert!(
        f.drain(10).await.requests.is_empty(),
        "the slots are in use"
    );
    f.set_limit(before.workspace.workspace, 20).await;
    let claimed = f.drain(10).await.requests;
    let ids: BTreeSet<RequestId> = claimed.iter().map(|request| request.id).collect();
    let expected = before.pending.iter().copied().chain(added);
    assert_eq!(ids, expected.collect());
    assert!(
        claimed
            .iter()
            .all(|request| request.token > before.request_token)
    );
    // The stream goes on with what is new.
    let start = ChangeStart::After(now.cursor);
    let page = store.change_list(&start, None, 1_000).await.unwrap();
    assert_eq!(page.changes.len(), 1 + claimed.len());
}

async fn state(client: &Client, sql: &str) -> (bool, i64, i64, i64) {
    let row = client.query_one(sql, &[]).await.unwrap();
    (
        row.get("copied"),
        row.get("events"),
        row.get("jobs"),
        row.get("leases"),
    )
}

/// Replicates every table of one server into another, which has the schema, until all rows have arrived. Returns a connection to the latter.
async fn replicate(from: &str, to: &str) -> Client {
    let publisher = connect(from).await;
    let publish = include_str!("sql/publication_create.sql");
    publisher.batch_execute(publish).await.unwrap();
    let client = connect(to).await;
    let create = include_str!("sql/moved_create_tables.sql");
    client.batch_execute(create).await.unwrap();
    let truncate = include_str!("sql/moved_truncate.sql");
    client.batch_execute(truncate).await.unwrap();
    let subscribe = include_str!("sql/moved_subscribe.sql").replace("{connection}", from);
    client.batch_execute(&subscribe).await.unwrap();
    let written = state(&publisher, include_str!("sql/moved_counts.sql")).await;
    let is_copied = eventually(TIMEOUT, async || {
        state(&client, include_str!("sql/moved_copied.sql")).await == written
    });
    assert!(is_copied.await, "the tables are not copied");
    client
}

async fn unsubscribe(client: &Client) {
    let unsubscribe = include_str!("sql/moved_unsubscribe.sql");
    client.batch_execute(unsubscribe).await.unwrap();
}

/// Creates the schema as `migrate up` does.
async fn migrate(url: &str) {
    let options = PostgresOptions {
        opens_epochs: false,
        ..PostgresOptions::new(url)
    };
    let store = PostgresStore::new(&options).unwrap();
    store.schema_migrate().await.unwrap();
}

/// Asserts that functions for SQL callers are refused, because no process has opened the epoch.
async fn assert_refused(client: &Client) {
    let enqueue = include_str!("sql/job_enqueue.sql");
    let refused = client.query(enqueue, &[&serde_json::Value::Null]).await;
    let code = Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    assert_eq!(refused.unwrap_err().code(), code);
}

#[tokio::test(flavor = "multi_thread")]
async fn database_moved_by_logical_replication_continues() {
    let settings = [("wal_level", "logical"), ("fsync", "off")];
    let mut old = block_in_place(|| fresh_cluster(&settings));
    let new = block_in_place(|| fresh_cluster(&[("fsync", "off")]));
    let source = store(&old.url());
    source.schema_migrate().await.unwrap();
    let before = fill(&source, &connect(&old.url()).await).await;
    migrate(&new.url()).await;
    let client = replicate(&old.url(), &new.url()).await;

    // Two writers would diverge.
    let target = store(&new.url());
    let error = target.now().await.unwrap_err();
    assert!(error.to_string().contains("subscription"), "{error}");
    unsubscribe(&client).await;
    block_in_place(|| old.stop().unwrap());
    assert_refused(&client).await;

    reconnected(&target).await;
    assert_eq!(causes(&client).await, ["created", "moved"]);
    assert_eq!(last_partition(&client).await, 4, "above every old event");
    let enqueue = include_str!("sql/job_enqueue.sql");
    let accepted = client.query(enqueue, &[&serde_json::Value::Null]).await;
    accepted.unwrap();
    check(&target, before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_moved_back_to_a_server_that_kept_running_continues() {
    let settings = [("wal_level", "logical"), ("fsync", "off")];
    let first = block_in_place(|| fresh_cluster(&settings));
    let second = block_in_place(|| fresh_cluster(&settings));
    let source = store(&first.url());
    source.schema_migrate().await.unwrap();
    draw_numbers(&source, 3).await;
    drop(source);
    migrate(&second.url()).await;
    let client = replicate(&first.url(), &second.url()).await;
    unsubscribe(&client).await;
    let source = store(&second.url());
    reconnected(&source).await;
    let drawn = draw_numbers(&source, 3).await;
    let before = fill(&source, &client).await;
    drop(source);

    let client = replicate(&second.url(), &first.url()).await;
    unsubscribe(&client).await;
    assert_refused(&client).await;
    let target = store(&first.url());
    reconnected(&target).await;
    assert_eq!(causes(&client).await, ["created", "moved", "moved"]);
    assert_higher(&drawn, &draw_numbers(&target, 2).await);
    check(&target, before).await;
}

/// Copies a database with `pg_dump` and `psql` into another server.
fn copy_by_dump(from: &str, to: &str) {
    let program = |name| postgres_client(name).expect("run `cargo xtask setup`");
    let dump = Command::new(program("pg_dump")).arg(from).output().unwrap();
    assert!(dump.status.success(), "{dump:?}");
    let file = temp_dir();
    let file = file.path().join("dump.sql");
    std::fs::write(&file, dump.stdout).unwrap();
    let psql = Command::new(program("psql"))
        .args(["-q", "-v", "ON_ERROR_STOP=1", "-f"])
        .arg(&file)
        .arg(to)
        .output()
        .unwrap();
    assert!(psql.status.success(), "{psql:?}");
}

/// A server of the newest version: the one that `cargo xtask setup` installs.
fn newest_cluster() -> Cluster {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let package = PostgresPackage::of(18).expect("npm has no package for this machine");
    let programs = package.programs(&package.directory(&root));
    Cluster::start_in(&programs, &[("fsync", "off")]).expect("run `cargo xtask setup`")
}

/// A server of Debian's version, which has all programs: the npm packages lack `pg_dump` and what `pg_upgrade` needs.
fn debian_cluster() -> Cluster {
    let mut versions = POSTGRES_VERSIONS.into_iter().rev();
    let programs = versions.find_map(debian_postgres);
    let programs = programs.expect("run `cargo xtask setup`");
    Cluster::start_in(&programs, &[("fsync", "off")]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn dump_restored_into_another_version_continues() {
    let old = block_in_place(debian_cluster);
    let source = store(&old.url());
    source.schema_migrate().await.unwrap();
    let before = fill(&source, &connect(&old.url()).await).await;
    let new = block_in_place(newest_cluster);
    block_in_place(|| copy_by_dump(&old.url(), &new.url()));
    let target = store(&new.url());
    reconnected(&target).await;
    let client = connect(&new.url()).await;
    assert_eq!(causes(&client).await, ["created", "moved"]);
    check(&target, before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_upgraded_by_pg_upgrade_continues() {
    let mut old = block_in_place(debian_cluster);
    let source = store(&old.url());
    source.schema_migrate().await.unwrap();
    let before = fill(&source, &connect(&old.url()).await).await;
    drop(source);
    let new = block_in_place(|| old.upgraded().unwrap());
    let target = store(&new.url());
    reconnected(&target).await;
    let client = connect(&new.url()).await;
    assert_eq!(causes(&client).await, ["created", "moved"]);
    check(&target, before).await;
}

#[tokio::test]
async fn copy_of_a_database_beside_it_has_numbers_of_its_own() {
    let database = support::database().await;
    let source = store(database.url());
    let before = draw_numbers(&source, 2).await;
    drop(source);
    let server = connect(TestPostgres::shared().url()).await;
    let is_unused = eventually(TIMEOUT, async || {
        let sessions = include_str!("sql/copied_sessions.sql");
        let row = server.query_one(sessions, &[&database.name()]).await;
        row.unwrap().get::<_, i64>("sessions") == 0
    });
    assert!(is_unused.await, "the store does not close its connections");
    let copy = TestPostgres::shared()
        .fresh_database(Some(database.name()))
        .await;
    let target = store(copy.url());
    let after = draw_numbers(&target, 2).await;
    assert!(before.jobs.iter().max() < after.jobs.iter().min());
    assert!(before.tokens.iter().max() < after.tokens.iter().min());
    let client = connect(copy.url()).await;
    assert_eq!(causes(&client).await, ["created", "copied"]);
}
