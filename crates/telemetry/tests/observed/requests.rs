//! Requests: enqueued, taken back, and at every end there is.

use crate::observed_env::{LEASE, OWNER, ObservedEnv, failed, moves};
use leasehold_core::graph::GraphStop;
use leasehold_core::job::{Again, JobClaim, JobEnd, JobFinish};
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
async fn what_was_there_before_is_not_enqueued_again() {
    let ground = ObservedEnv::new().await;
    let same = |ground: &ObservedEnv| NewRequest {
        idempotency: Some(Idempotency {
            key: "once".to_owned(),
            window: None,
        }),
        ..ground.request()
    };
    let call = ground.enqueue(vec![ground.request(), same(&ground)]);
    ground.store.request_enqueue(&call).await.unwrap();
    assert_eq!(ground.moved(), moves([(ENQUEUED, 2.0)]));
    let call = ground.enqueue(vec![same(&ground), ground.request()]);
    ground.store.request_enqueue(&call).await.unwrap();
    assert_eq!(ground.moved(), moves([(ENQUEUED, 1.0)]));
}

#[tokio::test]
async fn a_failed_request_that_is_repeated_is_enqueued() {
    let ground = ObservedEnv::new().await;
    for _ in 0..2 {
        let claimed = ground.claimed().await;
        fail(&ground, &claimed, FailureReason::Cancelled).await;
    }
    let failed = ground.claimed().await;
    fail(&ground, &failed, FailureReason::Cancelled).await;
    ground.moved();
    let one = Redrive {
        workspace: ground.workspace,
        failed: failed.id,
        id: leasehold_store::fresh_id(),
        by: "a caller".to_owned(),
    };
    ground.store.request_redrive(&one).await.unwrap();
    ground.store.request_redrive(&one).await.unwrap();
    assert_eq!(ground.moved(), moves([(ENQUEUED, 1.0)]));
    let many = RedriveMany {
        workspace: ground.workspace,
        reason: None,
        limit: 10,
        by: "a caller".to_owned(),
    };
    ground.store.request_redrive_many(&many).await.unwrap();
    assert_eq!(ground.moved(), moves([(ENQUEUED, 2.0)]));
}

async fn fail(ground: &ObservedEnv, claimed: &ClaimedRequest, reason: FailureReason) -> bool {
    let fail = Fail {
        claim: ClaimRef::from(claimed),
        reason,
        error: None,
    };
    ground.store.request_fail(OWNER, &fail).await.unwrap()
}

async fn release(ground: &ObservedEnv, claimed: &ClaimedRequest, kind: ReleaseKind) {
    let release = Release {
        claim: ClaimRef::from(claimed),
        kind,
        delay: Duration::ZERO,
        error: None,
    };
    let released = ground.store.request_release(OWNER, &[release]).await;
    assert_eq!(released.unwrap().len(), 1);
}

#[tokio::test]
async fn a_request_that_is_given_up_fails_once_with_its_reason() {
    let ground = ObservedEnv::new().await;
    let claimed = ground.claimed().await;
    assert!(fail(&ground, &claimed, FailureReason::DefinitionNotFound).await);
    assert_eq!(ground.moved(), failed("definition_not_found"));
    assert!(!fail(&ground, &claimed, FailureReason::DefinitionNotFound).await);
    assert_eq!(ground.moved(), moves([]));
}

#[tokio::test]
async fn a_refused_start_fails_the_request_only_when_it_was_the_last() {
    let ground = ObservedEnv::new().await;
    let claimed = ground.claimed().await;
    let refused = ReleaseKind::Refused { max_attempts: 2 };
    release(&ground, &claimed, refused).await;
    assert_eq!(ground.moved(), moves([]));
    let claimed = ground.claim().await.requests.remove(0);
    release(&ground, &claimed, refused).await;
    assert_eq!(ground.moved(), failed("dispatch_exhausted"));
}

#[tokio::test]
async fn what_needs_a_definition_that_is_gone_fails_at_its_claim() {
    let ground = ObservedEnv::new().await;
    let call = ground.enqueue(vec![ground.request()]);
    ground.store.request_enqueue(&call).await.unwrap();
    let deleted = ground
        .store
        .definition_delete(ground.workspace, ground.definition);
    assert!(deleted.await.unwrap());
    ground.moved();
    assert_eq!(ground.claim().await.rejected.len(), 1);
    assert_eq!(ground.moved(), failed("definition_not_found"));
}

#[tokio::test]
async fn a_cancellation_counts_when_it_ends_the_request() {
    let ground = ObservedEnv::new().await;
    let cancel = |request| Cancel {
        workspace: ground.workspace,
        request,
        force: false,
        by: "a caller".to_owned(),
    };
    let waiting = ground.request();
    let id = waiting.id;
    ground
        .store
        .request_enqueue(&ground.enqueue(vec![waiting]))
        .await
        .unwrap();
    ground.moved();
    for expected in [failed("cancelled"), moves([])] {
        ground.store.request_cancel(&cancel(id)).await.unwrap();
        assert_eq!(ground.moved(), expected);
    }
    let claimed = ground.claimed().await;
    ground
        .store
        .request_cancel(&cancel(claimed.id))
        .await
        .unwrap();
    assert_eq!(ground.moved(), moves([]), "it is only wished");
    release(&ground, &claimed, ReleaseKind::NotStarted).await;
    assert_eq!(ground.moved(), failed("cancelled"));
}

