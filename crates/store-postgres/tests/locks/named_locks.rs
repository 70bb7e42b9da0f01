//! Locked rows of named locks: their holders go on, no other instance takes them over, and renewals of leases do not wait.

use super::{lock, open_fixture, open_observed, promptly, unlock, wait_for_blocked};
use crate::support::pace::promptly_within;
use leasehold_store::ErrorKind;
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use leasehold_store::request::{Claim, ClaimOutcome};
use leasehold_store_conformance::Fixture;
use leasehold_store_conformance::factory::{LEASE, OWNER, claim_refs, ok};
use leasehold_store_conformance::job_factory::{WORKER, job_refs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const HELD_FOR: Duration = Duration::from_secs(15);

fn request(name: &str, owner: &str) -> LockRequest {
    LockRequest {
        name: name.to_owned(),
        owner: owner.to_owned(),
        at_most_for: HELD_FOR,
    }
}

async fn acquire(f: &Fixture, name: &str, owner: &str) -> LockToken {
    match ok(f.store.lock_acquire(&request(name, owner)).await) {
        LockAcquired::Acquired { token, .. } => token,
        LockAcquired::Held { by, .. } => panic!("{by} holds it"),
    }
}

async fn claim_with(f: &Fixture, lock: &LockToken) -> ClaimOutcome {
    let claim = Claim {
        owner: lock.owner.clone(),
        batch: 10,
        kept_max: None,
        lease: LEASE,
        lock: Some(lock.clone()),
    };
    ok(promptly(f.store.request_claim(&claim)).await)
}

async fn claimed_with(f: &Fixture, lock: &LockToken) -> usize {
    match claim_with(f, lock).await {
        ClaimOutcome::Claimed(claimed) => claimed.requests.len(),
        ClaimOutcome::LockLost => panic!("the lock is not lost"),
    }
}

/// While its row is locked, no other instance can acquire the lock, also after its time has passed. So its last holder claims.
#[tokio::test]
async fn last_holder_claims_while_the_row_of_its_lock_is_locked() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    let mine = acquire(&f, "dispatch", "us").await;
    lock(&operator, "shedlock", "true").await;
    for wait in [0, 60] {
        f.advance(wait);
        f.enqueue(&t, 2).await;
        assert_eq!(claimed_with(&f, &mine).await, 2);
        let extended = promptly(f.store.lock_extend(&mine, HELD_FOR)).await;
        let error = extended.expect_err("the row is locked");
        assert!(matches!(error.kind, ErrorKind::Contended(_)), "{error}");
    }
    let acquired = promptly(f.store.lock_acquire(&request("dispatch", "them"))).await;
    let error = acquired.expect_err("the row is locked");
    assert!(matches!(error.kind, ErrorKind::Contended(_)), "{error}");
    unlock(&operator).await;
    // It has expired meanwhile.
    f.enqueue(&t, 1).await;
    assert_eq!(claim_with(&f, &mine).await, ClaimOutcome::LockLost);
    assert!(!ok(f.store.lock_extend(&mine, HELD_FOR).await));
    acquire(&f, "dispatch", "them").await;
}

#[tokio::test]
async fn locked_row_of_a_lock_does_not_let_its_former_holder_claim() {
    let (f, operator) = open_fixture().await;
    let t = f.workspace(10).await;
    let mine = acquire(&f, "dispatch", "us").await;
    f.advance(60);
    let theirs = acquire(&f, "dispatch", "them").await;
    f.enqueue(&t, 1).await;
    lock(&operator, "shedlock", "true").await;
    assert_eq!(claim_with(&f, &mine).await, ClaimOutcome::LockLost);
    let extended = promptly(f.store.lock_extend(&mine, HELD_FOR)).await;
    assert!(!ok(extended), "it is known to be lost");
    assert_eq!(claimed_with(&f, &theirs).await, 1);
    unlock(&operator).await;
}

/// A standby instance need not wait to learn that another one holds the lock.
#[tokio::test]
async fn locked_row_of_a_held_lock_is_reported_as_held_at_once() {
    let (f, operator) = open_fixture().await;
    acquire(&f, "dispatch", "us").await;
    lock(&operator, "shedlock", "true").await;
    let acquired = ok(promptly(f.store.lock_acquire(&request("dispatch", "them"))).await);
    assert!(matches!(acquired, LockAcquired::Held { by, .. } if by == "us"));
    unlock(&operator).await;
}

/// Every service extends its lock over the connections that renewals use.
#[tokio::test]
async fn renewals_do_not_wait_for_locked_rows_of_named_locks() {
    let (f, operator, observer) = open_observed().await;
    let t = f.workspace(10).await;
    f.enqueue(&t, 2).await;
    let claims = claim_refs(&f.claim(2).await);
    f.enqueue_jobs(2).await;
    let jobs = job_refs(&f.claim_jobs(2).await);
    let mut locks = Vec::new();
    for number in 0..8 {
        locks.push(acquire(&f, &format!("lock-{number}"), "us").await);
    }
    lock(&operator, "shedlock", "true").await;
    let is_over = Arc::new(AtomicBool::new(false));
    let extending: Vec<_> = locks
        .iter()
        .cloned()
        .map(|token| {
            let (store, is_over) = (Arc::clone(&f.store), Arc::clone(&is_over));
            // Each gives up soon; the next takes its place.
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let extended = store.lock_extend(&token, HELD_FOR).await;
                    assert!(extended.is_err(), "the row is locked");
                }
            })
        })
        .collect();
    wait_for_blocked(&observer, 1).await;
    let renewals = async {
        let renewed = ok(f.store.request_renew(OWNER, &claims, LEASE).await);
        assert_eq!(renewed.renewed.len(), 2);
        let renewed = ok(f.store.job_renew(WORKER, &jobs, LEASE).await);
        assert_eq!(renewed.renewed.len(), 2);
    };
    promptly_within(Duration::from_secs(1), renewals).await;
    is_over.store(true, Ordering::Relaxed);
    for one in extending {
        one.await.unwrap();
    }
    unlock(&operator).await;
}
