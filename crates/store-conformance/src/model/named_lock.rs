//! Named locks in the model.

use super::state::State;
use leasehold_core::Timestamp;
use leasehold_store::lock::{LockAcquired, LockRequest, LockState, LockToken};
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

    pub(super) fn give_back(&mut self, token: &LockToken, least: Duration, now: Timestamp) -> bool {
        match self.held(token, now) {
            Some(lock) => {
                lock.until = now.max(lock.locked_at + least);
                true
            }
            None => false,
        }
    }
}
