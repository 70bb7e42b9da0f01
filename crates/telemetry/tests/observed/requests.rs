//! Metrics of requests: enqueued, recovered and finished in every way.

use crate::observed_env::{LEASE, OWNER, ObservedEnv, changes, failed};
use leasehold_core::graph::GraphStop;
use leasehold_core::job::{JobClaim, JobEnd, JobFinish, RetryMode};
use leasehold_core::{ExecutionEnd, FailureReason};
use leasehold_store::execution::ExecutionFinish;
use leasehold_store::request::{
    Cancel, ClaimRef, ClaimedRequest, Fail, Idempotency, NewRequest, Redrive, RedriveMany, Release,
    ReleaseKind,
};
use leasehold_testkit::logs;
use std::time::Duration;
use tracing::Level;

const COMPLETED: &str = "leasehold_requests_finished_total{status=\"completed\"}";
const ENQUEUED: &str = "leasehold_requests_enqueued_total";

#[tokio::test]
async fn duplicate_of_an_idempotency_key_is_not_counted() {
    let env = ObservedEnv::new().await;
    let same = |env: &ObservedEnv| NewRequest {
        idempotency: Some(Idempotency {
            key: "once".to_owned(),
            window: None,
        }),
        ..env.request()
    };
    let call = env.enqueue(vec![env.request(), same(&env)]);
    env.store.request_enqueue(&call).await.unwrap();
    assert_eq!(env.changed(), changes([(ENQUEUED, 2.0)]));
    let call = env.enqueue(vec![same(&env), env.request()]);
    env.store.request_enqueue(&call).await.unwrap();
    assert_eq!(env.changed(), changes([(ENQUEUED, 1.0)]));
}

#[tokio::test]
async fn redriven_requests_are_counted_as_enqueued() {
    let env = ObservedEnv::new().await;
    for _ in 0..2 {
        let claimed = env.claimed().await;
        fail(&env, &claimed, FailureReason::Cancelled).await;
    }
    let failed = env.claimed().await;
    fail(&env, &failed, FailureReason::Cancelled).await;
    env.changed();
    let one = Redrive {
        workspace: env.workspace,
        failed: failed.id,
        id: leasehold_store::fresh_id(),
        by: "a caller".to_owned(),
    };
    env.store.request_redrive(&one).await.unwrap();
    env.store.request_redrive(&one).await.unwrap();
    assert_eq!(env.changed(), changes([(ENQUEUED, 1.0)]));
    let many = RedriveMany {
        workspace: env.workspace,
        reason: None,
        definition: None,
        limit: 10,
        max_bytes: u64::MAX,
        by: "a caller".to_owned(),
    };
    env.store.request_redrive_many(&many).await.unwrap();
    assert_eq!(env.changed(), changes([(ENQUEUED, 2.0)]));
}

async fn fail(env: &ObservedEnv, claimed: &ClaimedRequest, reason: FailureReason) -> bool {
    let fail = Fail {
        claim: ClaimRef::from(claimed),
        reason,
        error: None,
    };
    env.store.request_fail(OWNER, &fail).await.unwrap()
}

async fn release(env: &ObservedEnv, claimed: &ClaimedRequest, kind: ReleaseKind) {
    let release = Release {
        claim: ClaimRef::from(claimed),
        kind,
        delay: Duration::ZERO,
        error: None,
    };
    let released = env.store.request_release(OWNER, &[release]).await;
    assert_eq!(released.unwrap().len(), 1);
}

#[tokio::test]
async fn failed_request_is_counted_once_with_its_reason() {
    let env = ObservedEnv::new().await;
    let claimed = env.claimed().await;
    assert!(fail(&env, &claimed, FailureReason::DefinitionNotFound).await);
    assert_eq!(env.changed(), failed("definition_not_found"));
    assert!(!fail(&env, &claimed, FailureReason::DefinitionNotFound).await);
    assert_eq!(env.changed(), changes([]));
}

#[tokio::test]
async fn rejected_start_counts_as_failure_only_after_the_last_attempt() {
    let env = ObservedEnv::new().await;
    let claimed = env.claimed().await;
    let refused = ReleaseKind::Refused { max_attempts: 2 };
    release(&env, &claimed, refused).await;
    assert_eq!(env.changed(), changes([]));
    let claimed = env.claim().await.requests.remove(0);
    release(&env, &claimed, refused).await;
    assert_eq!(env.changed(), failed("dispatch_exhausted"));
}

#[tokio::test]
async fn request_of_a_deleted_definition_is_counted_as_failed_at_its_claim() {
    let env = ObservedEnv::new().await;
    let call = env.enqueue(vec![env.request()]);
    env.store.request_enqueue(&call).await.unwrap();
    let deleted = env.store.definition_delete(
        env.workspace,
        env.definition,
        &leasehold_store::Actor::Local,
    );
    assert!(deleted.await.unwrap());
    env.changed();
    assert_eq!(env.claim().await.rejected.len(), 1);
    assert_eq!(env.changed(), failed("definition_not_found"));
}

#[tokio::test]
async fn cancellation_is_counted_when_it_finishes_the_request() {
    let env = ObservedEnv::new().await;
    let cancel = |request| Cancel {
        workspace: env.workspace,
        request,
        force: false,
        by: "a caller".to_owned(),
    };
    let waiting = env.request();
    let id = waiting.id;
    env.store
        .request_enqueue(&env.enqueue(vec![waiting]))
        .await
        .unwrap();
    env.changed();
    for expected in [failed("cancelled"), changes([])] {
        env.store.request_cancel(&cancel(id)).await.unwrap();
        assert_eq!(env.changed(), expected);
    }
    let claimed = env.claimed().await;
    env.store.request_cancel(&cancel(claimed.id)).await.unwrap();
    assert_eq!(
        env.changed(),
        changes([]),
        "only the cancel request is recorded"
    );
    release(&env, &claimed, ReleaseKind::NotStarted).await;
    assert_eq!(env.changed(), failed("cancelled"));
}

