//! A pool that owners share fairly: permits that are taken at once or waited for. The core decides who gets the next one. Knows no route.

use crate::call_owner::Owner;
use leasehold_core::fair_pool::{FairPool, Ticket};
use leasehold_telemetry::FloatGauge;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A pool of permits that owners share.
pub(crate) struct OwnerPool {
    state: Mutex<PoolState>,
    gauge: FloatGauge,
}

struct PoolState {
    pool: FairPool<Owner>,
    waiters: HashMap<Ticket, oneshot::Sender<OwnerPermit>>,
}

/// A permit of an [`OwnerPool`], released on drop.
pub(crate) struct OwnerPermit {
    pool: Arc<OwnerPool>,
    owner: Owner,
}

/// The pool has no permit for this owner now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolFull {
    owner: Owner,
    /// Permits of the owner, of all owners, and of the pool.
    held: usize,
    in_use: usize,
    max: usize,
}

/// A call in the line of its owner. Dropping it leaves the line, or returns the permit that was granted meanwhile.
struct Waiter<'a> {
    pool: &'a Arc<OwnerPool>,
    owner: Owner,
    ticket: Ticket,
    granted: oneshot::Receiver<OwnerPermit>,
}

impl OwnerPool {
    /// Creates a pool of `max` permits.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Self::with(FairPool::new(max), FloatGauge::default())
    }

    /// Creates a pool whose permits in use are shown by `gauge`.
    pub(crate) fn with(pool: FairPool<Owner>, gauge: FloatGauge) -> Arc<Self> {
        let waiters = HashMap::new();
        let state = Mutex::new(PoolState { pool, waiters });
        Arc::new(Self { state, gauge })
    }

    /// Takes a permit at once.
    pub(crate) fn try_acquire(self: &Arc<Self>, owner: Owner) -> Result<OwnerPermit, PoolFull> {
        let mut state = self.lock();
        if state.pool.acquire(owner) {
            return Ok(self.permit(owner));
        }
        Err(PoolFull {
            owner,
            held: state.pool.held(owner),
            in_use: state.pool.in_use(),
            max: state.pool.max(),
        })
    }

    /// Takes a permit, and waits for one if there is none. The caller bounds the wait.
    pub(crate) async fn acquire(self: &Arc<Self>, owner: Owner) -> OwnerPermit {
        let mut waiter = {
            let mut state = self.lock();
            if state.pool.acquire(owner) {
                return self.permit(owner);
            }
            let ticket = state.pool.wait(owner);
            let (sender, granted) = oneshot::channel();
            state.waiters.insert(ticket, sender);
            Waiter {
                pool: self,
                owner,
                ticket,
                granted,
            }
        };
        match (&mut waiter.granted).await {
            Ok(permit) => permit,
            // A sender is dropped only when its waiter has left.
            Err(_) => std::future::pending().await,
        }
    }

    fn permit(self: &Arc<Self>, owner: Owner) -> OwnerPermit {
        self.gauge.inc();
        OwnerPermit {
            pool: Arc::clone(self),
            owner,
        }
    }

    /// Returns a permit and grants those that are possible now.
    fn release(self: &Arc<Self>, owner: Owner) {
        self.gauge.dec();
        let mut granted = Vec::new();
        {
            let mut state = self.lock();
            state.pool.release(owner);
            while let Some((owner, ticket)) = state.pool.grant_next() {
                let waiter = state.waiters.remove(&ticket);
                granted.push((self.permit(owner), waiter));
            }
        }
        // Outside of the lock: a waiter that has gone returns its permit, which locks again.
        for (permit, waiter) in granted {
            if let Some(waiter) = waiter {
                let _ = waiter.send(permit);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolFull {
    /// Returns the detail of the problem; `what` are the permits and `limit` is the name of their maximum.
    pub(crate) fn detail(self, what: &str, limit: &str) -> String {
        let Self {
            owner,
            held,
            in_use,
            max,
        } = self;
        format!(
            "too many {what}: {held} of {owner}, {in_use} in all; the limit is {max} ({limit}), and one workspace or key may use three quarters of it"
        )
    }
}

impl OwnerPermit {
    /// Returns the owner that it is counted for.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }
}

impl Drop for OwnerPermit {
    fn drop(&mut self) {
        self.pool.release(self.owner);
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        // If it was not waiting any more, the permit is in the channel, or will find it closed.
        if state.pool.leave(self.owner, self.ticket) {
            state.waiters.remove(&self.ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use futures::FutureExt;
    use futures::future::join_all;
    use leasehold_testkit::eventually;
    use std::time::Duration;
    use uuid::Uuid;

    fn owner(number: u128) -> Owner {
        Owner::Workspace(Uuid::from_u128(number).into())
    }

    #[tokio::test]
    async fn permit_is_granted_to_the_owner_that_holds_least() {
        let pool = OwnerPool::new(4);
        let mut held: Vec<_> = (0..3)
            .map(|_| pool.try_acquire(owner(1)).unwrap())
            .collect();
        held.push(pool.try_acquire(owner(2)).unwrap());
        let mut own = Box::pin(pool.acquire(owner(1)));
        let mut other = Box::pin(pool.acquire(owner(3)));
        assert!((&mut own).now_or_never().is_none());
        assert!((&mut other).now_or_never().is_none());
        held.remove(0);
        assert!((&mut own).now_or_never().is_none());
        let granted = (&mut other).now_or_never().unwrap();
        drop(granted);
        held.clear();
        assert!((&mut own).now_or_never().is_some());
    }

    #[tokio::test]
    async fn dropped_waiters_lose_no_permit() {
        let pool = OwnerPool::new(1);
        for granted_before_drop in [false, true] {
            let held = pool.try_acquire(owner(1)).unwrap();
            let mut gone = Box::pin(pool.acquire(owner(2)));
            let mut next = Box::pin(pool.acquire(owner(3)));
            assert!((&mut gone).now_or_never().is_none());
            assert!((&mut next).now_or_never().is_none());
            if granted_before_drop {
                drop(held);
                drop(gone);
            } else {
                drop(gone);
                drop(held);
            }
            assert!((&mut next).now_or_never().is_some());
        }
        assert!(pool.lock().waiters.is_empty());
        assert_eq!(pool.lock().pool.in_use(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn concurrent_owners_never_exceed_the_maximum_and_all_are_served() {
        let pool = OwnerPool::with(FairPool::new(3), FloatGauge::default());
        let calls = (0..2_000u128).map(|number| {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move {
                let permit = pool.acquire(owner(number % 7));
                // Some callers disconnect while they wait.
                let permit = match number % 5 {
                    0 => tokio::time::timeout(Duration::from_micros(50), permit)
                        .await
                        .ok(),
                    _ => Some(permit.await),
                };
                assert!(pool.gauge.get() <= 3.0);
                tokio::task::yield_now().await;
                drop(permit);
            })
        });
        for call in join_all(calls).await {
            call.unwrap();
        }
        let empty = eventually(Duration::from_secs(60), || async {
            pool.lock().pool.in_use() == 0
        });
        assert!(empty.await);
        assert_eq!(pool.gauge.get(), 0.0);
        assert!(pool.lock().waiters.is_empty());
    }

    #[test]
    fn refusal_names_the_limit_and_what_is_in_use() {
        let pool = OwnerPool::new(4);
        let _held: Vec<_> = (0..3)
            .map(|_| pool.try_acquire(owner(1)).unwrap())
            .collect();
        let full = pool.try_acquire(owner(1)).err().unwrap();
        assert_eq!(
            full.detail("concurrent calls", "server.calls_max"),
            "too many concurrent calls: 3 of this workspace, 3 in all; the limit is 4 (server.calls_max), and one workspace or key may use three quarters of it"
        );
    }
}
