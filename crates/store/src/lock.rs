//! Named locks, in the table a Java ShedLock shares: parameters and outcomes.

use crate::Result;
use crate::store_trait::store_trait;
use leasehold_core::Timestamp;
use std::time::Duration;

store_trait! {
    /// Named locks.
    pub trait LockStore, observed by LockObserver {
        /// Takes a named lock that nobody holds.
        async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired>;

        /// Keeps a lock for `at_most_for` from now; false if it is lost.
        async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool>;

        /// Gives a lock back, to be free `at_least_for` after it was taken at the earliest; false if it is lost.
        async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool>;

        /// Every named lock, by name.
        async fn lock_list(&self) -> Result<Vec<LockState>>;
    }
}

/// A lock to take.
#[derive(Clone, Debug)]
pub struct LockRequest {
    /// Its name, at most 64 characters.
    pub name: String,
    /// Who takes it.
    pub owner: String,
    /// How long it is held if its holder dies.
    pub at_most_for: Duration,
}

/// Proof of holding a lock; guards what the holder writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockToken {
    /// The lock's name.
    pub name: String,
    /// Who holds it.
    pub owner: String,
    /// Rises with every change of holder.
    pub token: i64,
}

/// What became of taking a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockAcquired {
    /// It is held now.
    Acquired {
        /// The proof.
        token: LockToken,
        /// Until when, unless extended.
        until: Timestamp,
    },
    /// Someone holds it, maybe the caller itself.
    Held {
        /// Who.
        by: String,
        /// Until when, unless extended.
        until: Timestamp,
    },
}

/// A lock as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockState {
    /// Its name.
    pub name: String,
    /// Who took it last.
    pub owner: String,
    /// When it was taken.
    pub locked_at: Timestamp,
    /// Until when it is, or was, held.
    pub until: Timestamp,
    /// The token of the last holder.
    pub token: i64,
}
