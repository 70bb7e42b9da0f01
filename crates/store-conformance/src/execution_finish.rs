//! The end of executions: status, reason and slot of the execution and its request.

use crate::Fixture;
use crate::factory::{OWNER, USER, ids, ok};
use leasehold_core::{ExecutionEnd, ExecutionStatus, FailureReason, RequestStatus};
use leasehold_store::execution::{Execution, ExecutionFinish, ExecutionFinished};
use leasehold_store::fresh_id;
use leasehold_store::request::{ReleaseKind, Request};

use RequestStatus::{Claimed, Completed, Dispatched, Failed, Pending};

fn finish(
    claimed: &leasehold_store::request::ClaimedRequest,
    end: ExecutionEnd,
) -> ExecutionFinish {
    ExecutionFinish {
        execution: claimed.execution,
        end,
        error: None,
    }
}

/// The statuses of execution and request after each end.
fn ends() -> [(ExecutionEnd, ExecutionStatus, Option<FailureReason>); 6] {
    [
        (ExecutionEnd::Completed, ExecutionStatus::Completed, None),
        (
            ExecutionEnd::Failed,
            ExecutionStatus::Failed,
            Some(FailureReason::ExecutionFailed),
        ),
        (
            ExecutionEnd::TimedOut,
            ExecutionStatus::Failed,
            Some(FailureReason::TimedOut),
        ),
        (
            ExecutionEnd::Cancelled,
            ExecutionStatus::Cancelled,
            Some(FailureReason::Cancelled),
        ),
        (
            ExecutionEnd::Terminated,
            ExecutionStatus::Failed,
            Some(FailureReason::Terminated),
        ),
        (
            ExecutionEnd::Lost,
            ExecutionStatus::Failed,
            Some(FailureReason::EngineLost),
        ),
    ]
}

/// Each end sets status and reason of execution and request and frees the slot. A failure counts as an attempt.
pub async fn each_end_has_its_status_and_reason(f: Fixture) {
    for (end, execution_status, reason) in ends() {
        let t = f.workspace(1).await;
        let running = f.enqueue_running(&t).await;
        let before = f.request(t.workspace, running.id).await;
        let execution = f.execution(t.workspace, running.execution).await;
        f.advance(1);
        let error = reason.map(|_| "node b: boom".to_owned());
        let one = ExecutionFinish {
            error: error.clone(),
            ..finish(&running, end)
        };
        let answers = ok(f.store.execution_finish("reconciler", &[one]).await);
        let status = if reason.is_some() { Failed } else { Completed };
        let finished = ExecutionFinished::Finished {
            request: running.id,
            status,
            reason,
        };
        assert_eq!(answers, [finished]);
        let expected = Request {
            status: status.into(),
            attempt_count: u32::from(reason.is_some()),
            failure_reason: reason.map(Into::into),
            last_error: error.clone(),
            finished_at: Some(f.now()),
            ..before
        };
        assert_eq!(f.request(t.workspace, running.id).await, expected);
        let expected = Execution {
            status: execution_status.into(),
            finished_at: Some(f.now()),
            error,
            ..execution.expect("the execution was running")
        };
        let execution = f.execution(t.workspace, running.execution).await;
        assert_eq!(execution, Some(expected));
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        let events = f.timeline(t.workspace, running.id).await;
        let last = crate::timeline::step(events.last().expect("the timeline is not empty"));
        let word = reason.map(FailureReason::as_str);
        assert_eq!(last, (Some(Dispatched), status, "reconciler", word));
    }
}

/// A CLAIMED request moves through DISPATCHED to its end in one transaction, with one event per step.
pub async fn claimed_request_passes_through_dispatched(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.advance(1);
    assert_eq!(
        f.finish(claimed.execution, ExecutionEnd::Completed).await,
        Completed
    );
    f.assert_timeline(
        t.workspace,
        claimed.id,
        &[
            (None, Pending, USER, None),
            (Some(Pending), Claimed, OWNER, None),
            (Some(Claimed), Dispatched, "engine", None),
            (Some(Dispatched), Completed, "engine", None),
        ],
    )
    .await;
    let request = f.request(t.workspace, claimed.id).await;
    assert_eq!(request.dispatched_at, Some(f.now()));
    assert_eq!(request.finished_at, Some(f.now()));
    assert_eq!((request.claimed_by, request.lease_expires_at), (None, None));
    assert_eq!(request.attempt_count, 0);
}

/// A PENDING request with an unknown start moves through CLAIMED and DISPATCHED and is not claimed again.
pub async fn pending_request_with_unknown_start_passes_through_every_status(f: Fixture) {
    let t = f.workspace(1).await;
    let kept = f.enqueue_unknown(&t).await;
    f.advance(1);
    assert_eq!(
        f.finish(kept.execution, ExecutionEnd::Terminated).await,
        Failed
    );
    f.assert_timeline(
        t.workspace,
        kept.id,
        &[
            (None, Pending, USER, None),
            (Some(Pending), Claimed, OWNER, None),
            (Some(Claimed), Pending, OWNER, Some("unknown")),
            (Some(Pending), Claimed, "engine", None),
            (Some(Claimed), Dispatched, "engine", None),
            (Some(Dispatched), Failed, "engine", Some("terminated")),
        ],
    )
    .await;
    let request = f.request(t.workspace, kept.id).await;
    assert_eq!(request.claimed_at, Some(f.now()));
    assert_eq!(request.dispatched_at, Some(f.now()));
    assert_eq!((request.claimed_by, request.lease_expires_at), (None, None));
    assert_eq!(
        request.attempt_count, 2,
        "the release and the failure count"
    );
    assert_eq!(ids(&f.claim(10).await), []);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
}

