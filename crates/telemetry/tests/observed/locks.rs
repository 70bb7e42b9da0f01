//! Named locks and the calls themselves.

use crate::observed_env::{ObservedEnv, moves};
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
async fn a_lock_is_held_given_back_and_refused() {
    let ground = ObservedEnv::new().await;
    let token = acquire(&*ground.store, "a").await.unwrap();
    assert_eq!(ground.moved(), moves([(HELD, 1.0)]));
    assert!(ground.store.lock_extend(&token, MINUTE).await.unwrap());
    assert_eq!(ground.moved(), moves([]));
    let released = ground.store.lock_release(&token, Duration::ZERO).await;
    assert!(released.unwrap());
    assert_eq!(ground.moved(), moves([(HELD, -1.0)]));
    acquire(&*ground.unwatched, "b").await.unwrap();
    assert!(acquire(&*ground.store, "a").await.is_none());
    assert_eq!(ground.moved(), moves([(REFUSED, 1.0)]));
}

#[tokio::test]
async fn a_loss_is_counted_by_whatever_tells_of_it_first_and_only_once() {
    let ground = ObservedEnv::new().await;
    for told in ["extend", "release", "claim"] {
        let mine = acquire(&*ground.store, "a").await.unwrap();
        ground.clock.advance(MINUTE * 2);
        let theirs = acquire(&*ground.unwatched, "b").await.unwrap();
        ground.moved();
        for _ in 0..2 {
            match told {
                "extend" => assert!(!ground.store.lock_extend(&mine, MINUTE).await.unwrap()),
                "release" => assert!(!ground.store.lock_release(&mine, MINUTE).await.unwrap()),
                _ => {
                    let claim = Claim {
                        owner: "a".to_owned(),
                        batch: 1,
                        lease: MINUTE,
                        lock: Some(mine.clone()),
                    };
                    let claimed = ground.store.request_claim(&claim).await.unwrap();
                    assert_eq!(claimed, ClaimOutcome::LockLost);
                }
            }
        }
        assert_eq!(ground.moved(), moves([(HELD, -1.0), (LOST, 1.0)]), "{told}");
        let released = ground.unwatched.lock_release(&theirs, Duration::ZERO).await;
        assert!(released.unwrap());
    }
}

#[tokio::test]
async fn every_call_is_timed_and_a_failed_one_is_told_apart() {
    let ground = ObservedEnv::new().await;
    let of = |call: &str, outcome: &str| {
        ground.value(&format!(
            "leasehold_store_calls_total{{call=\"{call}\",outcome=\"{outcome}\"}}"
        ))
    };
    let timed = || ground.value("leasehold_store_call_duration_seconds_count{call=\"now\"}");
    let (before, counted) = (timed(), of("now", "ok"));
    ground.store.now().await.unwrap();
    assert_eq!((timed(), of("now", "ok")), (before + 1.0, counted + 1.0));
    assert_eq!(of("workspace_find", "error"), 0.0);
    ground.store.workspace_find("no\0name").await.unwrap_err();
    assert_eq!(of("workspace_find", "error"), 1.0);
}
