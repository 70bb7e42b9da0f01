//! A memory budget in bytes for all calls. Of it one owner, a workspace or a key, gets a quarter at most, and always at least one call.
//! Knows no route.

use crate::call_owner::Owner;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;
use tokio::sync::Notify;

/// The share of the budget that one owner may use: one part of this many.
const PARTS: usize = 4;

pub(crate) struct MemoryBudget {
    max: usize,
    in_use: Mutex<InUse>,
    released: Notify,
}

#[derive(Default)]
struct InUse {
    all: usize,
    by_owner: HashMap<Owner, usize>,
}

/// Why bytes cannot be reserved now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum BudgetExhausted {
    /// The owner's other calls use its share.
    #[error("the other calls of this workspace or key use a quarter of it, the share of one")]
    Share,
    /// All calls together use the budget.
    #[error("all calls together use it")]
    Budget,
}

/// Bytes of a [`MemoryBudget`], released on drop.
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    owner: Owner,
    bytes: usize,
}

impl MemoryBudget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            in_use: Mutex::default(),
            released: Notify::new(),
        })
    }

    /// Returns a reservation of nothing.
    pub(crate) fn reservation(self: &Arc<Self>, owner: Owner) -> Reservation {
        Reservation {
            budget: Arc::clone(self),
            owner,
            bytes: 0,
        }
    }

    /// Returns its size.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InUse {
    fn of(&self, owner: Owner) -> usize {
        self.by_owner.get(&owner).copied().unwrap_or_default()
    }

    fn replace(&mut self, owner: Owner, from: usize, to: usize) {
        self.all = self.all - from + to;
        match self.by_owner.entry(owner) {
            Entry::Occupied(mut of_owner) => match of_owner.get() - from + to {
                0 => drop(of_owner.remove()),
                bytes => *of_owner.get_mut() = bytes,
            },
            Entry::Vacant(new) => match to - from {
                0 => {}
                bytes => drop(new.insert(bytes)),
            },
        }
    }
}

impl Reservation {
    /// Reserves more bytes, unless the owner's share or the budget is used up.
    pub(crate) fn try_grow(&mut self, more: usize) -> Result<(), BudgetExhausted> {
        let mut in_use = self.budget.in_use();
        let (all, of_owner) = (in_use.all, in_use.of(self.owner));
        // A call that is the only one may be larger than the share.
        if of_owner > self.bytes && of_owner + more > self.budget.max / PARTS {
            return Err(BudgetExhausted::Share);
        }
        if all + more > self.budget.max {
            return Err(BudgetExhausted::Budget);
        }
        in_use.replace(self.owner, self.bytes, self.bytes + more);
        self.bytes += more;
        Ok(())
    }

    /// Reserves more bytes, but no more than the whole budget, as soon as there are some. Ends when the future is dropped.
    pub(crate) async fn grow(&mut self, more: usize) {
        let more = more.min(self.budget.max - self.bytes.min(self.budget.max));
        loop {
            let budget = Arc::clone(&self.budget);
            let mut released = pin!(budget.released.notified());
            // A release between the attempt and the wait must not be missed.
            released.as_mut().enable();
            if self.try_grow(more).is_ok() {
                return;
            }
            released.await;
        }
    }

    /// Returns the reserved bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Releases what is reserved beyond these bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget.in_use().replace(self.owner, self.bytes, bytes);
            self.bytes = bytes;
            self.budget.released.notify_waiters();
        }
    }

    /// Counts more bytes whether or not they are within the budget: they are in use already and cannot be given up.
    pub(crate) fn grow_beyond(&mut self, more: usize) {
        let bytes = self.bytes + more;
        self.budget.in_use().replace(self.owner, self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use futures::FutureExt;
    use uuid::Uuid;

    fn owner(number: u128) -> Owner {
        Owner::Workspace(Uuid::from_u128(number).into())
    }

    #[test]
    fn owner_gets_a_quarter_and_other_owners_the_rest() {
        let budget = MemoryBudget::new(100);
        let mut first = budget.reservation(owner(1));
        let mut second = budget.reservation(owner(1));
        first.try_grow(20).unwrap();
        assert_eq!(second.try_grow(6), Err(BudgetExhausted::Share));
        second.try_grow(5).unwrap();
        assert_eq!(second.try_grow(1), Err(BudgetExhausted::Share));
        let others: Vec<Reservation> = (2..5)
            .map(|number| {
                let mut other = budget.reservation(owner(number));
                other.try_grow(25).unwrap();
                other
            })
            .collect();
        let mut last = budget.reservation(owner(9));
        assert_eq!(last.try_grow(1), Err(BudgetExhausted::Budget));
        drop(others);
        last.try_grow(1).unwrap();
    }

    #[test]
    fn only_call_may_be_larger_than_the_share_but_not_than_the_budget() {
        let budget = MemoryBudget::new(100);
        let mut call = budget.reservation(owner(1));
        call.try_grow(90).unwrap();
        assert_eq!(call.try_grow(11), Err(BudgetExhausted::Budget));
        let mut other = budget.reservation(owner(2));
        assert_eq!(other.try_grow(11), Err(BudgetExhausted::Budget));
        drop(call);
        other.try_grow(40).unwrap();
        assert!(budget.in_use().by_owner.len() == 1);
        drop(other);
        assert!(budget.in_use().by_owner.is_empty());
        assert_eq!(budget.in_use().all, 0);
    }

    #[tokio::test]
    async fn waiting_call_continues_when_bytes_are_released() {
        let budget = MemoryBudget::new(100);
        let mut held = budget.reservation(owner(1));
        held.try_grow(25).unwrap();
        let mut waiting = budget.reservation(owner(1));
        {
            let mut grow = pin!(waiting.grow(20));
            assert!(grow.as_mut().now_or_never().is_none());
            held.shrink_to(10);
            assert!(grow.as_mut().now_or_never().is_none(), "15 are left");
            held.shrink_to(5);
            grow.await;
        }
        assert_eq!(budget.in_use().of(owner(1)), 25);
    }
}
