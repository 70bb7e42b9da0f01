//! Named locks, in a table that Java's ShedLock can share: parameters and outcomes.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::Timestamp;
use std::time::Duration;

store_trait! {
    /// Named locks.
    pub trait LockStore, observed by LockObserver {
        /// Acquires a named lock that is free.
        async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired>;

        /// Extends a lock to `at_most_for` from now; false if it is lost.
        async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool>;

        /// Releases a lock, which stays held until at least `at_least_for` after it was acquired; false if it is lost.
        async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool>;

        /// Lists all named locks by name.
        async fn lock_list(&self) -> Result<Vec<LockState>>;
    }
}

/// A lock to acquire.
#[derive(Clone, Debug)]
pub struct LockRequest {
    /// Its name, at most 64 characters.
    pub name: String,
    /// The new holder.
    pub owner: String,
    /// How long it stays held if its holder dies.
    pub at_most_for: Duration,
}

/// A held lock with its fencing token, which guards the holder's writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockToken {
    /// The lock's name.
    pub name: String,
    /// The holder.
    pub owner: String,
    /// The fencing token; rises with every change of holder.
    pub token: i64,
}

/// Outcome of acquiring a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockAcquired {
    /// The caller holds it.
    Acquired {
        /// The fencing token.
        token: LockToken,
        /// When it ends, unless extended.
        until: Timestamp,
    },
    /// It is held, possibly by the caller.
    Held {
        /// The holder.
        by: String,
        /// When it ends, unless extended.
        until: Timestamp,
    },
}

/// The state of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockState {
    /// Its name.
    pub name: String,
    /// The last holder.
    pub owner: String,
    /// When it was acquired.
    pub locked_at: Timestamp,
    /// When it ends or ended.
    pub until: Timestamp,
    /// The token of the last holder.
    pub token: i64,
}
