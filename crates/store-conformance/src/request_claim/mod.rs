//! One claim: its content, due times, and the lock that guards it.

mod capacity;
mod order;
mod unknown_start;

pub use capacity::*;
pub use order::*;
pub use unknown_start::*;

use crate::Fixture;
use crate::factory::{LEASE, OWNER, ids, new_request, ok, params};
use crate::graph_factory::graph;
use crate::job_factory::completed;
use leasehold_core::limits::{PARAMS_MAX_BYTES, PAYLOAD_MAX_BYTES};
use leasehold_core::{Crashes, ExecutionEnd, ExecutionStatus, RequestStatus};
use leasehold_store::execution::Execution;
use leasehold_store::fresh_id;
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use leasehold_store::request::{
    Claim, ClaimOutcome, Claimed, ClaimedRequest, ExecutionOrigin, NewRequest, ReleaseKind, Request,
};
use serde_json::Value;
use std::time::Duration;

/// Numbers with hundreds of digits are returned in their short form, so claimed params are not larger than enqueued ones.
pub async fn claimed_params_are_no_larger_than_enqueued(f: Fixture) {
    let t = f
        .graph_workspace(1, graph(&["a", "b"], &[("a", "b")]))
        .await;
    let params = Value::from(vec![1e300; 30_000]);
    assert!(params.to_string().len() <= PARAMS_MAX_BYTES);
    let new = NewRequest {
        params: params.clone().into(),
        ..new_request(&t)
    };
    f.enqueue_one(&t, new).await;
    let claimed = f.claim_one().await;
    assert!(claimed.params.as_str().len() <= PARAMS_MAX_BYTES);
    assert_eq!(claimed.params.read::<Value>().ok(), Some(params));
    f.start_graph(&claimed).await;
    f.dispatch(&claimed).await;
    for node in ["a", "b"] {
        let jobs = f.claim_nodes(&[node]).await;
        assert!(
            jobs[0].payload.as_str().len() <= PAYLOAD_MAX_BYTES,
            "{node}"
        );
        f.finish_job(&jobs[0], completed()).await;
    }
    assert_eq!(f.node_letters(claimed.execution).await, "cc");
}