#[tokio::test]
async fn renewed_and_expired_request_leases_are_counted() {
    let env = ObservedEnv::new().await;
    let claimed = env.claimed().await;
    let claims = [ClaimRef::from(&claimed)];
    let renewed = env.store.request_renew(OWNER, &claims, LEASE).await;
    assert_eq!(renewed.unwrap().renewed.len(), 1);
    let expected = changes([("leasehold_lease_renewals_total{kind=\"request\"}", 1.0)]);
    assert_eq!(env.changed(), expected);
    env.clock.advance(LEASE * 2);
    env.store.request_recover("another", 10).await.unwrap();
    let expected = changes([
        ("queue_stale_recovery_count", 1.0),
        ("leasehold_lease_expiries_total{kind=\"request\"}", 1.0),
    ]);
    assert_eq!(env.changed(), expected);
    env.store.request_recover("another", 10).await.unwrap();
    assert_eq!(env.changed(), changes([]));
}

#[tokio::test]
async fn every_end_of_an_execution_counts_a_finished_request() {
    let env = ObservedEnv::new().await;
    for (end, expected) in [
        (ExecutionEnd::Completed, changes([(COMPLETED, 1.0)])),
        (ExecutionEnd::Failed, failed("execution_failed")),
        (ExecutionEnd::TimedOut, failed("timed_out")),
        (ExecutionEnd::Cancelled, failed("cancelled")),
        (ExecutionEnd::Terminated, failed("terminated")),
        (ExecutionEnd::Lost, failed("engine_lost")),
    ] {
        let claimed = env.claimed().await;
        let finish = [ExecutionFinish {
            execution: claimed.execution,
            end,
            error: None,
        }];
        env.store.execution_finish(OWNER, &finish).await.unwrap();
        assert_eq!(env.changed(), expected, "{end:?}");
        env.store.execution_finish(OWNER, &finish).await.unwrap();
        assert_eq!(env.changed(), changes([]), "{end:?}");
    }
}

/// Returns a claimed request whose graph runs, and the claimed job of its only node.
async fn running(env: &ObservedEnv) -> (ClaimedRequest, leasehold_core::job::ClaimedJob) {
    let claimed = env.claimed().await;
    let claims = [ClaimRef::from(&claimed)];
    env.store.graph_start(&(&claimed).into()).await.unwrap();
    env.store.request_dispatched(OWNER, &claims).await.unwrap();
    let claim = JobClaim {
        queue: "mails".to_owned(),
        worker: "a worker".to_owned(),
        max: 1,
        lease: None,
    };
    let job = env.store.job_claim(&claim).await.unwrap().jobs.remove(0);
    env.changed();
    (claimed, job)
}

fn assert_logged(claimed: &ClaimedRequest, status: &str, end: &str) {
    let (execution, request) = (claimed.execution, claimed.id);
    logs::assert_once(
        Level::INFO,
        &[
            "execution ended",
            &format!("execution={execution}"),
            &format!("request={request}"),
            &format!("status={status}"),
            &format!("end={end}"),
        ],
    );
}

#[tokio::test]
async fn graph_that_ends_in_the_store_is_counted_and_logged() {
    logs::capture();
    let env = ObservedEnv::new().await;
    let (claimed, job) = running(&env).await;
    let completed = JobFinish {
        claim: job.claim(),
        end: JobEnd::Completed { result: None },
    };
    let finishes = [completed];
    env.store.job_finish("a worker", &finishes).await.unwrap();
    let expected = [
        (COMPLETED, 1.0),
        ("leasehold_jobs_finished_total{outcome=\"completed\"}", 1.0),
    ];
    assert_eq!(env.changed(), changes(expected));
    assert_logged(&claimed, "COMPLETED", "Completed");

    let (claimed, job) = running(&env).await;
    let never = JobFinish {
        claim: job.claim(),
        end: JobEnd::Failed {
            error: "no such address".to_owned(),
            retry_mode: RetryMode::Never,
        },
    };
    env.store.job_finish("a worker", &[never]).await.unwrap();
    let mut expected = failed("execution_failed");
    expected.insert(
        "leasehold_jobs_finished_total{outcome=\"failed\"}".to_owned(),
        1.0,
    );
    assert_eq!(env.changed(), expected);
    assert_logged(&claimed, "FAILED", "Failed");
}

#[tokio::test]
async fn stopped_graph_is_counted_and_logged_and_expired_graph_is_counted() {
    logs::capture();
    let env = ObservedEnv::new().await;
    let (claimed, _) = running(&env).await;
    for expected in [failed("cancelled"), changes([])] {
        let stop =
            env.store
                .graph_stop(claimed.execution, GraphStop::Cancelled, "engine", "enough");
        stop.await.unwrap();
        assert_eq!(env.changed(), expected);
    }
    assert_logged(&claimed, "FAILED", "Cancelled");

    let (claimed, _) = running(&env).await;
    env.clock.advance(Duration::from_secs(120));
    for expected in [failed("timed_out"), changes([])] {
        env.store.graph_expire("engine", 10).await.unwrap();
        assert_eq!(env.changed(), expected);
    }
    // The timeout sweeper logs expired graphs.
    let execution = format!("execution={}", claimed.execution);
    assert_eq!(
        logs::count(Level::INFO, &[&execution]),
        0,
        "{}",
        logs::all()
    );
}
