//! Through PgBouncer in transaction mode, where clients share sessions: everything works, and nothing stays in a session.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::ExecutionEnd;
use leasehold_store::lock::{LockAcquired, LockRequest, LockStore};
use leasehold_store::workspace::WorkspaceStore;
use leasehold_store::{Error, ErrorKind, SchemaStore};
use leasehold_store_conformance::job_factory::new_job;
use leasehold_store_conformance::{
    Fixture, audit, change, clock, definition, drift_check, execution_finish, graph_expire,
    graph_start, instance, job_claim, job_dedup, job_enqueue, job_finish, job_prune, job_renew,
    job_requeue, key, key_rotation, lock, node_finish, prune, queue, queue_access, request_cancel,
    request_claim, request_counts, request_enqueue, request_idempotency, request_recover,
    request_redrive, request_release, request_renew, workspace, workspace_overview,
    workspace_quota,
};
use leasehold_store_postgres::{Pooler, PostgresOptions, PostgresStore};
use leasehold_testbed::postgres::server_of;
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use leasehold_testkit::{PgBouncer, TestDatabase, TestPostgres, sized};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use support::raw::connect;
use tokio_postgres::{Client, NoTls};

const SESSION_STATE: &str = include_str!("sql/session_state.sql");
const ISOLATION_REQUIRED: &str = include_str!("sql/isolation_required.sql");
const ISOLATION_CHANGE: &str = include_str!("sql/isolation_change.sql");

/// Debian's PgBouncer knows no prepared statements.
const UNPREPARED: Pooler = Pooler::Transaction {
    prepared_statements: false,
};
/// Fewer sessions than the clients have connections, so that clients share them.
const SESSIONS: usize = 4;

/// The PgBouncer that the tests of this process share.
fn bouncer() -> &'static PgBouncer {
    static SHARED: OnceLock<PgBouncer> = OnceLock::new();
    SHARED.get_or_init(|| {
        let sessions = SESSIONS.to_string();
        let settings = [("default_pool_size", sessions.as_str())];
        PgBouncer::start(server_of(TestPostgres::shared().url()), &settings)
    })
}

fn through_bouncer(database: &TestDatabase) -> String {
    let url = database.url();
    url.replace(server_of(url), &bouncer().address())
}

/// Options of a store behind PgBouncer.
pub(crate) fn through_pgbouncer(database: &TestDatabase) -> PostgresOptions {
    PostgresOptions {
        pooler: UNPREPARED,
        ..PostgresOptions::new(through_bouncer(database))
    }
}

async fn backend(pooler: Pooler, proxy: Option<String>) -> (TestBackend, Fixture) {
    let clock = clock();
    let options = BackendOptions {
        connections: 10,
        pooler,
        proxy,
        ..BackendOptions::default().clock(clock.clone())
    };
    let backend = TestBackend::with(BackendKind::Postgres, options).await;
    let fixture = Fixture::new(backend.store.clone(), clock);
    (backend, fixture)
}

/// A store behind PgBouncer, whose database has another default isolation and refuses changes at it.
async fn fixture() -> Fixture {
    let (backend, fixture) = backend(UNPREPARED, Some(bouncer().address())).await;
    require_read_committed(backend.database(), "serializable").await;
    fixture.guarded(backend)
}

/// A store that configures each transaction and prepares its statements, as behind a pooler that knows them.
async fn prepared_fixture() -> Fixture {
    let pooler = Pooler::Transaction {
        prepared_statements: true,
    };
    let (backend, fixture) = backend(pooler, None).await;
    require_read_committed(backend.database(), "serializable").await;
    fixture.guarded(backend)
}

/// A store that is connected directly.
async fn direct_fixture() -> Fixture {
    let (backend, fixture) = backend(Pooler::None, None).await;
    require_read_committed(backend.database(), "repeatable read").await;
    fixture.guarded(backend)
}

async fn require_read_committed(database: &TestDatabase, default: &str) {
    let client = connect(database).await;
    client.batch_execute(ISOLATION_REQUIRED).await.unwrap();
    database.set_default_isolation(default).await;
    let refused = connect(database)
        .await
        .batch_execute(ISOLATION_CHANGE)
        .await;
    let refused = refused
        .unwrap_err()
        .as_db_error()
        .unwrap()
        .message()
        .to_owned();
    assert_eq!(refused, format!("changes workspace at {default}"));
}

