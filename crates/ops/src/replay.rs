//! Replays while a quota is full: the items of a call whose keys are held are answered with their holders, and only the others need room.

use crate::enqueue::EnqueueError;
use leasehold_core::JobId;
use leasehold_store::job::{EnqueuedJob, NewJob};
use leasehold_store::request::{EnqueuedRequest, KeyHolder, NewRequest};
use std::collections::HashSet;
use std::hash::Hash;

/// The answers that are known, in the order of the call. Those of new items are none.
pub(crate) struct Replay<A> {
    answers: Vec<Option<A>>,
}

impl<A> Replay<A> {
    /// Returns the positions of the new items.
    pub(crate) fn new_positions(&self) -> Vec<usize> {
        let answers = self.answers.iter().enumerate();
        let new = answers.filter(|(_, answer)| answer.is_none());
        new.map(|(position, _)| position).collect()
    }

    /// Whether no item is answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.answers.iter().all(Option::is_none)
    }

    /// Returns all answers: the known ones, and those of the new items.
    pub(crate) fn with(self, new: Vec<A>) -> Vec<A> {
        let mut new = new.into_iter();
        let answers = self.answers.into_iter();
        let all = answers.filter_map(|answer| answer.or_else(|| new.next()));
        all.collect()
    }
}

/// Returns what is known of a call of requests. Fails if a request with other params holds a key.
pub(crate) fn of_requests(
    requests: &[NewRequest],
    holders: &[Option<KeyHolder>],
) -> Result<Replay<EnqueuedRequest>, EnqueueError> {
    let answer = |(new, holder): (&NewRequest, &Option<KeyHolder>)| match *holder {
        Some(KeyHolder {
            request,
            is_same: true,
        }) => Ok(Some(EnqueuedRequest {
            id: request,
            inserted: false,
        })),
        Some(KeyHolder { request, .. }) => {
            let key = new.idempotency.as_ref().map(|held| held.key.clone());
            Err(EnqueueError::KeyConflict {
                key: key.unwrap_or_default(),
                held_by: request,
            })
        }
        None => Ok(None),
    };
    let answers = requests.iter().zip(holders).map(answer);
    Ok(Replay {
        answers: answers.collect::<Result<_, _>>()?,
    })
}

/// Returns what is known of a call of jobs.
pub(crate) fn of_jobs(holders: &[Option<JobId>]) -> Replay<EnqueuedJob> {
    let existing = |id| EnqueuedJob { id, existing: true };
    let answers = holders.iter().map(|holder| holder.map(existing));
    Replay {
        answers: answers.collect(),
    }
}

/// Returns the items at these rising positions.
pub(crate) fn only<T>(items: Vec<T>, positions: &[usize]) -> Vec<T> {
    let mut wanted = positions.iter().copied().peekable();
    let items = items.into_iter().enumerate();
    let chosen = items.filter(|(at, _)| wanted.next_if_eq(at).is_some());
    chosen.map(|(_, item)| item).collect()
}

/// Returns the first item of each key, and every item without one: the items that a store inserts.
pub(crate) fn first_uses<'a, T, K: Eq + Hash>(
    items: &'a [T],
    key: impl Fn(&'a T) -> Option<K>,
) -> impl Iterator<Item = &'a T> {
    let mut used = HashSet::new();
    let is_first = move |item: &&'a T| key(item).is_none_or(|key| used.insert(key));
    items.iter().filter(is_first)
}

/// Returns the idempotency key of a request.
pub(crate) fn idempotency_key(new: &NewRequest) -> Option<&str> {
    new.idempotency.as_ref().map(|held| held.key.as_str())
}

/// Returns the queue and the deduplication key of a job.
pub(crate) fn dedup_key(job: &NewJob) -> Option<(&str, &str)> {
    let dedup = job.dedup.as_ref()?;
    Some((&job.queue, &dedup.key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_keep_the_order_of_the_call() {
        let replay = Replay {
            answers: vec![None, Some("b"), None, Some("d")],
        };
        assert!(!replay.is_empty());
        let new = replay.new_positions();
        assert_eq!(new, [0, 2]);
        assert_eq!(only(vec![1, 2, 3, 4], &new), [1, 3]);
        assert_eq!(replay.with(vec!["a", "c"]), ["a", "b", "c", "d"]);
        let none: Replay<u8> = Replay {
            answers: vec![None, None],
        };
        assert!(none.is_empty());
    }

    #[test]
    fn later_uses_of_a_key_are_left_out() {
        let items = [Some("a"), None, Some("b"), Some("a"), None];
        let first: Vec<_> = first_uses(&items, |item| *item).collect();
        assert_eq!(first, [&Some("a"), &None, &Some("b"), &None]);
    }
}
