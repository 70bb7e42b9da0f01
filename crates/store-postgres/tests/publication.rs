//! A publication of all tables, as logical replication needs it, stops nothing.
#![allow(clippy::unwrap_used)]

use crate::support;

use leasehold_store_conformance::{
    Fixture, clock, execution_finish, job_claim, job_finish, job_prune, job_requeue, node_finish,
    prune, request_cancel, request_claim, request_enqueue, request_idempotency, request_recover,
    request_release, workspace,
};
use leasehold_testbed::{BackendKind, BackendOptions, TestBackend};
use leasehold_testkit::sized;
use support::raw::connect;

/// A store whose database has a publication of all tables.
async fn fixture() -> Fixture {
    let clock = clock();
    let options = BackendOptions {
        connections: 10,
        ..BackendOptions::default().clock(clock.clone())
    };
    let backend = TestBackend::with(BackendKind::Postgres, options).await;
    let client = connect(backend.database()).await;
    client
        .batch_execute(include_str!("sql/publication_create.sql"))
        .await
        .unwrap();
    Fixture::new(backend.store.clone(), clock).guarded(backend)
}

#[tokio::test]
async fn every_table_has_a_replica_identity() {
    let database = support::database().await;
    let client = connect(&database).await;
    let sql = include_str!("sql/publication_missing_identity.sql");
    let rows = client.query(sql, &[]).await.unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get("name")).collect();
    assert_eq!(names, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_enqueued_claimed_and_pruned() {
    request_enqueue::starts_pending_with_all_options(fixture().await).await;
    request_idempotency::key_is_free_when_its_window_has_passed(fixture().await).await;
    request_idempotency::key_with_a_window_outlives_its_pruned_request(fixture().await).await;
    request_claim::claiming_while_there_is_more_drains_everything(fixture().await).await;
    request_claim::concurrent_claims_take_each_request_once(fixture().await).await;
    request_recover::keeps_execution_and_slot(fixture().await).await;
    request_release::each_kind_has_its_counters_and_effects(fixture().await).await;
    execution_finish::each_end_has_its_status_and_reason(fixture().await).await;
    prune::deletes_a_request_completely(fixture().await).await;
    prune::clears_keys_with_expired_windows(fixture().await).await;
    request_cancel::pending_request_fails_at_once(fixture().await).await;
    workspace::update_changes_only_the_given_fields(fixture().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_claimed_finished_and_pruned() {
    job_claim::retried_jobs_are_merged_with_fresh_ones(fixture().await).await;
    job_claim::jobs_of_one_large_claim_end_individually(fixture().await).await;
    job_finish::failed_attempt_is_retried_by_the_policy(fixture().await).await;
    job_requeue::sweep_requeues_expired_jobs_at_once(fixture().await).await;
    job_prune::deletes_everything_over_repeated_calls(fixture().await).await;
    node_finish::diamond_runs_to_its_end(fixture().await).await;
}

#[test]
fn random_operations_agree_with_the_model() {
    leasehold_store_conformance::model_test(fixture, sized(3, 20));
}
