//! Named locks in the model.

use super::Model;
use super::state::State;
use async_trait::async_trait;
use leasehold_core::Timestamp;
use leasehold_store::Result;
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockStore, LockToken};
use std::time::Duration;

impl State {
    pub(super) fn acquire(&mut self, request: &LockRequest, now: Timestamp) -> LockAcquired {
        let before = self.locks.get(&request.name);
        if let Some(lock) = before
            && lock.until > now
        {
            return LockAcquired::Held {
                by: lock.owner.clone(),
                until: lock.until,
            };
        }
        let lock = LockState {
            name: request.name.clone(),
            owner: request.owner.clone(),
            locked_at: now,
            until: now + request.at_most_for,
            token: before.map_or(0, |lock| lock.token) + 1,
        };
        let acquired = LockAcquired::Acquired {
            token: LockToken {
                name: lock.name.clone(),
                owner: lock.owner.clone(),
                token: lock.token,
            },
            until: lock.until,
        };
        self.locks.insert(request.name.clone(), lock);
        acquired
    }

    fn held(&mut self, token: &LockToken, now: Timestamp) -> Option<&mut LockState> {
        let lock = self.locks.get_mut(&token.name)?;
        let held = lock.owner == token.owner && lock.token == token.token && lock.until > now;
        held.then_some(lock)
    }

    pub(super) fn extend(&mut self, token: &LockToken, by: Duration, now: Timestamp) -> bool {
        match self.held(token, now) {
            Some(lock) => {
                lock.until = now + by;
                true
            }
            None => false,
        }
    }

    pub(super) fn release_lock(
        &mut self,
        token: &LockToken,
        least: Duration,
        now: Timestamp,
    ) -> bool {
        match self.held(token, now) {
            Some(lock) => {
                lock.until = now.max(lock.locked_at + least);
                true
            }
            None => false,
        }
    }
}

#[async_trait]
impl LockStore for Model {
    async fn lock_acquire(&self, request: &LockRequest) -> Result<LockAcquired> {
        Ok(self.state().acquire(request, self.now()))
    }

    async fn lock_extend(&self, token: &LockToken, at_most_for: Duration) -> Result<bool> {
        Ok(self.state().extend(token, at_most_for, self.now()))
    }

    async fn lock_release(&self, token: &LockToken, at_least_for: Duration) -> Result<bool> {
        Ok(self.state().release_lock(token, at_least_for, self.now()))
    }

    async fn lock_list(&self) -> Result<Vec<LockState>> {
        Ok(self.state().locks.values().cloned().collect())
    }
}
