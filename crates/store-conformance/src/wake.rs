//! What a store promises about wake-ups: what a sleeper hears, and what does not disturb it.

use crate::Fixture;
use crate::factory::{OWNER, TestWorkspace, USER, new_request, ok};
use leasehold_core::limits::PAGE_MAX;
use leasehold_core::{ExecutionEnd, FailureReason, RequestId};
use leasehold_store::execution::ExecutionFinished;
use leasehold_store::prune::Prune;
use leasehold_store::request::{
    Claimed, Fail, NewRequest, Redrive, RedriveMany, Redriven, ReleaseKind, RequestFilter,
};
use leasehold_store::wake::Wake;
use leasehold_store::{Page, fresh_id};
use std::time::Duration;
use tokio::time::timeout;

/// A ring may travel through a database.
const SOON: Duration = Duration::from_secs(10);
/// How long silence is listened to.
const SILENCE: Duration = Duration::from_millis(150);

async fn is_silent(f: &Fixture, wake: Wake) -> bool {
    timeout(SILENCE, f.store.wake_wait(wake)).await.is_err()
}

async fn assert_rung(f: &Fixture, wake: Wake, why: &str) {
    let rung = timeout(SOON, f.store.wake_wait(wake)).await;
    assert!(rung.is_ok(), "{why} should ring for {wake:?}");
}

/// Hears out what was rung before, until the store promises to wake it and all is quiet.
async fn fall_asleep(f: &Fixture, wake: Wake) {
    for _ in 0..100 {
        if ok(f.store.wake_arm().await) && is_silent(f, wake).await {
            return;
        }
    }
    panic!("it never gets quiet");
}

/// Falls asleep, has it done, and must be woken.
pub(crate) async fn assert_wakes<T>(f: &Fixture, why: &str, doing: impl Future<Output = T>) -> T {
    fall_asleep(f, Wake::Work).await;
    let done = doing.await;
    assert_rung(f, Wake::Work, why).await;
    done
}

/// Whatever comes into a line wakes, also what waits for its time: a sleeper may mean to sleep longer.
pub async fn new_work_wakes(f: Fixture) {
    let t = f.site(5).await;
    assert_wakes(&f, "a request", f.enqueue(&t, 1)).await;
    let later = NewRequest {
        run_at: Some(f.now() + Duration::from_secs(60)),
        ..new_request(&t)
    };
    assert_wakes(&f, "a request for later", f.enqueue_one(&t, later)).await;
    let claimed = f.drain(10).await.requests;
    for request in &claimed {
        f.dispatch(request).await;
        f.finish(request.execution, ExecutionEnd::Failed).await;
    }
    let redrive = Redrive {
        workspace: t.workspace,
        failed: claimed[0].id,
        id: fresh_id(),
        by: USER.into(),
    };
    let redriven = assert_wakes(&f, "a redrive", f.store.request_redrive(&redrive)).await;
    assert_eq!(ok(redriven), Redriven::Enqueued(redrive.id));
    let again = f.claim_one().await;
    f.finish(again.execution, ExecutionEnd::Failed).await;
    let many = RedriveMany {
        workspace: t.workspace,
        reason: None,
        limit: 10,
        by: USER.into(),
    };
    let redriven = assert_wakes(&f, "a bulk redrive", f.store.request_redrive_many(&many)).await;
    assert_eq!(ok(redriven).len(), 1);
}

/// Whatever frees a slot wakes.
pub async fn a_freed_slot_wakes(f: Fixture) {
    let t = f.site(5).await;
    let running = f.running(&t).await;
    let finish = f.finish(running.execution, ExecutionEnd::Completed);
    assert_wakes(&f, "an end", finish).await;
    let claimed = f.claimed(&t).await;
    let end = f.finish(claimed.execution, ExecutionEnd::Completed);
    assert_wakes(&f, "an end that comes early", end).await;
    let claimed = f.claimed(&t).await;
    let fail = Fail {
        claim: (&claimed).into(),
        reason: FailureReason::VersionNotFound,
        error: None,
    };
    let failed = assert_wakes(&f, "a failure", f.store.request_fail(OWNER, &fail)).await;
    assert!(ok(failed));
}