/// Cases that together run most statements.
async fn requests<F: Future<Output = Fixture>>(fixture: impl Fn() -> F) {
    request_enqueue::can_mix_definitions_and_options(fixture().await).await;
    request_idempotency::key_with_a_window_outlives_its_pruned_request(fixture().await).await;
    request_claim::concurrent_claims_take_each_request_once(fixture().await).await;
    request_counts::equal_a_full_listing(fixture().await).await;
    request_cancel::running_request_is_cancelled_by_the_engine(fixture().await).await;
    request_recover::keeps_execution_and_slot(fixture().await).await;
    request_redrive::creates_a_copy_of_the_failed_request(fixture().await).await;
    request_release::each_kind_has_its_counters_and_effects(fixture().await).await;
    request_renew::extends_the_lease_from_now(fixture().await).await;
    execution_finish::each_end_has_its_status_and_reason(fixture().await).await;
    prune::clears_keys_with_expired_windows(fixture().await).await;
    workspace::update_changes_only_the_given_fields(fixture().await).await;
    workspace_overview::shows_the_busiest_first(fixture().await).await;
    workspace_quota::request_counts_from_enqueue_to_end(fixture().await).await;
    definition::concurrent_publishes_get_distinct_numbers(fixture().await).await;
    audit::every_change_is_recorded_with_its_actor(fixture().await).await;
    change::stream_of_one_workspace_has_only_its_timelines(fixture().await).await;
    drift_check::no_drift_without_manual_writes(fixture().await).await;
    queue_access::concurrent_publishes_of_an_unknown_queue_have_one_owner(fixture().await).await;
}