#[tokio::test]
async fn leases_are_counted_when_renewed_and_when_taken_back() {
    let ground = ObservedEnv::new().await;
    let claimed = ground.claimed().await;
    let claims = [ClaimRef::from(&claimed)];
    let renewed = ground.store.request_renew(OWNER, &claims, LEASE).await;
    assert_eq!(renewed.unwrap().len(), 1);
    let expected = moves([("leasehold_lease_renewals_total{kind=\"request\"}", 1.0)]);
    assert_eq!(ground.moved(), expected);
    ground.clock.advance(LEASE * 2);
    ground.store.request_recover("another", 10).await.unwrap();
    let expected = moves([
        ("queue_stale_recovery_count", 1.0),
        ("leasehold_lease_expiries_total{kind=\"request\"}", 1.0),
    ]);
    assert_eq!(ground.moved(), expected);
    ground.store.request_recover("another", 10).await.unwrap();
    assert_eq!(ground.moved(), moves([]));
}

#[tokio::test]
async fn every_end_of_an_execution_is_an_end_of_its_request() {
    let ground = ObservedEnv::new().await;
    for (end, expected) in [
        (ExecutionEnd::Completed, moves([(COMPLETED, 1.0)])),
        (ExecutionEnd::Failed, failed("execution_failed")),
        (ExecutionEnd::TimedOut, failed("timed_out")),
        (ExecutionEnd::Cancelled, failed("cancelled")),
        (ExecutionEnd::Terminated, failed("terminated")),
        (ExecutionEnd::Lost, failed("engine_lost")),
    ] {
        let claimed = ground.claimed().await;
        let finish = [ExecutionFinish {
            execution: claimed.execution,
            end,
            error: None,
        }];
        ground.store.execution_finish(OWNER, &finish).await.unwrap();
        assert_eq!(ground.moved(), expected, "{end:?}");
        ground.store.execution_finish(OWNER, &finish).await.unwrap();
        assert_eq!(ground.moved(), moves([]), "{end:?}");
    }
}

/// An execution whose graph runs, and the claim of its only node's job.
async fn running(ground: &ObservedEnv) -> (ClaimedRequest, leasehold_core::job::ClaimedJob) {
    let claimed = ground.claimed().await;
    let claims = [ClaimRef::from(&claimed)];
    ground.store.graph_start(&(&claimed).into()).await.unwrap();
    ground
        .store
        .request_dispatched(OWNER, &claims)
        .await
        .unwrap();
    let claim = JobClaim {
        queue: "mails".to_owned(),
        worker: "a worker".to_owned(),
        max: 1,
        lease: None,
    };
    let job = ground.store.job_claim(&claim).await.unwrap().jobs.remove(0);
    ground.moved();
    (claimed, job)
}

fn said(claimed: &ClaimedRequest, status: &str, end: &str) {
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
async fn a_graph_that_ends_in_the_store_is_counted_and_logged() {
    logs::keep();
    let ground = ObservedEnv::new().await;
    let (claimed, job) = running(&ground).await;
    let completed = JobFinish {
        claim: job.claim(),
        end: JobEnd::Completed { result: None },
    };
    let finishes = [completed];
    ground
        .store
        .job_finish("a worker", &finishes)
        .await
        .unwrap();
    let expected = [
        (COMPLETED, 1.0),
        ("leasehold_jobs_finished_total{outcome=\"completed\"}", 1.0),
    ];
    assert_eq!(ground.moved(), moves(expected));
    said(&claimed, "COMPLETED", "Completed");

    let (claimed, job) = running(&ground).await;
    let never = JobFinish {
        claim: job.claim(),
        end: JobEnd::Failed {
            error: "no such address".to_owned(),
            again: Again::Never,
        },
    };
    ground.store.job_finish("a worker", &[never]).await.unwrap();
    let mut expected = failed("execution_failed");
    expected.insert(
        "leasehold_jobs_finished_total{outcome=\"failed\"}".to_owned(),
        1.0,
    );
    assert_eq!(ground.moved(), expected);
    said(&claimed, "FAILED", "Failed");
}

#[tokio::test]
async fn a_graph_that_is_stopped_is_counted_and_logged_and_one_that_is_too_late_is_counted() {
    logs::keep();
    let ground = ObservedEnv::new().await;
    let (claimed, _) = running(&ground).await;
    for expected in [failed("cancelled"), moves([])] {
        let stop =
            ground
                .store
                .graph_stop(claimed.execution, GraphStop::Cancelled, "engine", "enough");
        stop.await.unwrap();
        assert_eq!(ground.moved(), expected);
    }
    said(&claimed, "FAILED", "Cancelled");

    let (claimed, _) = running(&ground).await;
    ground.clock.advance(Duration::from_secs(120));
    for expected in [failed("timed_out"), moves([])] {
        ground.store.graph_settle("engine", 10).await.unwrap();
        assert_eq!(ground.moved(), expected);
    }
    // The settler logs what it ended, and why.
    let execution = format!("execution={}", claimed.execution);
    assert_eq!(
        logs::count(Level::INFO, &[&execution]),
        0,
        "{}",
        logs::all()
    );
}
