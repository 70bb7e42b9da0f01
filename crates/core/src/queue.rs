//! The typed settings of a queue of jobs, and what they mean where a job does not say otherwise. Pure.

use crate::graph::NodeKind;
use crate::job::JobRetry;
use crate::lease::DEFAULT_LEASE;
use crate::limits::QUEUE_NAME_MAX_CHARS;
use crate::retry::Backoff;
use crate::text::{self, TextProblem};
use std::time::Duration;

/// What the names of Leasehold's own queues begin with.
pub const RESERVED: &str = "leasehold:";
/// The queue of the `http` nodes of graphs.
pub const HTTP_NODES: &str = NodeKind::HTTP_QUEUE;
/// The queue of the `delay` nodes of graphs.
pub const DELAY_NODES: &str = NodeKind::DELAY_QUEUE;

/// Accepts the name of a queue that others than Leasehold itself may work with.
pub fn check_open(name: &str) -> Result<(), TextProblem> {
    text::check(name, QUEUE_NAME_MAX_CHARS)?;
    if name.starts_with(RESERVED) {
        return Err(TextProblem::Reserved);
    }
    Ok(())
}

/// What holds for every job of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueSettings {
    /// How many of its jobs may run at once among all workers; none is no limit.
    pub limit: Option<u32>,
    /// Whether workers get nothing from it.
    pub paused: bool,
    /// Whether completed jobs are kept, with their results, until they are pruned. Failed ones always are.
    pub keep_completed: bool,
    /// How long a claim lasts where the worker does not say.
    pub lease: Duration,
    /// How often and when a job is tried again where it does not say itself.
    pub retry: JobRetry,
    /// How long an attempt may take where the job does not say; none is no limit.
    pub timeout: Option<Duration>,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            limit: None,
            paused: false,
            keep_completed: true,
            lease: DEFAULT_LEASE,
            retry: JobRetry::default(),
            timeout: None,
        }
    }
}

impl QueueSettings {
    /// The retry policy of a job that asked for these.
    pub fn retry_of(&self, max_attempts: Option<u32>, backoff: Option<Backoff>) -> JobRetry {
        JobRetry {
            max_attempts: max_attempts.unwrap_or(self.retry.max_attempts),
            backoff: backoff.unwrap_or(self.retry.backoff),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobs_own_wish_goes_before_its_queues() {
        let settings = QueueSettings::default();
        assert_eq!(settings.retry_of(None, None), JobRetry::default());
        let own = Backoff {
            base: Duration::from_secs(7),
            ..Backoff::default()
        };
        let retry = settings.retry_of(Some(3), None);
        assert_eq!((retry.max_attempts, retry.backoff), (3, Backoff::default()));
        let retry = settings.retry_of(None, Some(own));
        assert_eq!((retry.max_attempts, retry.backoff), (25, own));
    }

    #[test]
    fn an_ordinary_queue_has_no_limit_keeps_everything_and_runs() {
        let settings = QueueSettings::default();
        assert_eq!((settings.limit, settings.timeout), (None, None));
        assert!(settings.keep_completed && !settings.paused);
        assert_eq!(settings.lease, Duration::from_secs(30));
    }
}
