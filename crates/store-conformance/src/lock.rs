//! Named locks: one holder, an expiry, and a rising fencing token.

use crate::Fixture;
use crate::factory::ok;
use leasehold_core::Timestamp;
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockToken};
use std::time::Duration;

const QUEUE: &str = "processExecutionQueue";
const FIFTEEN: Duration = Duration::from_secs(15);

async fn acquire(f: &Fixture, name: &str, owner: &str) -> LockAcquired {
    let request = LockRequest {
        name: name.into(),
        owner: owner.into(),
        at_most_for: FIFTEEN,
    };
    ok(f.store.lock_acquire(&request).await)
}

async fn take(f: &Fixture, owner: &str) -> (LockToken, Timestamp) {
    match acquire(f, QUEUE, owner).await {
        LockAcquired::Acquired { token, until } => (token, until),
        LockAcquired::Held { by, until } => panic!("held by {by} until {until}"),
    }
}

fn held(by: &str, until: Timestamp) -> LockAcquired {
    LockAcquired::Held {
        by: by.into(),
        until,
    }
}

/// A free lock is acquired until `at_most_for` from now.
pub async fn free_lock_is_acquired(f: Fixture) {
    let (token, until) = take(&f, "one").await;
    assert_eq!((token.name.as_str(), token.owner.as_str()), (QUEUE, "one"));
    assert_eq!(until, f.now() + FIFTEEN);
}

/// A held lock cannot be acquired, not even by its holder.
pub async fn held_lock_is_held_for_everyone(f: Fixture) {
    let (_, until) = take(&f, "one").await;
    f.advance(14);
    assert_eq!(acquire(&f, QUEUE, "two").await, held("one", until));
    assert_eq!(acquire(&f, QUEUE, "one").await, held("one", until));
}

/// Locks of different names are independent.
pub async fn locks_of_different_names_are_independent(f: Fixture) {
    take(&f, "one").await;
    let other = acquire(&f, "recoverStaleQueueItems", "two").await;
    assert!(matches!(other, LockAcquired::Acquired { .. }));
}

/// A lock that is not extended is free at its end, by the store's clock.
pub async fn lock_that_is_not_extended_expires(f: Fixture) {
    let (first, until) = take(&f, "one").await;
    f.advance(15);
    assert_eq!(f.now(), until);
    let (second, _) = take(&f, "two").await;
    assert!(second.token > first.token);
}

/// The holder extends the lock from now, any number of times.
pub async fn holder_extends_its_lock(f: Fixture) {
    let (token, _) = take(&f, "one").await;
    for _ in 0..4 {
        f.advance(10);
        assert!(ok(f.store.lock_extend(&token, FIFTEEN).await));
        let until = f.now() + FIFTEEN;
        assert_eq!(acquire(&f, QUEUE, "two").await, held("one", until));
    }
    f.advance(15);
    take(&f, "two").await;
}

/// A lost lock can neither be extended nor released: expired, acquired by another, released.
pub async fn lost_lock_cannot_be_extended_or_released(f: Fixture) {
    let (first, _) = take(&f, "one").await;
    f.advance(15);
    assert!(!ok(f.store.lock_extend(&first, FIFTEEN).await));
    let (second, until) = take(&f, "two").await;
    assert!(!ok(f.store.lock_extend(&first, FIFTEEN).await));
    assert!(!ok(f.store.lock_release(&first, Duration::ZERO).await));
    assert_eq!(acquire(&f, QUEUE, "three").await, held("two", until));
    let forged = LockToken {
        token: second.token + 1,
        ..second.clone()
    };
    assert!(!ok(f.store.lock_extend(&forged, FIFTEEN).await));
    assert!(!ok(f.store.lock_release(&forged, Duration::ZERO).await));
    assert!(ok(f.store.lock_release(&second, Duration::ZERO).await));
    assert!(!ok(f.store.lock_extend(&second, FIFTEEN).await));
    let unknown = LockToken {
        name: "unknown".into(),
        ..second
    };
    assert!(!ok(f.store.lock_extend(&unknown, FIFTEEN).await));
    assert!(!ok(f.store.lock_release(&unknown, Duration::ZERO).await));
}

/// A released lock is free at once.
pub async fn released_lock_is_free_at_once(f: Fixture) {
    let (first, _) = take(&f, "one").await;
    f.advance(1);
    assert!(ok(f.store.lock_release(&first, Duration::ZERO).await));
    let (second, _) = take(&f, "two").await;
    assert!(second.token > first.token);
}

/// `at_least_for` counts from the acquisition: a lock released earlier stays held until then.
pub async fn early_release_honours_at_least_for(f: Fixture) {
    let least = Duration::from_secs(10);
    let (first, _) = take(&f, "one").await;
    let free_at = f.now() + least;
    f.advance(3);
    assert!(ok(f.store.lock_release(&first, least).await));
    f.advance(6);
    assert_eq!(acquire(&f, QUEUE, "two").await, held("one", free_at));
    f.advance(1);
    let (second, _) = take(&f, "two").await;
    f.advance(12);
    assert!(ok(f.store.lock_release(&second, least).await));
    take(&f, "three").await;
}

/// The token rises with every acquisition, also by the same owner; earlier tokens are invalid.
pub async fn token_rises_with_every_acquisition(f: Fixture) {
    let mut tokens = Vec::new();
    for owner in ["one", "one", "two", "one"] {
        let (token, _) = take(&f, owner).await;
        tokens.push(token.token);
        f.advance(1);
        assert!(ok(f.store.lock_extend(&token, FIFTEEN).await));
        f.advance(15);
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

/// The list has every lock, ordered by name.
pub async fn list_has_every_lock_by_name(f: Fixture) {
    assert_eq!(ok(f.store.lock_list().await), []);
    let start = f.now();
    let (queue, _) = take(&f, "one").await;
    f.advance(2);
    let LockAcquired::Acquired { token: alpha, .. } = acquire(&f, "alpha", "two").await else {
        panic!("the lock is free");
    };
    assert!(ok(f.store.lock_extend(&queue, FIFTEEN).await));
    let state = |token: &LockToken, locked_at: Timestamp| LockState {
        name: token.name.clone(),
        owner: token.owner.clone(),
        locked_at,
        until: f.now() + FIFTEEN,
        token: token.token,
    };
    let expected = [state(&alpha, f.now()), state(&queue, start)];
    assert_eq!(ok(f.store.lock_list().await), expected);
}

/// Of concurrent acquisitions one succeeds.
pub async fn concurrent_acquires_have_one_winner(f: Fixture) {
    for _ in 0..5 {
        let tries = (0..16).map(|n| {
            let store = f.store.clone();
            let request = LockRequest {
                name: QUEUE.into(),
                owner: format!("owner-{n}"),
                at_most_for: FIFTEEN,
            };
            tokio::spawn(async move { ok(store.lock_acquire(&request).await) })
        });
        let mut acquired = 0;
        for attempt in futures::future::join_all(tries).await {
            let attempt = attempt.expect("the attempt did not panic");
            acquired += usize::from(matches!(attempt, LockAcquired::Acquired { .. }));
        }
        assert_eq!(acquired, 1);
        f.advance(15);
    }
}
