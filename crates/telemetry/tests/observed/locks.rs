//! Metrics of named locks and of store calls.

use crate::observed_env::{ObservedEnv, changes};
use leasehold_store::Store;
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use leasehold_store::request::{Claim, ClaimOutcome};
use std::time::Duration;

const HELD: &str = "leasehold_lock_held{lock=\"pruneFinished\"}";
const LOST: &str = "leasehold_lock_losses_total{lock=\"pruneFinished\"}";
const REFUSED: &str = "shedlock_acquisition_failures{lock=\"pruneFinished\"}";
const MINUTE: Duration = Duration::from_secs(60);

async fn acquire(store: &dyn Store, owner: &str) -> Option<LockToken> {
    let request = LockRequest {
        name: "pruneFinished".to_owned(),
        owner: owner.to_owned(),
        at_most_for: MINUTE,
    };
    match store.lock_acquire(&request).await.unwrap() {
        LockAcquired::Acquired { token, .. } => Some(token),
        LockAcquired::Held { .. } => None,
    }
}

#[tokio::test]
async fn held_released_and_unavailable_locks_are_counted() {
    let env = ObservedEnv::new().await;
    let token = acquire(&*env.store, "a").await.unwrap();
    assert_eq!(env.changed(), changes([(HELD, 1.0)]));
    assert!(env.store.lock_extend(&token, MINUTE).await.unwrap());
    assert_eq!(env.changed(), changes([]));
    let released = env.store.lock_release(&token, Duration::ZERO).await;
    assert!(released.unwrap());
    assert_eq!(env.changed(), changes([(HELD, -1.0)]));
    acquire(&*env.unobserved, "b").await.unwrap();
    assert!(acquire(&*env.store, "a").await.is_none());
    assert_eq!(env.changed(), changes([(REFUSED, 1.0)]));
}

#[tokio::test]
async fn lost_lock_is_counted_once_by_the_first_call_that_reports_it() {
    let env = ObservedEnv::new().await;
    for call in ["extend", "release", "claim"] {
        let mine = acquire(&*env.store, "a").await.unwrap();
        env.clock.advance(MINUTE * 2);
        let theirs = acquire(&*env.unobserved, "b").await.unwrap();
        env.changed();
        for _ in 0..2 {
            match call {
                "extend" => assert!(!env.store.lock_extend(&mine, MINUTE).await.unwrap()),
                "release" => assert!(!env.store.lock_release(&mine, MINUTE).await.unwrap()),
                _ => {
                    let claim = Claim {
                        owner: "a".to_owned(),
                        batch: 1,
                        kept_max: None,
                        lease: MINUTE,
                        lock: Some(mine.clone()),
                    };
                    let claimed = env.store.request_claim(&claim).await.unwrap();
                    assert_eq!(claimed, ClaimOutcome::LockLost);
                }
            }
        }
        assert_eq!(
            env.changed(),
            changes([(HELD, -1.0), (LOST, 1.0)]),
            "{call}"
        );
        let released = env.unobserved.lock_release(&theirs, Duration::ZERO).await;
        assert!(released.unwrap());
    }
}

#[tokio::test]
async fn every_call_is_timed_and_failures_are_counted() {
    let env = ObservedEnv::new().await;
    let of = |call: &str, outcome: &str| {
        env.value(&format!(
            "leasehold_store_calls_total{{call=\"{call}\",outcome=\"{outcome}\"}}"
        ))
    };
    let timed = || env.value("leasehold_store_call_duration_seconds_count{call=\"now\"}");
    let (before, counted) = (timed(), of("now", "ok"));
    env.store.now().await.unwrap();
    assert_eq!((timed(), of("now", "ok")), (before + 1.0, counted + 1.0));
    assert_eq!(of("workspace_find", "error"), 0.0);
    env.store.workspace_find("no\0name").await.unwrap_err();
    assert_eq!(of("workspace_find", "error"), 1.0);
}
