//! Every operation on every status it does not apply to: the outcome reports it, and nothing changes.

use crate::Fixture;
use crate::factory::{OWNER, TestWorkspace, USER, ids, ok};
use leasehold_core::{ExecutionEnd, ExecutionId, FailureReason, RequestId, RequestStatus};
use leasehold_store::execution::ExecutionFinished;
use leasehold_store::fresh_id;
use leasehold_store::request::{
    Cancelled, ClaimRef, ClaimedRequest, Dispatched, Fail, Redrive, Redriven, Release, ReleaseKind,
    Released,
};
use std::time::Duration;

/// A request that is not CLAIMED, with the most plausible claim on it.
#[derive(Debug)]
struct Subject {
    what: &'static str,
    status: RequestStatus,
    claim: ClaimRef,
    execution: Option<ExecutionId>,
}

fn subject(what: &'static str, status: RequestStatus, claimed: &ClaimedRequest) -> Subject {
    Subject {
        what,
        status,
        claim: claimed.into(),
        execution: Some(claimed.execution),
    }
}

/// Creates one request in each status but CLAIMED, by each path to it.
async fn subjects(f: &Fixture) -> (TestWorkspace, Vec<Subject>) {
    let t = f.workspace(20).await;
    let completed = f.enqueue_completed(&t).await;
    let failed = f.enqueue_failed(&t).await;
    let early = f.enqueue_claimed(&t).await;
    f.finish(early.execution, ExecutionEnd::Completed).await;
    let running = f.enqueue_running(&t).await;
    let exhausted = f.enqueue_claimed(&t).await;
    f.release(&exhausted, ReleaseKind::Refused { max_attempts: 1 }, 0)
        .await;
    let kept = f.enqueue_claimed(&t).await;
    f.release(&kept, ReleaseKind::Unknown, 600).await;
    let backing_off = f.enqueue_claimed(&t).await;
    f.release(&backing_off, ReleaseKind::NotStarted, 600).await;
    f.set_paused(t.workspace, true).await;
    let waiting = f.enqueue(&t, 2).await;
    f.cancel(t.workspace, waiting[1]).await;
    let plain = |what, status, request| Subject {
        what,
        status,
        claim: ClaimRef { request, token: 0 },
        execution: None,
    };
    use RequestStatus::{Completed, Dispatched, Failed, Pending};
    let all = vec![
        subject("completed", Completed, &completed),
        subject("failed", Failed, &failed),
        subject("completed before it was dispatched", Completed, &early),
        subject("running", Dispatched, &running),
        subject("exhausted", Failed, &exhausted),
        subject("kept", Pending, &kept),
        subject("backing off", Pending, &backing_off),
        plain("waiting", Pending, waiting[0]),
        plain("cancelled", Failed, waiting[1]),
    ];
    for subject in &all {
        let request = f.request(t.workspace, subject.claim.request).await;
        assert_eq!(request.status, subject.status, "{}", subject.what);
    }
    (t, all)
}

/// A request that is not CLAIMED cannot be renewed.
pub async fn unclaimed_request_cannot_be_renewed(f: Fixture) {
    let (_, subjects) = subjects(&f).await;
    let before = f.dump().await;
    for subject in &subjects {
        let renewed = f.renew(OWNER, &[subject.claim]).await;
        assert_eq!(renewed, [], "{subject:?}");
    }
    assert_eq!(f.dump().await, before);
}

/// A request that is not CLAIMED cannot become DISPATCHED; an ended one reports it, a dispatched one stays so.
pub async fn unclaimed_request_cannot_be_dispatched(f: Fixture) {
    let (_, subjects) = subjects(&f).await;
    let before = f.dump().await;
    for subject in &subjects {
        let answers = ok(f.store.request_dispatched(OWNER, &[subject.claim]).await);
        let expected = match subject.status {
            RequestStatus::Pending | RequestStatus::Claimed => Dispatched::LeaseLost,
            RequestStatus::Dispatched => Dispatched::Dispatched,
            RequestStatus::Completed | RequestStatus::Failed => Dispatched::AlreadyFinished,
        };
        assert_eq!(answers, [expected], "{subject:?}");
    }
    assert_eq!(f.dump().await, before);
}

/// A request that is not CLAIMED cannot be released.
pub async fn unclaimed_request_cannot_be_released(f: Fixture) {
    let (_, subjects) = subjects(&f).await;
    let before = f.dump().await;
    for kind in [
        ReleaseKind::Refused { max_attempts: 1 },
        ReleaseKind::Unknown,
        ReleaseKind::NotStarted,
    ] {
        for subject in &subjects {
            let release = Release {
                claim: subject.claim,
                kind,
                delay: Duration::ZERO,
                error: Some("late".into()),
            };
            let answers = ok(f.store.request_release(OWNER, &[release]).await);
            assert_eq!(answers, [Released::LeaseLost], "{kind:?} {subject:?}");
        }
    }
    assert_eq!(f.dump().await, before);
}

