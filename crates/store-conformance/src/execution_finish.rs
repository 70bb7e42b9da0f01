//! What a store promises about the end of executions: their requests, their slots, every status on the way.

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

/// What each end makes of execution and request.
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

/// Each way to end gives execution and request their status and reason, and frees the slot. A failure is an attempt.
pub async fn each_end_has_its_status_and_reason(f: Fixture) {
    for (end, execution_status, reason) in ends() {
        let t = f.site(1).await;
        let running = f.running(&t).await;
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
            status,
            attempt_count: u32::from(reason.is_some()),
            failure_reason: reason,
            last_error: error.clone(),
            finished_at: Some(f.now()),
            ..before
        };
        assert_eq!(f.request(t.workspace, running.id).await, expected);
        let expected = Execution {
            status: execution_status,
            finished_at: Some(f.now()),
            error,
            ..execution.expect("it ran")
        };
        let execution = f.execution(t.workspace, running.execution).await;
        assert_eq!(execution, Some(expected));
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        let events = f.timeline(t.workspace, running.id).await;
        let last = crate::timeline::step(events.last().expect("it has a history"));
        let word = reason.map(FailureReason::as_str);
        assert_eq!(last, (Some(Dispatched), status, "reconciler", word));
    }
}

/// A request that was still CLAIMED moves through DISPATCHED to its end, an event for each, all at once.
pub async fn of_a_claimed_one_goes_through_dispatched(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.claimed(&t).await;
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

/// A PENDING one that kept its execution moves through CLAIMED and DISPATCHED, and is not claimed any more.
pub async fn of_a_kept_one_goes_through_every_status(f: Fixture) {
    let t = f.site(1).await;
    let kept = f.kept(&t).await;
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
    assert_eq!(request.attempt_count, 2, "the release and the failure");
    assert_eq!(ids(&f.claim(10).await), []);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
}

/// So does one that is not due yet.
pub async fn of_a_kept_one_that_backs_off_works_too(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.claimed(&t).await;
    f.release(&claimed, ReleaseKind::Unknown, 60).await;
    assert_eq!(
        f.finish(claimed.execution, ExecutionEnd::Completed).await,
        Completed
    );
    f.advance(60);
    assert_eq!(ids(&f.claim(10).await), []);
}

/// Terminated because someone wished to cancel it is cancelled; any other end keeps its own reason.
pub async fn terminated_on_a_wish_is_cancelled(f: Fixture) {
    for (end, reason) in [
        (ExecutionEnd::Terminated, FailureReason::Cancelled),
        (ExecutionEnd::Failed, FailureReason::ExecutionFailed),
        (ExecutionEnd::TimedOut, FailureReason::TimedOut),
        (ExecutionEnd::Lost, FailureReason::EngineLost),
    ] {
        let t = f.site(1).await;
        let running = f.running(&t).await;
        f.cancel(t.workspace, running.id).await;
        let finished = ExecutionFinished::Finished {
            request: running.id,
            status: Failed,
            reason: Some(reason),
        };
        assert_eq!(f.try_finish(running.execution, end).await, finished);
        let request = f.request(t.workspace, running.id).await;
        assert_eq!(request.failure_reason, Some(reason), "{end:?}");
        let events = f.timeline(t.workspace, running.id).await;
        let last = events.last().expect("it has a history");
        assert_eq!(last.reason.as_deref(), Some(reason.as_str()));
    }
}

/// One that completed although someone wished to cancel it has completed.
pub async fn completed_in_spite_of_a_wish_is_completed(f: Fixture) {
    let t = f.site(1).await;
    let running = f.running(&t).await;
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

/// Answers are in the order asked; an end that came before wins, also inside one call.
pub async fn the_first_end_wins_and_answers_are_in_order(f: Fixture) {
    let t = f.site(9).await;
    f.enqueue(&t, 3).await;
    let claimed = f.claim(3).await.requests;
    f.finish(claimed[0].execution, ExecutionEnd::Completed)
        .await;
    let unknown = ExecutionFinish {
        execution: fresh_id(),
        end: ExecutionEnd::Failed,
        error: None,
    };
    let asked = [
        finish(&claimed[2], ExecutionEnd::Completed),
        unknown,
        finish(&claimed[0], ExecutionEnd::Failed),
        finish(&claimed[2], ExecutionEnd::Failed),
        finish(&claimed[1], ExecutionEnd::Lost),
    ];
    let answers = ok(f.store.execution_finish("engine", &asked).await);
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
    let again = ok(f.store.execution_finish("engine", &asked[2..]).await);
    assert_eq!(again, [ExecutionFinished::AlreadyFinished; 3]);
    assert_eq!(f.dump().await, before);
    assert_eq!(ok(f.store.execution_finish("engine", &[]).await), []);
}

/// An execution that was definitely not started is gone: its end is not found.
pub async fn of_one_that_was_not_started_is_not_found(f: Fixture) {
    let t = f.site(1).await;
    let claimed = f.claimed(&t).await;
    f.release(&claimed, ReleaseKind::NotStarted, 0).await;
    let before = f.dump().await;
    let late = f
        .try_finish(claimed.execution, ExecutionEnd::Completed)
        .await;
    assert_eq!(late, ExecutionFinished::NotFound);
    assert_eq!(f.dump().await, before);
}

/// Many ends in one call, over many workspaces, end all of them and free all slots.
pub async fn many_in_one_call_end_all(f: Fixture) {
    let mut sites = Vec::new();
    for _ in 0..10 {
        let t = f.site(20).await;
        f.enqueue(&t, 20).await;
        sites.push(t);
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
    for t in sites {
        assert_eq!(f.slots(t.workspace).await.in_use, 0);
        assert_eq!(f.counts(t.workspace).await.completed, 20);
    }
}
