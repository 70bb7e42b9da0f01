//! Noting crashes of processes that computed the input of a request.

use crate::Fixture;
use crate::factory::{LEASE, OWNER, USER, known, ok};
use crate::graph_factory::{completed_with, diamond};
use leasehold_core::{
    Crashes, ExecutionEnd, ExecutionId, FailureReason, RequestStatus, WorkspaceId,
};
use leasehold_store::execution::ExecutionFinished;
use leasehold_store::fresh_id;
use leasehold_store::request::{
    CRASHED, ClaimedRequest, Crash, CrashedRequest, Redrive, Redriven, ReleaseKind, Request,
};
use serde_json::json;

fn crash(process: &str, executions: &[ExecutionId]) -> Crash {
    Crash {
        process: process.into(),
        executions: executions.to_vec(),
    }
}

/// Notes a crash that hit this execution alone, and returns the crashes of its request.
async fn note(f: &Fixture, process: &str, execution: ExecutionId) -> Crashes {
    let noted = ok(f
        .store
        .request_note_crash(&crash(process, &[execution]))
        .await);
    assert_eq!(noted.len(), 1, "{noted:?}");
    noted[0].crashes
}

fn crashes(total: u32, alone: u32) -> Crashes {
    Crashes { total, alone }
}

/// A claimed request with three crashes alone in a row.
async fn poison(f: &Fixture, claimed: &ClaimedRequest) {
    for process in ["p1", "p2", "p3"] {
        note(f, process, claimed.execution).await;
    }
}

/// A crash returns the request with what its start needs, and changes nothing but its last error. The crash of one process counts once.
pub async fn crash_is_noted_once_and_changes_nothing_else(f: Fixture) {
    let t = f.workspace(2).await;
    let other = f.enqueue_claimed(&t).await;
    let claimed = f.enqueue_claimed(&t).await;
    let before = f.request(t.workspace, claimed.id).await;
    for _ in 0..2 {
        let crash = crash("p1", &[claimed.execution]);
        let noted = ok(f.store.request_note_crash(&crash).await);
        let expected = CrashedRequest {
            id: claimed.id,
            workspace: t.workspace,
            definition: t.definition,
            version: t.version,
            execution: claimed.execution,
            status: RequestStatus::Claimed.into(),
            priority: 0,
            params: noted[0].params.clone(),
            trace_context: None,
            crashes: crashes(1, 1),
        };
        assert_eq!(noted, [expected]);
        assert!(noted[0].params.is_same_document(&before.params));
    }
    let after = f.request(t.workspace, claimed.id).await;
    let last_error = Some(CRASHED.to_owned());
    assert_eq!(
        after,
        Request {
            last_error,
            ..before
        }
    );
    let untouched = f.request(t.workspace, other.id).await;
    assert_eq!(untouched.last_error, None);
    f.assert_timeline(
        t.workspace,
        claimed.id,
        &[
            (None, RequestStatus::Pending, USER, None),
            (
                Some(RequestStatus::Pending),
                RequestStatus::Claimed,
                OWNER,
                None,
            ),
        ],
    )
    .await;
}

/// Crashes of all processes count together. One that hit several requests begins the row of those alone again.
pub async fn crashes_of_all_processes_count_together(f: Fixture) {
    let t = f.workspace(2).await;
    let beside = f.enqueue_claimed(&t).await;
    let claimed = f.enqueue_claimed(&t).await;
    let execution = claimed.execution;
    assert_eq!(note(&f, "p1", execution).await, crashes(1, 1));
    assert_eq!(note(&f, "p2", execution).await, crashes(2, 2));
    let both = crash("p3", &[execution, beside.execution]);
    let noted = ok(f.store.request_note_crash(&both).await);
    let of = |id| noted.iter().find(|r| r.id == id).map(|r| r.crashes);
    assert_eq!(of(claimed.id), Some(crashes(3, 0)));
    assert_eq!(of(beside.id), Some(crashes(1, 0)));
    assert_eq!(note(&f, "p1", execution).await, crashes(4, 1));

    f.advance(LEASE.as_secs() + 1);
    let recovered = ok(f.store.request_recover("recoverer", 10).await);
    assert_eq!(recovered.len(), 2);
    let again = f.claim(2).await.requests;
    let of = |id| again.iter().find(|r| r.id == id).map(|r| r.crashes);
    assert_eq!(of(claimed.id), Some(crashes(4, 1)));
    assert_eq!(of(beside.id), Some(crashes(1, 0)));
}

/// A request that is dispatched has no crashes any more.
pub async fn dispatch_resets_crashes(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    assert_eq!(note(&f, "p1", claimed.execution).await, crashes(1, 1));
    assert_eq!(note(&f, "p2", claimed.execution).await, crashes(2, 2));
    f.dispatch(&claimed).await;
    assert_eq!(note(&f, "p3", claimed.execution).await, crashes(1, 1));
}