async fn jobs<F: Future<Output = Fixture>>(fixture: impl Fn() -> F) {
    job_enqueue::one_call_takes_the_maximum_number(fixture().await).await;
    queue::counts_match_job_status(fixture().await).await;
    job_claim::retried_jobs_are_merged_with_fresh_ones(fixture().await).await;
    job_claim::jobs_of_one_large_claim_end_individually(fixture().await).await;
    job_dedup::window_holds_regardless_of_the_job(fixture().await).await;
    job_finish::failed_attempt_is_retried_by_the_policy(fixture().await).await;
    job_renew::extends_the_lease_from_now(fixture().await).await;
    job_requeue::sweep_requeues_expired_jobs_at_once(fixture().await).await;
    job_prune::deletes_everything_over_repeated_calls(fixture().await).await;
    node_finish::diamond_runs_to_its_end(fixture().await).await;
    graph_start::first_nodes_become_jobs(fixture().await).await;
    graph_expire::graph_ends_when_its_timeout_has_passed(fixture().await).await;
    lock::lock_that_is_not_extended_expires(fixture().await).await;
    instance::stale_instance_is_removed_by_another_heartbeat(fixture().await).await;
    key::is_read_back_as_created(fixture().await).await;
    key_rotation::old_key_stays_valid_for_the_overlap(fixture().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_run_through_pgbouncer_with_serializable_as_default() {
    requests(fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_and_graphs_run_through_pgbouncer_with_serializable_as_default() {
    jobs(fixture).await;
}

#[test]
fn random_operations_through_pgbouncer_agree_with_the_model() {
    leasehold_store_conformance::model_test(fixture, sized(3, 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_run_with_prepared_statements_and_settings_of_transactions() {
    requests(prepared_fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_and_graphs_run_with_prepared_statements_and_settings_of_transactions() {
    jobs(prepared_fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_run_directly_with_repeatable_read_as_default() {
    requests(direct_fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_and_graphs_run_directly_with_repeatable_read_as_default() {
    jobs(direct_fixture).await;
}

/// What the sessions behind PgBouncer have that their next users would find. Opens all of them.
async fn sessions(database: &TestDatabase) -> Vec<String> {
    let url = through_bouncer(database);
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..SESSIONS {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        // A session of its own until the transaction ends.
        client.batch_execute("BEGIN").await.unwrap();
        clients.push(client);
    }
    let (mut pids, mut found) = (HashSet::new(), Vec::new());
    for client in clients {
        let state = client.query_typed_one(SESSION_STATE, &[]).await.unwrap();
        pids.insert(state.get::<_, i32>("pid"));
        found.push(format!(
            "{} statements, {} channels, {} locks, settings {:?}, time zone {}",
            state.get::<_, i64>("statements"),
            state.get::<_, i64>("channels"),
            state.get::<_, i64>("locks"),
            state.get::<_, Vec<String>>("settings"),
            state.get::<_, &str>("timezone"),
        ));
        client.batch_execute("COMMIT").await.unwrap();
    }
    assert_eq!(pids.len(), SESSIONS);
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn other_clients_of_the_pool_find_no_trace_in_their_sessions() {
    let database = support::database().await;
    let before = sessions(&database).await;
    assert!(
        before[0].starts_with("0 statements, 0 channels, 0 locks, settings [], "),
        "{before:?}"
    );
    let store = Arc::new(PostgresStore::new(&through_pgbouncer(&database)).unwrap());
    let f = Fixture::new(store.clone(), clock());
    let t = f.workspace(5).await;
    let jobs = vec![new_job(); 500];
    let request = LockRequest {
        name: "a lock".to_owned(),
        owner: "an owner".to_owned(),
        at_most_for: Duration::from_secs(60),
    };
    let several = (0..SESSIONS * 2).map(|_| async {
        f.enqueue(&t, 3).await;
        f.enqueue_new_jobs(&jobs).await;
        let claimed = f.claim(2).await;
        for request in claimed.requests {
            f.dispatch(&request).await;
            f.finish(request.execution, ExecutionEnd::Completed).await;
        }
        store.lock_acquire(&request).await.unwrap();
    });
    futures::future::join_all(several).await;
    assert!(matches!(
        store.lock_acquire(&request).await,
        Ok(LockAcquired::Held { .. })
    ));
    // A transaction that is dropped and one that fails leave nothing either.
    let unknown = leasehold_store::fresh_id();
    assert!(store.workspace_get(unknown).await.unwrap().is_none());
    drop(tokio::time::timeout(Duration::from_millis(1), f.enqueue_new_jobs(&jobs)).await);
    drop(f);
    assert_eq!(sessions(&database).await, before);
}

fn assert_names_the_settings(error: &Error) {
    let text = error.to_string();
    assert!(matches!(error.kind, ErrorKind::Unavailable(_)), "{text}");
    for name in [
        "store.pooler = \"transaction\"",
        "store.prepared_statements = false",
    ] {
        assert!(text.contains(name), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statement_that_is_not_in_the_session_names_the_settings() {
    let database = support::database().await;
    let prepared_statements = true;
    for pooler in [
        Pooler::None,
        Pooler::Transaction {
            prepared_statements,
        },
    ] {
        let options = PostgresOptions {
            pooler,
            ..PostgresOptions::new(through_bouncer(&database))
        };
        let store = PostgresStore::new(&options).unwrap();
        let unknown = leasehold_store::fresh_id();
        assert!(store.workspace_get(unknown).await.unwrap().is_none());
        // Another client uses the session that was used last.
        let url = through_bouncer(&database);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("BEGIN").await.unwrap();
        assert_names_the_settings(&store.workspace_get(unknown).await.unwrap_err());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn store_that_knows_of_no_pooler_refuses_to_start_behind_one() {
    let database = support::database().await;
    let open = |url: String, pooler| {
        let options = PostgresOptions {
            pooler,
            ..PostgresOptions::new(url)
        };
        PostgresStore::new(&options).unwrap()
    };
    let refused = open(through_bouncer(&database), Pooler::None);
    assert_names_the_settings(&refused.schema_migrate().await.unwrap_err());
    assert_names_the_settings(&refused.schema_status().await.unwrap_err());
    for store in [
        open(database.url().to_owned(), Pooler::None),
        open(through_bouncer(&database), UNPREPARED),
    ] {
        assert_eq!(store.schema_migrate().await.unwrap(), []);
    }
}