/// A claim that is given back or lost wakes, and so does a wish to cancel where the start is to be resolved.
pub async fn a_claim_given_back_wakes(f: Fixture) {
    let t = f.site(50).await;
    for kind in [
        ReleaseKind::Refused { max_attempts: 9 },
        ReleaseKind::Refused { max_attempts: 1 },
        ReleaseKind::NotStarted,
        ReleaseKind::Unknown,
    ] {
        f.enqueue(&t, 1).await;
        let claimed = f.claim_one().await;
        let release = f.release(&claimed, kind, 0);
        assert_wakes(&f, &format!("{kind:?}"), release).await;
    }
    f.drain(50).await;
    f.advance(15);
    let recovered = assert_wakes(&f, "a recovery", f.store.request_recover("sweeper", 1)).await;
    let kept = ok(recovered)[0];
    let cancel = f.cancel(kept.workspace, kept.request);
    assert_wakes(&f, "a wish to cancel", cancel).await;
}

/// Whatever lets a workspace admit more wakes, and so does its deletion: what waits there is to fail.
pub async fn a_changed_workspace_wakes(f: Fixture) {
    let t = f.site(1).await;
    f.set_paused(t.workspace, true).await;
    assert_wakes(&f, "a raised limit", f.set_limit(t.workspace, 2)).await;
    assert_wakes(&f, "a resumption", f.set_paused(t.workspace, false)).await;
    let deleted = assert_wakes(&f, "a deletion", f.store.workspace_delete(t.workspace)).await;
    assert!(ok(deleted));
}

/// A ring that comes before the wait is kept, and many are one.
pub async fn a_ring_before_the_wait_is_not_lost(f: Fixture) {
    let t = f.site(5).await;
    fall_asleep(&f, Wake::Work).await;
    for _ in 0..20 {
        f.enqueue(&t, 1).await;
    }
    assert_rung(&f, Wake::Work, "what came before").await;
    fall_asleep(&f, Wake::Work).await;
}

async fn claim_and_look(f: &Fixture, t: &TestWorkspace) -> Claimed {
    let claimed = f.claim(1).await;
    f.renew(OWNER, &[(&claimed.requests[0]).into()]).await;
    f.dispatch(&claimed.requests[0]).await;
    ok(f.store.request_settle().await);
    ok(f.store.request_counts(t.workspace).await);
    ok(f.store
        .request_list(&RequestFilter::default(), Page::first(PAGE_MAX))
        .await);
    claimed
}

/// What gives nobody work disturbs nobody: claiming, renewing, marking, looking, pruning, and what changed nothing.
pub async fn nothing_else_wakes(f: Fixture) {
    let t = f.site(5).await;
    let ended = f.completed(&t).await.execution;
    f.enqueue(&t, 1).await;
    fall_asleep(&f, Wake::Cancel).await;
    fall_asleep(&f, Wake::Work).await;
    claim_and_look(&f, &t).await;
    ok(f.store.request_recover("sweeper", 10).await);
    let prune = Prune {
        completed_before: Some(f.now()),
        failed_before: None,
        limit: 10,
    };
    ok(f.store.prune(&prune).await);
    f.try_enqueue(fresh_id(), vec![new_request(&t)]).await;
    let again = f.try_finish(ended, ExecutionEnd::Completed).await;
    assert_eq!(again, ExecutionFinished::AlreadyFinished);
    let unknown: RequestId = fresh_id();
    f.cancel(t.workspace, unknown).await;
    assert!(is_silent(&f, Wake::Work).await);
    assert!(is_silent(&f, Wake::Cancel).await);
}

/// A wish to cancel what runs wakes those who tell the engine, and so does the mark that finds one.
pub async fn a_wish_to_cancel_what_runs_wakes(f: Fixture) {
    let t = f.site(5).await;
    let running = f.running(&t).await;
    fall_asleep(&f, Wake::Cancel).await;
    f.cancel(t.workspace, running.id).await;
    assert_rung(&f, Wake::Cancel, "a wish").await;
    fall_asleep(&f, Wake::Cancel).await;
    f.cancel_forced(t.workspace, running.id).await;
    assert_rung(&f, Wake::Cancel, "a stronger wish").await;
    let claimed = f.claimed(&t).await;
    f.cancel(t.workspace, claimed.id).await;
    fall_asleep(&f, Wake::Cancel).await;
    let claims = [(&claimed).into()];
    ok(f.store.request_dispatched(OWNER, &claims).await);
    assert_rung(&f, Wake::Cancel, "the mark").await;
}

/// Each kind wakes its own.
pub async fn kinds_are_apart(f: Fixture) {
    for wake in Wake::ALL {
        for other in Wake::ALL {
            fall_asleep(&f, other).await;
        }
        ok(f.store.wake_ring(wake).await);
        assert_rung(&f, wake, "a ring").await;
        for other in Wake::ALL.into_iter().filter(|other| *other != wake) {
            assert!(is_silent(&f, other).await, "{wake:?} rang for {other:?}");
        }
    }
}
