//! Operators and casts that another role created where it may: neither the SQL functions nor the program's statements use them.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_core::ExecutionEnd;
use leasehold_store::{SchemaStore, checksum};
use leasehold_store_conformance::{
    Fixture, clock, execution_finish, graph_expire, graph_start, instance, job_claim, job_dedup,
    job_finish, job_prune, job_renew, job_requeue, key, key_rotation, lock, node_finish, prune,
    request_cancel, request_claim, request_counts, request_enqueue, request_idempotency,
    request_oldest, request_position, request_recover, request_redrive, request_release,
    request_renew, workspace, workspace_overview, workspace_quota,
};
use leasehold_store_postgres::{PostgresOptions, PostgresStore, schema_checksum};
use leasehold_testkit::{TestDatabase, TestPostgres};
use serde_json::json;
use std::sync::Arc;
use support::raw::connect;
use tokio_postgres::{Client, NoTls};

const TRAPS: &str = include_str!("sql/function_traps.sql");
const EVERYTHING: &str = include_str!("sql/enqueue_everything.sql");
const REBUILD: &str = include_str!("sql/rebuild.sql");

/// A database whose schema was migrated after the traps were created.
async fn database() -> TestDatabase {
    let server = TestPostgres::shared();
    let hash = schema_checksum() ^ checksum(TRAPS);
    let name = format!("traps_{:016x}", hash.cast_unsigned());
    let build = |url: String| async move {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(TRAPS).await.unwrap();
        let store = PostgresStore::new(&PostgresOptions::new(url)).unwrap();
        store.schema_migrate().await.unwrap();
    };
    let template = server.template_database(&name, build).await;
    server.fresh_database(Some(&template)).await
}

async fn backend() -> (Fixture, Client) {
    let (database, clock) = (database().await, clock());
    let store = support::store(&database, clock.clone());
    let client = connect(&database).await;
    let fixture = Fixture::new(Arc::new(store), clock).guarded(database);
    (fixture, client)
}

async fn fixture() -> Fixture {
    backend().await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn public_functions_and_rebuild_use_only_operators_of_postgresql() {
    let (f, client) = backend().await;
    let t = f.workspace(5).await;
    let (workspace, definition) = (t.workspace.0, t.definition.0);
    client
        .query_one(EVERYTHING, &[&workspace, &definition, &json!({})])
        .await
        .unwrap();
    let claimed = f.claim_one().await;
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    client.batch_execute(REBUILD).await.unwrap();
    assert_eq!(f.counts(t.workspace).await.completed, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_requests_use_only_operators_of_postgresql() {
    request_enqueue::can_mix_definitions_and_options(fixture().await).await;
    request_idempotency::key_with_a_window_outlives_its_pruned_request(fixture().await).await;
    request_claim::concurrent_claims_take_each_request_once(fixture().await).await;
    request_counts::equal_a_full_listing(fixture().await).await;
    request_oldest::age_counts_from_the_current_status(fixture().await).await;
    request_position::equals_the_number_claimed_first(fixture().await).await;
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
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_jobs_and_graphs_use_only_operators_of_postgresql() {
    job_claim::retried_jobs_are_merged_with_fresh_ones(fixture().await).await;
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