/// A step of a graph that computes inputs resets the crashes; one that starts no node does not.
pub async fn graph_step_that_computes_inputs_resets_crashes(f: Fixture) {
    let t = f.graph_workspace(1, diamond()).await;
    let s = f.enqueue_started(&t).await;
    assert_eq!(note(&f, "p1", s.execution).await, crashes(1, 1));
    f.complete_node("a", json!(1)).await;
    assert_eq!(note(&f, "p2", s.execution).await, crashes(1, 1));
    let jobs = f.claim_nodes(&["b", "c"]).await;
    f.finish_job(&jobs[0], completed_with(json!(2))).await;
    assert_eq!(note(&f, "p3", s.execution).await, crashes(2, 2));
    f.finish_job(&jobs[1], completed_with(json!(3))).await;
    assert_eq!(note(&f, "p4", s.execution).await, crashes(1, 1));
    f.complete_node("d", json!(4)).await;
    let request = f.request(t.workspace, s.request).await;
    assert_eq!(request.status, RequestStatus::Completed);
}

/// Executions that are unknown, ended, or replaced by another one have no request to note a crash on.
pub async fn executions_without_an_open_request_are_skipped(f: Fixture) {
    let t = f.workspace(3).await;
    let ended = f.enqueue_completed(&t).await;
    let released = f.enqueue_claimed(&t).await;
    f.release(&released, ReleaseKind::NotStarted, 0).await;
    let before = f.dump().await;
    let executions = [ended.execution, released.execution, fresh_id()];
    let noted = ok(f.store.request_note_crash(&crash("p1", &executions)).await);
    assert_eq!(noted, []);
    assert_eq!(f.dump().await, before);
}

async fn reason_of(
    f: &Fixture,
    workspace: WorkspaceId,
    claimed: &ClaimedRequest,
) -> (RequestStatus, Option<FailureReason>) {
    let request = f.request(workspace, claimed.id).await;
    (
        known(&request.status),
        request.failure_reason.as_ref().map(known),
    )
}

/// A request whose execution is terminated fails as poisoned if it crashed three processes alone, whatever its status; otherwise as before.
pub async fn terminated_execution_of_a_poisoned_request_fails_it_as_poisoned(f: Fixture) {
    let t = f.workspace(4).await;
    let running = f.enqueue_running(&t).await;
    poison(&f, &running).await;
    let cancelled = f.enqueue_running(&t).await;
    poison(&f, &cancelled).await;
    f.cancel(t.workspace, cancelled.id).await;
    let unknown = f.enqueue_unknown(&t).await;
    poison(&f, &unknown).await;
    for poisoned in [&running, &unknown, &cancelled] {
        let finished = f
            .try_finish(poisoned.execution, ExecutionEnd::Terminated)
            .await;
        let expected = ExecutionFinished::Finished {
            request: poisoned.id,
            status: RequestStatus::Failed,
            reason: Some(FailureReason::Poisoned),
        };
        assert_eq!(finished, expected);
        let expected = (RequestStatus::Failed, Some(FailureReason::Poisoned));
        assert_eq!(reason_of(&f, t.workspace, poisoned).await, expected);
    }
    let suspect = f.enqueue_running(&t).await;
    note(&f, "p1", suspect.execution).await;
    note(&f, "p2", suspect.execution).await;
    f.finish(suspect.execution, ExecutionEnd::Terminated).await;
    let expected = (RequestStatus::Failed, Some(FailureReason::Terminated));
    assert_eq!(reason_of(&f, t.workspace, &suspect).await, expected);
    let completed = f.enqueue_running(&t).await;
    poison(&f, &completed).await;
    f.finish(completed.execution, ExecutionEnd::Completed).await;
    let expected = (RequestStatus::Completed, None);
    assert_eq!(reason_of(&f, t.workspace, &completed).await, expected);
    assert_eq!(f.slots(t.workspace).await.in_use, 0);
}

/// The redrive of a poisoned request has no crashes.
pub async fn redrive_has_no_crashes(f: Fixture) {
    let t = f.workspace(1).await;
    let running = f.enqueue_running(&t).await;
    poison(&f, &running).await;
    f.finish(running.execution, ExecutionEnd::Terminated).await;
    let redrive = Redrive {
        workspace: t.workspace,
        failed: running.id,
        id: fresh_id(),
        by: USER.into(),
    };
    let redriven = ok(f.store.request_redrive(&redrive).await);
    assert_eq!(redriven, Redriven::Enqueued(redrive.id));
    let claimed = f.claim_one().await;
    assert_eq!(
        (claimed.id, claimed.crashes),
        (redrive.id, Crashes::default())
    );
}
