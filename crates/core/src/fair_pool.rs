//! Who gets the next place of a pool that workspaces and keys share: whichever has least under way. Knows no thread, no clock and no waiting.
//!
//! Three quarters of the places are open to everyone. The last quarter is kept for owners that hold less than a quarter, so that an owner whose calls
//! hang cannot keep a newcomer out. A place that becomes free goes to the waiting owner that holds least; among equals, to the one that waits longest.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::hash::Hash;

#[cfg(test)]
mod tests;

/// A pool of places, counted by owner, with a line of waiting calls for each owner.
#[derive(Clone, Debug)]
pub struct FairPool<O> {
    max: usize,
    owner_max: usize,
    in_use: usize,
    owners: HashMap<O, Share>,
    next_ticket: u64,
}

/// What an owner has; removed when it has nothing.
#[derive(Clone, Debug, Default)]
struct Share {
    held: usize,
    waiting: VecDeque<Ticket>,
}

/// A place in the line of an owner. Tickets rise in the order in which they were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl<O: Copy + Eq + Hash> FairPool<O> {
    /// Creates a pool of `max` places; at least one.
    pub fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            owner_max: usize::MAX,
            in_use: 0,
            owners: HashMap::new(),
            next_ticket: 0,
        }
    }

    /// Limits each owner to `most` places, also while others are free.
    #[must_use]
    pub fn with_owner_max(self, most: usize) -> Self {
        Self {
            owner_max: most.max(1),
            ..self
        }
    }

    /// Returns the number of places.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Returns how many places are in use.
    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// Returns how many places this owner holds.
    pub fn held(&self, owner: O) -> usize {
        self.owners.get(&owner).map_or(0, |share| share.held)
    }

    /// Returns how many places one owner may hold while no other owner holds any: three quarters. A pool of one place has no quarter to keep.
    pub fn max_alone(&self) -> usize {
        self.max_open().max(1).min(self.owner_max)
    }

    /// A quarter of the places, rounded up.
    fn quarter(&self) -> usize {
        self.max.div_ceil(4)
    }

    /// The places that every owner may take.
    fn max_open(&self) -> usize {
        self.max - self.quarter()
    }

    /// How many places an owner may hold after it has taken one now.
    fn may_hold(&self) -> usize {
        if self.in_use >= self.max {
            0
        } else if self.in_use < self.max_open() {
            self.owner_max
        } else {
            self.owner_max.min(self.quarter())
        }
    }

    /// Takes a place at once. A waiting owner is never overtaken: it waits only while it may not take a place itself.
    pub fn acquire(&mut self, owner: O) -> bool {
        let may_hold = self.may_hold();
        match self.owners.entry(owner) {
            Entry::Occupied(mut share) if share.get().held < may_hold => share.get_mut().held += 1,
            Entry::Vacant(new) if may_hold > 0 => new.insert(Share::default()).held = 1,
            Entry::Occupied(_) | Entry::Vacant(_) => return false,
        }
        self.in_use += 1;
        true
    }

    /// Joins the line of this owner, after [`acquire`](Self::acquire) found no place.
    pub fn wait(&mut self, owner: O) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let share = self.owners.entry(owner).or_default();
        share.waiting.push_back(ticket);
        ticket
    }

    /// Leaves the line. Returns whether the ticket was still waiting; otherwise it has a place, which must be released.
    pub fn leave(&mut self, owner: O, ticket: Ticket) -> bool {
        let Entry::Occupied(mut share) = self.owners.entry(owner) else {
            return false;
        };
        let Ok(at) = share.get().waiting.binary_search(&ticket) else {
            return false;
        };
        share.get_mut().waiting.remove(at);
        if share.get().is_empty() {
            share.remove();
        }
        true
    }

    /// Returns a place. Call [`grant_next`](Self::grant_next) until it returns none.
    pub fn release(&mut self, owner: O) {
        if let Entry::Occupied(mut share) = self.owners.entry(owner)
            && share.get().held > 0
        {
            share.get_mut().held -= 1;
            self.in_use -= 1;
            if share.get().is_empty() {
                share.remove();
            }
        }
    }

    /// Gives a place to the first waiting call of the owner that holds least, if that owner may take one. Takes time in proportion to the owners.
    pub fn grant_next(&mut self) -> Option<(O, Ticket)> {
        // If the owner that holds least may not take a place, none of the others may.
        let waiting = self.owners.iter().filter_map(|(owner, share)| {
            let first = share.waiting.front()?;
            Some((share.held, *first, *owner))
        });
        let (held, ticket, owner) = waiting.min_by_key(|(held, first, _)| (*held, *first))?;
        if held >= self.may_hold() {
            return None;
        }
        let share = self.owners.get_mut(&owner)?;
        share.waiting.pop_front();
        share.held += 1;
        self.in_use += 1;
        Some((owner, ticket))
    }
}

impl Share {
    fn is_empty(&self) -> bool {
        self.held == 0 && self.waiting.is_empty()
    }
}
