//! Rules of a request's row: an invalid write is rejected with the name of the rule.
#![allow(clippy::unwrap_used)]

use crate::support;
use crate::support::raw::{connect, rejected_by};
use leasehold_store_conformance::{Fixture, clock};
use std::sync::Arc;

#[tokio::test]
async fn invalid_request_is_rejected_with_the_name_of_the_constraint() {
    let (clock, database) = (clock(), support::database().await);
    let store = Arc::new(support::store(&database, clock.clone()));
    let client = connect(&database).await;
    let fixture = Fixture::new(store, clock);
    let workspace = fixture.workspace(5).await;
    let running = fixture.enqueue_running(&workspace).await.id;
    let change = include_str!("sql/request_change.sql");
    for (set, constraint) in [
        ("id = gen_random_uuid()", "request_identity"),
        ("workspace_id = gen_random_uuid()", "request_identity"),
        ("status = 'RUNNING'", "request_status"),
        ("status = 'PENDING'", "request_transition"),
        ("due = true", "request_due"),
        ("claimed_by = 'x'", "request_claim_fields"),
        ("lease_expires_at = now()", "request_claim_fields"),
        ("claimed_at = NULL", "request_claimed_at"),
        ("dispatched_at = NULL", "request_dispatched_at"),
        ("execution_id = NULL", "request_execution"),
        ("finished_at = now()", "request_finished"),
        ("status = 'COMPLETED'", "request_finished"),
        ("failure_reason = 'cancelled'", "request_failure_reason"),
        (
            "status = 'FAILED', finished_at = now()",
            "request_failure_reason",
        ),
        (
            "status = 'FAILED', finished_at = now(), failure_reason = 'Not a name'",
            "request_failure_reason",
        ),
        ("dispatch_failures = -1", "request_attempts"),
        ("dispatch_failures = attempt_count + 1", "request_attempts"),
        ("live_redrive_of = gen_random_uuid()", "request_redrive"),
        ("redrive_of = gen_random_uuid()", "request_live_redrive"),
        ("cancel_force = true", "request_cancel"),
        ("cancel_told_at = now()", "request_cancel"),
        ("bytes = -1", "request_bytes"),
        ("execution_bytes = -1", "request_bytes"),
        ("crashes = 1", "request_crashes"),
        (
            "crashes = 1, crashes_alone = 2, crashed_process = 'x'",
            "request_crashes",
        ),
        (
            "crashes = 0, crashes_alone = 0, crashed_process = 'x'",
            "request_crashes",
        ),
        ("priority = 1001", "request_priority"),
        ("priority = -1001", "request_priority"),
        ("idempotency_key = ''", "request_key_length"),
        ("idempotency_key = repeat('x', 256)", "request_key_length"),
        ("run_at = '-infinity'", "request_run_at"),
        ("run_at = 'infinity'", "request_run_at"),
        ("dedupe_until = 'infinity'", "request_dedupe_until"),
    ] {
        let sql = change.replace("{change}", set);
        let outcome = client.execute(&sql, &[&running.0]).await;
        assert_eq!(rejected_by(outcome), constraint, "{set}");
    }
    let sql = change.replace("{change}", "last_error = 'valid'");
    assert_eq!(client.execute(&sql, &[&running.0]).await.unwrap(), 1);
    let begun = include_str!("sql/request_insert_claimed.sql");
    let outcome = client.execute(begun, &[&running.0]).await;
    assert_eq!(rejected_by(outcome), "request_transition");
}
