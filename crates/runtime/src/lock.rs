//! A named lock that is acquired, extended while it is in use, and released. The store decides whether it is held.

use crate::error::Result;
use leasehold_store::Store;
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
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
}

struct HeldLock {
    token: LockToken,
    /// When the last successful acquire or extend was sent.
    confirmed: Instant,
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
            if sent - mine.confirmed < self.options.extend_interval() / 2 {
                return Ok(Some(mine.token.clone()));
            }
            let extended = self
                .store
                .lock_extend(&mine.token, self.options.at_most_for)
                .await?;
            if extended {
                mine.confirmed = sent;
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
        match self.store.lock_acquire(&request).await? {
            LockAcquired::Acquired { token, .. } => {
                tracing::debug!(lock = self.name, owner = self.owner, "lock acquired");
                state.held = Some(HeldLock {
                    token: token.clone(),
                    confirmed: sent,
                });
                Ok(Some(token))
            }
            LockAcquired::Held { by, .. } => {
                tracing::trace!(lock = self.name, held_by = by, "lock unavailable");
                Ok(None)
            }
        }
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
