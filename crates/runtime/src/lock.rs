//! A named lock that is acquired, extended while it is in use, and released. The store decides whether it is held.

use crate::error::Result;
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use leasehold_store::{ErrorKind, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long a named lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockOptions {
    /// How long the lock stays held after its holder died; a living holder extends it.
    pub at_most_for: Duration,
    /// The shortest time the lock stays held, even if it is released sooner.
    pub at_least_for: Duration,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self {
            at_most_for: Duration::from_secs(15),
            at_least_for: Duration::ZERO,
        }
    }
}

impl LockOptions {
    /// Returns how often the holder extends the lock.
    pub fn extend_interval(&self) -> Duration {
        self.at_most_for / 3
    }
}

/// One named lock of this process.
///
/// A caller may be dropped while it waits: every call runs to completion in its own task, so no lock is acquired without this type knowing.
pub struct NamedLock(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    name: &'static str,
    owner: String,
    options: LockOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: Option<HeldLock>,
    /// Closed permanently: never acquired again.
    closed: bool,
    /// Whether another transaction had locked the row at the last attempt to acquire the lock.
    is_row_locked: bool,
}

struct HeldLock {
    token: LockToken,
    /// When the last attempt to acquire or extend it was sent that the store answered.
    tried: Instant,
    /// How often in a row it was not extended because another transaction has locked its row.
    missed: u32,
}

impl NamedLock {
    /// Creates a lock that is not held yet.
    pub fn new(
        store: Arc<dyn Store>,
        name: &'static str,
        owner: &str,
        options: LockOptions,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            name,
            owner: owner.to_owned(),
            options,
            state: Mutex::default(),
        }))
    }

    /// Returns how long the lock is held.
    pub fn options(&self) -> LockOptions {
        self.0.options
    }

    /// Acquires the lock, or extends it if it is held. Returns none if another owner holds it or if it was closed. Runs a statement only
    /// when the lock must be acquired or extended.
    ///
    /// While another transaction has locked the lock's row in the store, no instance can acquire the lock: its holder keeps it, and the others wait.
    pub async fn acquire_or_extend(&self) -> Result<Option<LockToken>> {
        let inner = self.0.clone();
        run_to_completion(async move { inner.acquire_or_extend().await }).await
    }

    /// Records that the store reported the lock with this token as lost. The lock may have been acquired again with another token.
    pub async fn mark_lost(&self, lost: Option<LockToken>) {
        let mut state = self.0.state.lock().await;
        if state
            .held
            .as_ref()
            .is_some_and(|held| Some(&held.token) == lost.as_ref())
        {
            state.held = None;
            self.0.log_lost();
        }
    }

    /// Releases the lock before a wait in which it would expire.
    pub async fn release_before(&self, wait: Duration) {
        if wait > self.0.options.at_most_for / 2 {
            self.release().await;
        }
    }

    /// Releases the lock, if it is held.
    pub async fn release(&self) {
        let inner = self.0.clone();
        run_to_completion(async move { inner.release().await }).await;
    }

    /// Releases the lock, if it is held, and never acquires it again. A lock whose release fails expires.
    pub async fn close(&self) {
        let inner = self.0.clone();
        let closing = async move {
            inner.state.lock().await.closed = true;
            inner.release().await;
        };
        run_to_completion(closing).await;
    }
}

/// Runs the call to completion, even if the caller is dropped.
async fn run_to_completion<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(call).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

impl Inner {
    async fn acquire_or_extend(&self) -> Result<Option<LockToken>> {
        let mut state = self.state.lock().await;
        if state.closed {
            return Ok(None);
        }
        let sent = Instant::now();
        if let Some(mine) = state.held.as_mut() {
            // Half the interval, since the timer of the caller may fire a little early.
            if sent - mine.tried < self.options.extend_interval() / 2 {
                return Ok(Some(mine.token.clone()));
            }
            let at_most_for = self.options.at_most_for;
            let extended = self.store.lock_extend(&mine.token, at_most_for).await;
            if self.keeps(mine, extended)? {
                mine.tried = sent;
                return Ok(Some(mine.token.clone()));
            }
            self.log_lost();
            state.held = None;
        }
        let request = LockRequest {
            name: self.name.to_owned(),
            owner: self.owner.clone(),
            at_most_for: self.options.at_most_for,
        };
        let acquired = match self.store.lock_acquire(&request).await {
            Err(error) if matches!(error.kind, ErrorKind::Contended(_)) => {
                if !std::mem::replace(&mut state.is_row_locked, true) {
                    tracing::warn!(lock = self.name, %error, "row of a free lock is locked in the store; no instance can acquire it");
                }
                return Ok(None);
            }
            acquired => acquired?,
        };
        state.is_row_locked = false;
        match acquired {
            LockAcquired::Acquired { token, .. } => {
                tracing::debug!(lock = self.name, owner = self.owner, "lock acquired");
                state.held = Some(HeldLock {
                    token: token.clone(),
                    tried: sent,
                    missed: 0,
                });
                Ok(Some(token))
            }
            LockAcquired::Held { by, .. } => {
                tracing::trace!(lock = self.name, held_by = by, "lock unavailable");
                Ok(None)
            }
        }
    }

    /// Whether the lock is still held after an attempt to extend it.
    fn keeps(&self, mine: &mut HeldLock, extended: leasehold_store::Result<bool>) -> Result<bool> {
        if !matches!(&extended, Err(error) if matches!(error.kind, ErrorKind::Contended(_))) {
            mine.missed = 0;
            return Ok(extended?);
        }
        mine.missed += 1;
        // A claim of this process locks the row for a moment.
        if mine.missed == 2 {
            tracing::warn!(
                lock = self.name,
                owner = self.owner,
                "row of a held lock is locked in the store; its holder keeps it"
            );
        }
        Ok(true)
    }

    fn log_lost(&self) {
        tracing::warn!(lock = self.name, owner = self.owner, "lock lost");
    }

    async fn release(&self) {
        if let Some(held) = self.state.lock().await.held.take() {
            let released = self
                .store
                .lock_release(&held.token, self.options.at_least_for)
                .await;
            if let Err(error) = released {
                tracing::warn!(lock = self.name, %error, "failed to release lock; it expires");
            }
        }
    }
}
