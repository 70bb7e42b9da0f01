//! Tests of the fair pool: examples, and its guarantees after any sequence of calls.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const A: u8 = 0;
const B: u8 = 1;
const C: u8 = 2;

fn take_all(pool: &mut FairPool<u8>, owner: u8) -> usize {
    std::iter::repeat_with(|| pool.acquire(owner))
        .take_while(|taken| *taken)
        .count()
}

#[test]
fn owner_alone_gets_three_quarters_and_at_least_one_place() {
    for (max, alone) in [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 3),
        (5, 3),
        (8, 6),
        (4_000, 3_000),
    ] {
        let mut pool = FairPool::new(max);
        assert_eq!(pool.max_alone(), alone, "of {max}");
        assert_eq!(take_all(&mut pool, A), alone, "of {max}");
    }
    let mut pool = FairPool::new(100).with_owner_max(20);
    assert_eq!((pool.max_alone(), take_all(&mut pool, A)), (20, 20));
}

#[test]
fn newcomer_gets_a_quarter_while_another_owner_hangs() {
    let mut pool = FairPool::new(8);
    take_all(&mut pool, A);
    assert_eq!(take_all(&mut pool, B), 2);
    assert_eq!((pool.in_use(), pool.held(A), pool.held(B)), (8, 6, 2));
    assert!(!pool.acquire(C), "all places are in use");
}

#[test]
fn released_place_goes_to_the_owner_that_holds_least_and_then_in_line() {
    let mut pool = FairPool::new(4);
    take_all(&mut pool, A);
    assert!(pool.acquire(B));
    let (first, second) = (pool.wait(A), pool.wait(A));
    let other = pool.wait(C);
    assert_eq!(pool.grant_next(), None);
    pool.release(A);
    assert_eq!(pool.grant_next(), Some((C, other)));
    assert_eq!(pool.grant_next(), None);
    pool.release(A);
    // A holds one place now, a quarter: the last free place is not for A.
    assert_eq!(pool.grant_next(), None);
    pool.release(B);
    assert_eq!(pool.grant_next(), Some((A, first)));
    assert!(pool.leave(A, second), "it was still waiting");
    assert!(!pool.leave(A, first), "it has a place");
    assert!(!pool.leave(C, second), "it belongs to another owner");
}

#[test]
fn owners_without_places_are_forgotten() {
    let mut pool = FairPool::new(4);
    assert!(pool.acquire(A));
    let ticket = pool.wait(B);
    pool.release(A);
    pool.leave(B, ticket);
    assert!(pool.owners.is_empty());
    pool.release(A);
    assert_eq!(pool.in_use(), 0, "there was nothing to release");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Takes a place, or waits for one.
    Call(u8),
    /// Ends the n-th call under way.
    End(usize),
    /// The n-th waiting call disconnects.
    Leave(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..5).prop_map(Step::Call),
        3 => (0usize..1_000).prop_map(Step::End),
        1 => (0usize..1_000).prop_map(Step::Leave),
    ]
}

/// A pool and what its calls know of it.
struct Calls {
    pool: FairPool<u8>,
    running: Vec<u8>,
    waiting: Vec<(u8, Ticket)>,
}

impl Calls {
    fn apply(&mut self, step: Step) {
        match step {
            Step::Call(owner) if self.pool.acquire(owner) => self.running.push(owner),
            Step::Call(owner) => self.waiting.push((owner, self.pool.wait(owner))),
            Step::End(n) if !self.running.is_empty() => {
                let ended = self.running.swap_remove(n % self.running.len());
                self.pool.release(ended);
                self.grant();
            }
            Step::Leave(n) if !self.waiting.is_empty() => {
                let (owner, ticket) = self.waiting.remove(n % self.waiting.len());
                assert!(self.pool.leave(owner, ticket));
            }
            Step::End(_) | Step::Leave(_) => {}
        }
    }

    fn grant(&mut self) {
        loop {
            let held = self.held();
            let least = self
                .waiting
                .iter()
                .map(|(owner, _)| held.get(owner).copied().unwrap_or(0))
                .min();
            let Some((owner, ticket)) = self.pool.grant_next() else {
                return;
            };
            assert_eq!(
                held.get(&owner).copied().unwrap_or(0),
                least.unwrap(),
                "least under way first"
            );
            let at = self
                .waiting
                .iter()
                .position(|(of, _)| *of == owner)
                .unwrap();
            assert_eq!(
                self.waiting.remove(at),
                (owner, ticket),
                "in the order of arrival"
            );
            self.running.push(owner);
        }
    }

    fn held(&self) -> BTreeMap<u8, usize> {
        let mut held = BTreeMap::new();
        for owner in &self.running {
            *held.entry(*owner).or_default() += 1;
        }
        held
    }

    fn check(&self) {
        let (max, held) = (self.pool.max(), self.held());
        let (quarter, open) = (max.div_ceil(4), max - max.div_ceil(4));
        assert_eq!(self.pool.in_use(), self.running.len());
        assert!(self.running.len() <= max, "never over the maximum");
        for (owner, held) in &held {
            assert_eq!(self.pool.held(*owner), *held);
            assert!(*held <= open.max(quarter), "no owner over three quarters");
        }
        // No waiter is left behind: a waiter may not take a place now.
        for (owner, _) in &self.waiting {
            assert!(!self.pool.clone().acquire(*owner), "a waiter was not woken");
        }
        // A newcomer gets a place unless all are in use, however many of one owner hang.
        assert_eq!(self.pool.clone().acquire(99), self.running.len() < max);
        for owner in 0..5 {
            let of = held.get(&owner).copied().unwrap_or(0);
            if of < quarter && self.running.len() < max {
                assert!(
                    self.pool.clone().acquire(owner),
                    "less than a quarter gets the next place"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn guarantees_hold_after_any_sequence(max in 1usize..40, steps in proptest::collection::vec(step(), 0..200)) {
        let mut calls = Calls { pool: FairPool::new(max), running: Vec::new(), waiting: Vec::new() };
        for step in steps {
            calls.apply(step);
            calls.check();
        }
        // When every call has ended, nothing is left.
        while !calls.running.is_empty() {
            calls.apply(Step::End(0));
            calls.check();
        }
        prop_assert!(calls.waiting.is_empty());
        prop_assert!(calls.pool.owners.is_empty());
    }
}
