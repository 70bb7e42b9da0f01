//! A named lock that is taken, kept alive while it is used, and given back. The store judges whether it is held.

use crate::error::Result;
use leasehold_store::Store;
use leasehold_store::lock::{LockAcquired, LockRequest, LockToken};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long a named lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockOptions {
    /// How long it is held if its holder dies; while the holder lives it is kept alive.
    pub at_most_for: Duration,
    /// How long it is held at least, even if given back sooner.
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
    /// How often the holder keeps it alive.
    pub fn keep_alive_every(&self) -> Duration {
        self.at_most_for / 3
    }
}

/// One named lock of this process.
///
/// Whoever waits for one of its calls may be dropped meanwhile: what the call began is finished all the same, so that nothing is
/// taken that nobody knows of.
pub struct Lock(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    name: &'static str,
    owner: String,
    options: LockOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    /// It is not wanted any more.
    closed: bool,
}

struct Held {
    token: LockToken,
    confirmed: Instant,
}

impl Lock {
    /// A lock that is not held yet.
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

    /// How long it is held.
    pub fn options(&self) -> LockOptions {
        self.0.options
    }

    /// Takes the lock, or keeps it alive if it is held; none if someone else holds it or it was closed. Costs a statement only
    /// when there is something to write.
    pub async fn keep(&self) -> Result<Option<LockToken>> {
        let inner = self.0.clone();
        finished(async move { inner.keep().await }).await
    }

    /// Takes note that the store said the lock is lost with this token; it may have been taken again with another.
    pub async fn forget(&self, lost: Option<LockToken>) {
        let mut state = self.0.state.lock().await;
        if state
            .held
            .as_ref()
            .is_some_and(|held| Some(&held.token) == lost.as_ref())
        {
            state.held = None;
            self.0.say_lost();
        }
    }

    /// Gives the lock back before a rest in which it would end by itself.
    pub async fn rest(&self, wait: Duration) {
        if wait > self.0.options.at_most_for / 2 {
            self.give_back().await;
        }
    }

    /// Gives the lock back, if it is held.
    pub async fn give_back(&self) {
        let inner = self.0.clone();
        finished(async move { inner.give_back().await }).await;
    }

    /// Gives the lock back, if it is held, and never takes it again. A lock that cannot be given back ends by itself.
    pub async fn close(&self) {
        let inner = self.0.clone();
        let closing = async move {
            inner.state.lock().await.closed = true;
            inner.give_back().await;
        };
        finished(closing).await;
    }
}

/// Runs it to its end, even if the caller is dropped.
async fn finished<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(call).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

impl Inner {
    async fn keep(&self) -> Result<Option<LockToken>> {
        let mut state = self.state.lock().await;
        if state.closed {
            return Ok(None);
        }
        let asked = Instant::now();
        if let Some(mine) = state.held.as_mut() {
            // Half, since whoever keeps it alive comes a little early at times.
            if asked - mine.confirmed < self.options.keep_alive_every() / 2 {
                return Ok(Some(mine.token.clone()));
            }
            let extended = self
                .store
                .lock_extend(&mine.token, self.options.at_most_for)
                .await?;
            if extended {
                mine.confirmed = asked;
                return Ok(Some(mine.token.clone()));
            }
            self.say_lost();
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
                state.held = Some(Held {
                    token: token.clone(),
                    confirmed: asked,
                });
                Ok(Some(token))
            }
            LockAcquired::Held { by, .. } => {
                tracing::trace!(lock = self.name, held_by = by, "lock unavailable");
                Ok(None)
            }
        }
    }

    fn say_lost(&self) {
        tracing::warn!(lock = self.name, owner = self.owner, "lock lost");
    }

    async fn give_back(&self) {
        if let Some(held) = self.state.lock().await.held.take() {
            let released = self
                .store
                .lock_release(&held.token, self.options.at_least_for)
                .await;
            if let Err(error) = released {
                tracing::warn!(lock = self.name, %error, "lock could not be given back; it ends by itself");
            }
        }
    }
}