/// The same holds for an unknown start whose backoff has not passed.
pub async fn unknown_start_in_backoff_can_finish(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.release(&claimed, ReleaseKind::Unknown, 60).await;
    assert_eq!(
        f.finish(claimed.execution, ExecutionEnd::Completed).await,
        Completed
    );
    f.advance(60);
    assert_eq!(ids(&f.claim(10).await), []);
}

/// An execution that is terminated after a cancel request ends as cancelled; any other end keeps its reason.
pub async fn termination_after_a_cancel_request_is_cancelled(f: Fixture) {
    for (end, reason) in [
        (ExecutionEnd::Terminated, FailureReason::Cancelled),
        (ExecutionEnd::Failed, FailureReason::ExecutionFailed),
        (ExecutionEnd::TimedOut, FailureReason::TimedOut),
        (ExecutionEnd::Lost, FailureReason::EngineLost),
    ] {
        let t = f.workspace(1).await;
        let running = f.enqueue_running(&t).await;
        f.cancel(t.workspace, running.id).await;
        let finished = ExecutionFinished::Finished {
            request: running.id,
            status: Failed,
            reason: Some(reason),
        };
        assert_eq!(f.try_finish(running.execution, end).await, finished);
        let request = f.request(t.workspace, running.id).await;
        assert_eq!(request.failure_reason, Some(reason.into()), "{end:?}");
        let events = f.timeline(t.workspace, running.id).await;
        let last = events.last().expect("the timeline is not empty");
        assert_eq!(last.reason.as_deref(), Some(reason.as_str()));
    }
}

/// An execution that completes after a cancel request is completed.
pub async fn completion_wins_over_a_cancel_request(f: Fixture) {
    let t = f.workspace(1).await;
    let running = f.enqueue_running(&t).await;
    f.cancel(t.workspace, running.id).await;
    assert_eq!(
        f.finish(running.execution, ExecutionEnd::Completed).await,
        Completed
    );
    assert_eq!(
        f.request(t.workspace, running.id).await.failure_reason,
        None
    );
}

/// Outcomes are in the order of the call; the first end of an execution wins, also within one call.
pub async fn first_end_wins_and_outcomes_are_in_order(f: Fixture) {
    let t = f.workspace(9).await;
    f.enqueue(&t, 3).await;
    let claimed = f.claim(3).await.requests;
    f.finish(claimed[0].execution, ExecutionEnd::Completed)
        .await;
    let unknown = ExecutionFinish {
        execution: fresh_id(),
        end: ExecutionEnd::Failed,
        error: None,
    };
    let requested = [
        finish(&claimed[2], ExecutionEnd::Completed),
        unknown,
        finish(&claimed[0], ExecutionEnd::Failed),
        finish(&claimed[2], ExecutionEnd::Failed),
        finish(&claimed[1], ExecutionEnd::Lost),
    ];
    let answers = ok(f.store.execution_finish("engine", &requested).await);
    let finished = |n: usize, status, reason| ExecutionFinished::Finished {
        request: claimed[n].id,
        status,
        reason,
    };
    let expected = [
        finished(2, Completed, None),
        ExecutionFinished::NotFound,
        ExecutionFinished::AlreadyFinished,
        ExecutionFinished::AlreadyFinished,
        finished(1, Failed, Some(FailureReason::EngineLost)),
    ];
    assert_eq!(answers, expected);
    let before = f.dump().await;
    f.advance(1);
    let again = ok(f.store.execution_finish("engine", &requested[2..]).await);
    assert_eq!(again, [ExecutionFinished::AlreadyFinished; 3]);
    assert_eq!(f.dump().await, before);
    assert_eq!(ok(f.store.execution_finish("engine", &[]).await), []);
}

/// An execution that was definitely not started is deleted, so its end is not found.
pub async fn execution_that_was_not_started_is_not_found(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    f.release(&claimed, ReleaseKind::NotStarted, 0).await;
    let before = f.dump().await;
    let late = f
        .try_finish(claimed.execution, ExecutionEnd::Completed)
        .await;
    assert_eq!(late, ExecutionFinished::NotFound);
    assert_eq!(f.dump().await, before);
}

/// One call ends many executions of many workspaces and frees all their slots.
pub async fn one_call_ends_many_executions(f: Fixture) {
    let mut workspaces = Vec::new();
    for _ in 0..10 {
        let t = f.workspace(20).await;
        f.enqueue(&t, 20).await;
        workspaces.push(t);
    }
    let claimed = f.claim(1_000).await.requests;
    assert_eq!(claimed.len(), 200);
    let all: Vec<ExecutionFinish> = claimed
        .iter()
        .map(|c| finish(c, ExecutionEnd::Completed))
        .collect();
    let answers = ok(f.store.execution_finish("engine", &all).await);
    for (answer, claimed) in answers.iter().zip(&claimed) {
        let expected = ExecutionFinished::Finished {
            request: claimed.id,
            status: Completed,
            reason: None,
        };
        assert_eq!(*answer, expected);
    }
    for t in workspaces {
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        assert_eq!(f.counts(t.workspace).await.completed, 20);
    }
}