/// A claimed request has everything needed to start it, and the row shows its owner and lease end.
pub async fn claim_returns_everything_needed_to_start(f: Fixture) {
    let t = f.workspace(1).await;
    let new = NewRequest {
        priority: 3,
        trace_context: Some("trace".into()),
        ..new_request(&t)
    };
    let id = f.enqueue_one(&t, new).await;
    let before = f.request(t.workspace, id).await;
    f.advance(2);
    let claimed = f.claim_one().await;
    let expected = ClaimedRequest {
        id,
        token: claimed.token,
        workspace: t.workspace,
        definition: t.definition,
        version: t.version,
        execution: claimed.execution,
        origin: ExecutionOrigin::Created,
        priority: 3,
        params: claimed.params.clone(),
        unreadable: None,
        attempt_count: 0,
        dispatch_failures: 0,
        cancel_requested: false,
        crashes: Crashes::default(),
        trace_context: Some("trace".into()),
        created_at: before.created_at,
        run_at: before.run_at,
        lease_expires_at: f.now() + LEASE,
    };
    assert_eq!(claimed, expected);
    assert_eq!(claimed.params.read::<Value>().ok(), Some(params()));
    let expected = Request {
        status: RequestStatus::Claimed.into(),
        execution: Some(claimed.execution),
        claimed_by: Some(OWNER.into()),
        lease_expires_at: Some(f.now() + LEASE),
        claimed_at: Some(f.now()),
        ..before
    };
    assert_eq!(f.request(t.workspace, id).await, expected);
    f.assert_timeline(
        t.workspace,
        id,
        &[
            (None, RequestStatus::Pending, crate::USER, None),
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

/// The execution is RUNNING from the claim on and holds the slot before anything is started.
pub async fn claim_creates_a_running_execution(f: Fixture) {
    let t = f.workspace(1).await;
    let claimed = f.enqueue_claimed(&t).await;
    let execution = f.execution(t.workspace, claimed.execution).await;
    let execution = execution.expect("the execution exists");
    let expected = Execution {
        id: claimed.execution,
        workspace: t.workspace,
        request: claimed.id,
        definition: t.definition,
        version: t.version,
        status: ExecutionStatus::Running.into(),
        admission: execution.admission,
        started_at: f.now(),
        finished_at: None,
        error: None,
    };
    assert_eq!(execution, expected);
    assert_eq!(f.slots(t.workspace).await.in_use, 1);
}

/// A claim takes at most its batch and reports correctly whether there is more.
pub async fn claims_at_most_its_batch_and_reports_more(f: Fixture) {
    let t = f.workspace(10).await;
    assert_eq!(f.claim(5).await, Claimed::default());
    let enqueued = f.enqueue(&t, 7).await;
    let first = f.claim(3).await;
    assert_eq!((ids(&first), first.more), (enqueued[..3].to_vec(), true));
    let second = f.claim(3).await;
    assert_eq!((ids(&second), second.more), (enqueued[3..6].to_vec(), true));
    let mut third = f.claim(3).await;
    assert_eq!(ids(&third), enqueued[6..]);
    // A claim that takes the last request may still report more; the next claim must end the loop.
    if third.more {
        third = f.claim(3).await;
        assert_eq!(ids(&third), []);
    }
    assert!(!third.more, "claims of a drained store always report more");
}

/// Claiming while there is more ends and leaves nothing that could be admitted.
pub async fn claiming_while_there_is_more_drains_everything(f: Fixture) {
    let mut waiting = 0;
    for (limit, n) in [(3, 7), (0, 4), (50, 20), (1, 1)] {
        let t = f.workspace(limit).await;
        f.enqueue(&t, n).await;
        waiting += n.min(limit as usize);
    }
    let mut admitted = 0;
    for _ in 0..100 {
        let claimed = f.claim(4).await;
        admitted += claimed.requests.len();
        if !claimed.more {
            break;
        }
    }
    assert_eq!(admitted, waiting);
    assert_eq!(f.claim(100).await, Claimed::default());
}

/// An end and an enqueue between two claims are both seen: claims of one continue until nothing is left.
pub async fn changes_between_claims_are_seen(f: Fixture) {
    let t = f.workspace(2).await;
    let first = f.enqueue_claimed(&t).await;
    let enqueued = f.enqueue(&t, 2).await;
    f.finish(first.execution, leasehold_core::ExecutionEnd::Completed)
        .await;
    assert_eq!(f.claim_one().await.id, enqueued[0]);
    assert_eq!(f.claim_one().await.id, enqueued[1]);
}

/// A request is not claimed before it is due and is claimed once the clock reaches its time.
pub async fn nothing_is_claimed_before_it_is_due(f: Fixture) {
    let t = f.workspace(5).await;
    let at = |seconds| NewRequest {
        run_at: Some(f.now() + Duration::from_secs(seconds)),
        ..new_request(&t)
    };
    let (ten, five) = (at(10), at(5));
    let (ten, five) = (f.enqueue_one(&t, ten).await, f.enqueue_one(&t, five).await);
    let nothing = Claimed {
        next_due_in: Some(Duration::from_secs(5)),
        ..Claimed::default()
    };
    assert_eq!(f.claim(10).await, nothing);
    f.advance(4);
    assert_eq!(ids(&f.claim(10).await), []);
    f.advance(1);
    assert_eq!(ids(&f.claim(10).await), [five]);
    f.advance(60);
    assert_eq!(ids(&f.claim(10).await), [ten]);
}

/// A request that is not due does not block due ones, whatever its priority.
pub async fn requests_that_are_not_due_do_not_block_others(f: Fixture) {
    let t = f.workspace(2).await;
    let later: Vec<NewRequest> = (0..50)
        .map(|_| NewRequest {
            priority: 100,
            run_at: Some(f.now() + Duration::from_secs(60)),
            ..new_request(&t)
        })
        .collect();
    let later = f.enqueue_all(&t, later).await;
    let due = f.enqueue(&t, 1).await[0];
    assert_eq!(ids(&f.claim(10).await), [due]);
    f.advance(60);
    assert_eq!(ids(&f.claim(10).await), later[..1]);
}

/// Promotion moves due requests into the line and returns when the next request is due.
pub async fn promotion_reports_when_the_next_is_due(f: Fixture) {
    let t = f.workspace(5).await;
    assert_eq!(ok(f.store.request_promote_due().await).next_due, None);
    let first = f.now() + Duration::from_secs(5);
    let second = f.now() + Duration::from_secs(9);
    for run_at in [second, first] {
        let request = NewRequest {
            run_at: Some(run_at),
            ..new_request(&t)
        };
        f.enqueue_one(&t, request).await;
    }
    assert_eq!(
        ok(f.store.request_promote_due().await).next_due,
        Some(first)
    );
    f.advance(5);
    let promoted = ok(f.store.request_promote_due().await);
    assert_eq!((promoted.due, promoted.next_due), (1, Some(second)));
    assert_eq!(f.claim(10).await.requests.len(), 1);
    f.advance(4);
    assert_eq!(f.claim(10).await.requests.len(), 1);
    assert_eq!(ok(f.store.request_promote_due().await).next_due, None);
}

/// A claim reports the time until the next request is due, whatever else it finds.
pub async fn reports_the_time_until_the_next_is_due(f: Fixture) {
    let t = f.workspace(5).await;
    assert_eq!(f.claim(10).await.next_due_in, None);
    for seconds in [9, 5] {
        let request = NewRequest {
            run_at: Some(f.now() + Duration::from_secs(seconds)),
            ..new_request(&t)
        };
        f.enqueue_one(&t, request).await;
    }
    assert_eq!(f.claim(10).await.next_due_in, Some(Duration::from_secs(5)));
    f.clock.advance(Duration::from_micros(1_500_001));
    f.enqueue(&t, 1).await;
    let claimed = f.claim(10).await;
    assert_eq!(
        (claimed.requests.len(), claimed.next_due_in),
        (1, Some(Duration::from_micros(3_499_999)))
    );
    f.clock.advance(Duration::from_micros(3_499_999));
    let claimed = f.claim(10).await;
    assert_eq!(
        (claimed.requests.len(), claimed.next_due_in),
        (1, Some(Duration::from_secs(4)))
    );
    f.advance(4);
    assert_eq!(f.drain(10).await.next_due_in, None);
}

/// A request in backoff is not claimed before its delay has passed, and others go ahead.
pub async fn requests_in_backoff_are_not_claimed(f: Fixture) {
    let t = f.workspace(1).await;
    let enqueued = f.enqueue(&t, 2).await;
    let first = f.claim_one().await;
    f.release(&first, ReleaseKind::NotStarted, 30).await;
    let second = f.claim_one().await;
    assert_eq!(second.id, enqueued[1]);
    f.release(&second, ReleaseKind::NotStarted, 60).await;
    assert_eq!(ids(&f.claim(10).await), []);
    f.advance(30);
    let again = f.claim_one().await;
    assert_eq!((again.id, again.attempt_count), (enqueued[0], 1));
    assert!(
        again.token > first.token,
        "the token rises with every claim"
    );
}

/// A claimed request reports since when it is due: its enqueue, its `run_at`, or the end of its last delay.
pub async fn reports_since_when_a_request_is_due(f: Fixture) {
    let t = f.workspace(1).await;
    f.enqueue(&t, 1).await;
    let now = f.now();
    f.advance(5);
    let mut claimed = f.claim_one().await;
    assert_eq!((claimed.created_at, claimed.run_at), (now, now));
    for kind in [ReleaseKind::Unknown, ReleaseKind::NotStarted] {
        f.release(&claimed, kind, 30).await;
        let due = f.now() + Duration::from_secs(30);
        f.advance(45);
        claimed = f.claim_one().await;
        assert_eq!((claimed.created_at, claimed.run_at), (now, due));
    }
    f.finish(claimed.execution, ExecutionEnd::Completed).await;
    let due = f.now() + Duration::from_secs(60);
    let new = NewRequest {
        run_at: Some(due),
        ..new_request(&t)
    };
    f.enqueue_one(&t, new).await;
    f.advance(90);
    assert_eq!(f.claim_one().await.run_at, due);
}

async fn lock(f: &Fixture, owner: &str) -> LockToken {
    let request = LockRequest {
        name: "processExecutionQueue".into(),
        owner: owner.into(),
        at_most_for: Duration::from_secs(15),
    };
    match ok(f.store.lock_acquire(&request).await) {
        LockAcquired::Acquired { token, .. } => token,
        LockAcquired::Held { by, .. } => panic!("held by {by}"),
    }
}

async fn claim_under(f: &Fixture, token: &LockToken) -> ClaimOutcome {
    let claim = Claim {
        owner: OWNER.into(),
        batch: 1,
        kept_max: None,
        lease: LEASE,
        lock: Some(token.clone()),
    };
    ok(f.store.request_claim(&claim).await)
}

/// A claim under a lock works while the lock is held and claims nothing once it has expired or changed owner.
pub async fn claim_under_a_lock_needs_the_lock(f: Fixture) {
    let t = f.workspace(10).await;
    f.enqueue(&t, 10).await;
    let token = lock(&f, "one").await;
    let held = claim_under(&f, &token).await;
    assert!(matches!(held, ClaimOutcome::Claimed(c) if c.requests.len() == 1));
    f.advance(14);
    assert!(ok(f
        .store
        .lock_extend(&token, Duration::from_secs(15))
        .await));
    f.advance(14);
    let held = claim_under(&f, &token).await;
    assert!(matches!(held, ClaimOutcome::Claimed(c) if c.requests.len() == 1));
    f.advance(1);
    let before = f.dump().await;
    assert_eq!(claim_under(&f, &token).await, ClaimOutcome::LockLost);
    assert_eq!(f.dump().await, before);
    let next = lock(&f, "two").await;
    let before = f.dump().await;
    for lost in [
        token.clone(),
        LockToken {
            token: token.token,
            ..next.clone()
        },
        LockToken {
            owner: "one".into(),
            ..next.clone()
        },
        LockToken {
            name: "recoverStaleQueueItems".into(),
            ..next.clone()
        },
    ] {
        assert_eq!(
            claim_under(&f, &lost).await,
            ClaimOutcome::LockLost,
            "{lost:?}"
        );
    }
    assert_eq!(f.dump().await, before);
    let held = claim_under(&f, &next).await;
    assert!(matches!(held, ClaimOutcome::Claimed(c) if c.requests.len() == 1));
    assert!(ok(f.store.lock_release(&next, Duration::ZERO).await));
    assert_eq!(claim_under(&f, &next).await, ClaimOutcome::LockLost);
}

/// Concurrent claims take each request once.
pub async fn concurrent_claims_take_each_request_once(f: Fixture) {
    let mut enqueued = Vec::new();
    for _ in 0..5 {
        let t = f.workspace(100).await;
        enqueued.extend(f.enqueue(&t, 30).await);
    }
    let claimers = (0..8).map(|n| {
        let store = f.store.clone();
        tokio::spawn(async move {
            let claim = Claim {
                owner: format!("dispatcher-{n}"),
                batch: 7,
                kept_max: None,
                lease: LEASE,
                lock: None,
            };
            let mut mine = Vec::new();
            loop {
                let ClaimOutcome::Claimed(claimed) = ok(store.request_claim(&claim).await) else {
                    panic!("the claim has no lock");
                };
                mine.extend(ids(&claimed));
                if !claimed.more && claimed.requests.is_empty() {
                    return mine;
                }
            }
        })
    });
    let mut claimed = Vec::new();
    for claimer in futures::future::join_all(claimers).await {
        claimed.extend(claimer.expect("the claimer did not panic"));
    }
    // A claimer that met only locked rows may have stopped early.
    claimed.extend(ids(&f.claim(1_000).await));
    claimed.sort_unstable();
    assert_eq!(claimed, enqueued);
}

/// A claim belongs to its owner; another owner cannot use it.
pub async fn claim_belongs_to_its_owner(f: Fixture) {
    let t = f.workspace(2).await;
    f.enqueue(&t, 2).await;
    let one = f.claim_as("one", 1).await.requests.remove(0);
    let two = f.claim_as("two", 1).await.requests.remove(0);
    assert_ne!(one.id, two.id);
    assert_ne!(one.execution, two.execution);
    let unknown_claim = leasehold_store::request::ClaimRef {
        request: fresh_id(),
        token: 1,
    };
    let claims = [(&one).into(), (&two).into(), unknown_claim];
    assert_eq!(f.renew("one", &claims).await, [one.id]);
}
