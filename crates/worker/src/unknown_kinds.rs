//! Jobs of kinds without a handler: how long each waits until it is claimed again, and one warning per kind. Knows no store.

use crate::leased_job::LeasedJob;
use leasehold_core::job::JobEnd;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The first wait of a job, and the longest.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The random part of a wait, so that the jobs of a kind do not all become due at once.
const JITTER: f64 = 0.2;
/// The most kinds that are remembered. Jobs of further kinds wait for the longest time, without a warning.
const KINDS_MAX: usize = 1_000;

/// The kinds without a handler that this worker has claimed, and when it claimed the first job of each.
#[derive(Default)]
pub(crate) struct UnknownKinds(Mutex<HashMap<String, Instant>>);

impl UnknownKinds {
    /// Ends the claim of a job without a handler. The job is not failed, and has used no attempt: during a rolling deployment another worker has the
    /// handler. It waits, so that this worker does not claim it again and again.
    pub(crate) fn snooze(&self, job: &LeasedJob, worker: &str) -> JobEnd {
        let (wait, is_new) = self.wait(&job.claimed.kind, Instant::now());
        if is_new {
            tracing::warn!(kind = job.claimed.kind, queue = %job.queue, job = %job.claimed.id, worker,
                "no handler for this kind of job; its jobs wait for a worker that has one");
        }
        JobEnd::Snoozed(wait.mul_f64(1.0 - JITTER * fastrand::f64()))
    }

    /// Returns the wait for a job of this kind, and whether the kind is new. A wait is as long as the kind is known, so it doubles with each claim of a
    /// job, however many jobs the kind has.
    fn wait(&self, kind: &str, now: Instant) -> (Duration, bool) {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = kinds.get(kind) {
            let known_for = now.saturating_duration_since(*first);
            return (known_for.clamp(WAIT_MIN, WAIT_MAX), false);
        }
        if kinds.len() >= KINDS_MAX {
            return (WAIT_MAX, false);
        }
        kinds.insert(kind.to_owned(), now);
        (WAIT_MIN, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_grows_from_a_second_to_a_minute_and_only_the_first_job_is_new() {
        let kinds = UnknownKinds::default();
        let begin = Instant::now();
        let mut at = begin;
        let mut waits = Vec::new();
        for _ in 0..9 {
            let (wait, is_new) = kinds.wait("send", at);
            assert_eq!(is_new, waits.is_empty());
            waits.push(wait.as_secs());
            at += wait;
        }
        assert_eq!(waits, [1, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(kinds.wait("fold", at), (WAIT_MIN, true));
    }

    #[test]
    fn number_of_remembered_kinds_is_bounded() {
        let kinds = UnknownKinds::default();
        let now = Instant::now();
        for number in 0..KINDS_MAX {
            assert_eq!(kinds.wait(&number.to_string(), now), (WAIT_MIN, true));
        }
        assert_eq!(kinds.wait("one more", now), (WAIT_MAX, false));
        assert_eq!(kinds.0.lock().unwrap().len(), KINDS_MAX);
    }
}
