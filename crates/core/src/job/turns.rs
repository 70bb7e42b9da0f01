//! Whose job is next among the groups of a queue: whichever has least under way, then in turn. Knows no jobs, no store and no clock.
//!
//! Without [`Places`] nothing counts as under way before the claim, so groups give one job each in turn, and a group without further jobs leaves the rest to the others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The places of a caller that runs jobs of several groups, and how many of them are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// How many places there are.
    pub max: u32,
    /// How many are in use, by all groups.
    pub in_use: u32,
}

impl Places {
    /// Returns whether a group may take one of these places; it holds `held` of them. The last quarter is kept for groups that hold less than a quarter, as
    /// in [`FairPool`](crate::fair_pool::FairPool).
    pub fn may_take(self, held: u32) -> bool {
        let quarter = self.max.div_ceil(4);
        self.in_use < self.max && (self.in_use < self.max - quarter || held < quarter)
    }
}

/// A group in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// What counts as under way.
    held: u32,
    /// The group's place in the round.
    group: usize,
}

/// The groups of a round that may have another job.
#[derive(Clone, Debug)]
pub struct Turns {
    places: Option<Places>,
    waiting: BinaryHeap<Reverse<Turn>>,
}

impl Turns {
    /// Starts with the groups of a round, in the order of their turns. `held` says how many places each of them holds.
    pub fn new(held: impl IntoIterator<Item = u32>, places: Option<Places>) -> Self {
        let waiting = held.into_iter().enumerate();
        Self {
            places,
            waiting: waiting
                .map(|(group, held)| Reverse(Turn { held, group }))
                .collect(),
        }
    }

    /// Returns the group whose turn it is; none if none may give a job. It leaves the round unless [`gave`](Self::gave) says that it has more.
    pub fn next_turn(&mut self) -> Option<NextTurn> {
        // The group that holds least is first, so if it may not take a place, no other may.
        let Reverse(turn) = *self.waiting.peek()?;
        if self
            .places
            .is_some_and(|places| !places.may_take(turn.held))
        {
            return None;
        }
        self.waiting.pop();
        Some(NextTurn(turn))
    }

    /// Records that the group gave a job. `more`: whether it may give another.
    pub fn gave(&mut self, NextTurn(turn): NextTurn, more: bool) {
        if let Some(places) = &mut self.places {
            places.in_use += 1;
        }
        if more {
            self.waiting.push(Reverse(Turn {
                held: turn.held + 1,
                ..turn
            }));
        }
    }
}

/// The group whose turn it is.
#[derive(Debug)]
#[must_use = "a turn that is dropped takes its group out of the round"]
pub struct NextTurn(Turn);

impl NextTurn {
    /// Returns the place of the group in the round, from 0.
    pub fn group(&self) -> usize {
        self.0.group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Takes up to `max` jobs from groups that hold and have these, and returns whose they are.
    fn order(max: usize, groups: &[(u32, u32)], places: Option<Places>) -> Vec<usize> {
        let mut turns = Turns::new(groups.iter().map(|(held, _)| *held), places);
        let mut left: Vec<u32> = groups.iter().map(|(_, jobs)| *jobs).collect();
        let mut order = Vec::new();
        while order.len() < max
            && let Some(turn) = turns.next_turn()
        {
            let group = turn.group();
            if left[group] > 0 {
                left[group] -= 1;
                order.push(group);
                turns.gave(turn, left[group] > 0);
            }
        }
        order
    }

    fn places(max: u32, groups: &[(u32, u32)]) -> Option<Places> {
        let in_use = groups.iter().map(|(held, _)| *held).sum();
        Some(Places { max, in_use })
    }

    #[test]
    fn groups_give_one_job_each_in_turn() {
        assert_eq!(
            order(7, &[(0, 9), (0, 9), (0, 9)], None),
            [0, 1, 2, 0, 1, 2, 0]
        );
    }

    #[test]
    fn what_a_short_group_leaves_goes_round_again() {
        assert_eq!(
            order(7, &[(0, 1), (0, 9), (0, 2)], None),
            [0, 1, 2, 1, 2, 1, 1]
        );
    }

    #[test]
    fn group_without_jobs_is_passed_over() {
        assert_eq!(order(2, &[(0, 0), (0, 3)], None), [1, 1]);
    }

    #[test]
    fn group_with_least_under_way_gets_the_next_place() {
        let groups = [(3, 9), (0, 9), (1, 9)];
        assert_eq!(order(6, &groups, places(64, &groups)), [1, 1, 2, 1, 2, 0]);
    }

    #[test]
    fn group_alone_uses_three_quarters_of_the_places() {
        let groups = [(0, 1_000)];
        assert_eq!(order(1_000, &groups, places(64, &groups)).len(), 48);
    }

    #[test]
    fn last_quarter_is_kept_for_groups_that_hold_less_than_a_quarter() {
        let groups = [(48, 1_000), (0, 1_000)];
        assert_eq!(order(64, &groups, places(64, &groups)), vec![1; 16]);
        let full = [(48, 1_000), (16, 1_000)];
        assert_eq!(order(64, &full, places(64, &full)), [0; 0]);
    }

    #[test]
    fn single_place_is_used() {
        assert_eq!(order(9, &[(0, 5)], places(1, &[])), [0]);
    }

    proptest! {
        #[test]
        fn no_group_gives_two_jobs_more_than_another_that_has_more(
            jobs in prop::collection::vec(0_u32..20, 1..12),
            max in 0_usize..200,
        ) {
            let groups: Vec<(u32, u32)> = jobs.iter().map(|jobs| (0, *jobs)).collect();
            let order = order(max, &groups, None);
            let total: u32 = jobs.iter().sum();
            prop_assert_eq!(order.len(), max.min(total as usize));
            let given = |group: usize| order.iter().filter(|g| **g == group).count();
            for (one, has) in jobs.iter().enumerate() {
                if given(one) < *has as usize {
                    for other in 0..jobs.len() {
                        prop_assert!(given(other) <= given(one) + 1);
                    }
                }
            }
        }

        #[test]
        fn places_are_never_exceeded_and_the_last_quarter_is_kept(
            jobs in prop::collection::vec(0_u32..100, 1..12),
            max in 4_u32..100,
        ) {
            let groups: Vec<(u32, u32)> = jobs.iter().map(|jobs| (0, *jobs)).collect();
            let taken = order(usize::MAX, &groups, places(max, &groups));
            prop_assert!(taken.len() <= max as usize);
            let quarter = max.div_ceil(4) as usize;
            let alone = jobs.iter().filter(|jobs| **jobs > 0).count() == 1;
            prop_assert!(!alone || taken.len() <= max as usize - quarter);
            // What a group holds beyond a quarter, it took while the last quarter was free.
            for group in 0..groups.len() {
                let mut own = 0;
                for (in_use, taker) in taken.iter().enumerate() {
                    own += usize::from(*taker == group);
                    prop_assert!(*taker != group || own <= quarter || in_use < max as usize - quarter);
                }
            }
        }
    }
}