/// A request that is not CLAIMED cannot be failed.
pub async fn unclaimed_request_cannot_be_failed(f: Fixture) {
    let (_, subjects) = subjects(&f).await;
    let before = f.dump().await;
    for subject in &subjects {
        let fail = Fail {
            claim: subject.claim,
            reason: FailureReason::EngineLost,
            error: None,
        };
        assert!(!ok(f.store.request_fail(OWNER, &fail).await), "{subject:?}");
    }
    assert_eq!(f.dump().await, before);
}

/// A request that is not CLAIMED is not recovered, however late.
pub async fn unclaimed_request_is_not_recovered(f: Fixture) {
    subjects(&f).await;
    f.advance(365 * 24 * 3600);
    let before = f.dump().await;
    assert_eq!(ok(f.store.request_recover("sweeper", 100).await), []);
    assert_eq!(f.dump().await, before);
}

/// A request that is not PENDING is not claimed.
pub async fn only_pending_requests_are_claimed(f: Fixture) {
    let (t, subjects) = subjects(&f).await;
    let claimed = f.enqueue_claimed(&f.workspace(1).await).await;
    f.set_paused(t.workspace, false).await;
    f.advance(600);
    let mut expected: Vec<RequestId> = subjects
        .iter()
        .filter(|s| s.status == RequestStatus::Pending)
        .map(|s| s.claim.request)
        .collect();
    let mut got = ids(&f.claim(100).await);
    expected.sort_unstable();
    got.sort_unstable();
    assert_eq!(got, expected);
    assert!(!got.contains(&claimed.id));
}

/// An ended request cannot end again and cannot be cancelled.
pub async fn ended_request_is_unchanged(f: Fixture) {
    let (t, subjects) = subjects(&f).await;
    f.advance(1);
    let before = f.dump().await;
    for subject in subjects.iter().filter(|s| s.status.is_finished()) {
        let cancelled = f.cancel(t.workspace, subject.claim.request).await;
        assert_eq!(cancelled, Cancelled::AlreadyFinished, "{subject:?}");
        let request = f.request(t.workspace, subject.claim.request).await;
        let Some(execution) = request.execution else {
            continue;
        };
        for end in ExecutionEnd::ALL {
            let finished = f.try_finish(execution, end).await;
            assert_eq!(finished, ExecutionFinished::AlreadyFinished, "{subject:?}");
        }
    }
    assert_eq!(f.dump().await, before);
}

/// An execution that was definitely not started cannot end.
pub async fn execution_that_was_not_started_cannot_end(f: Fixture) {
    let (t, subjects) = subjects(&f).await;
    let before = f.dump().await;
    for subject in &subjects {
        let request = f.request(t.workspace, subject.claim.request).await;
        if let (Some(execution), None) = (subject.execution, request.execution) {
            for end in ExecutionEnd::ALL {
                let finished = f.try_finish(execution, end).await;
                assert_eq!(finished, ExecutionFinished::NotFound, "{subject:?}");
            }
        }
    }
    assert_eq!(f.dump().await, before);
}

/// A request that is not FAILED is not redriven.
pub async fn only_failed_requests_are_redriven(f: Fixture) {
    let (t, subjects) = subjects(&f).await;
    let claimed = f.enqueue_claimed(&f.workspace(1).await).await;
    let before = f.dump().await;
    let open = subjects
        .iter()
        .filter(|s| s.status != RequestStatus::Failed);
    let mut requested: Vec<_> = open.map(|s| (t.workspace, s.claim.request)).collect();
    requested.push((claimed.workspace, claimed.id));
    for (workspace, failed) in requested {
        let redrive = Redrive {
            workspace,
            failed,
            id: fresh_id(),
            by: USER.into(),
        };
        assert_eq!(
            ok(f.store.request_redrive(&redrive).await),
            Redriven::NotFailed
        );
    }
    assert_eq!(f.dump().await, before);
}

/// A claim can be used only by its owner with its token.
pub async fn claim_needs_its_owner_and_token(f: Fixture) {
    let t = f.workspace(1).await;
    let old = f.enqueue_unknown(&t).await;
    let held = f.claim_one().await;
    let before = f.dump().await;
    let next = ClaimRef {
        token: held.token + 1,
        ..(&held).into()
    };
    for (owner, claim) in [
        ("another", (&held).into()),
        (OWNER, ClaimRef::from(&old)),
        (OWNER, next),
        ("", (&held).into()),
    ] {
        assert_eq!(f.renew(owner, &[claim]).await, []);
        let dispatched = ok(f.store.request_dispatched(owner, &[claim]).await);
        assert_eq!(dispatched, [Dispatched::LeaseLost]);
        for kind in [ReleaseKind::Unknown, ReleaseKind::NotStarted] {
            let release = Release {
                claim,
                kind,
                delay: Duration::ZERO,
                error: None,
            };
            let released = ok(f.store.request_release(owner, &[release]).await);
            assert_eq!(released, [Released::LeaseLost]);
        }
        let fail = Fail {
            claim,
            reason: FailureReason::EngineLost,
            error: None,
        };
        assert!(!ok(f.store.request_fail(owner, &fail).await));
    }
    assert_eq!(f.dump().await, before);
}
