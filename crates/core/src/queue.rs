//! The settings of a job queue and how they apply to jobs without settings of their own. Pure.

use crate::graph::NodeKind;
use crate::job::JobRetry;
use crate::lease::DEFAULT_LEASE;
use crate::limits::QUEUE_NAME_MAX_CHARS;
use crate::retry::Backoff;
use crate::text::{self, TextProblem};
use std::time::Duration;

/// The prefix of internal queues.
pub const RESERVED: &str = "leasehold:";
/// The queue of the `http` nodes of graphs.
pub const HTTP_NODES: &str = NodeKind::HTTP_QUEUE;
/// The queue of the `delay` nodes of graphs.
pub const DELAY_NODES: &str = NodeKind::DELAY_QUEUE;

/// Accepts the name of a queue that users may create and claim from.
pub fn check_user_queue(name: &str) -> Result<(), TextProblem> {
    text::check(name, QUEUE_NAME_MAX_CHARS)?;
    if name.starts_with(RESERVED) {
        return Err(TextProblem::Reserved);
    }
    Ok(())
}

/// The settings of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueSettings {
    /// How many of its jobs may run at once, over all workers; none is no limit.
    pub limit: Option<u32>,
    /// How many jobs of one group may run at once; none is no limit. Jobs without a group count as one group.
    pub group_limit: Option<u32>,
    /// Whether the queue is paused: claims return no jobs.
    pub paused: bool,
    /// Whether completed jobs and their results are kept until they are pruned. Failed jobs always are.
    pub keep_completed: bool,
    /// The lease of a claim that sets none.
    pub lease: Duration,
    /// The retry policy of jobs that set none.
    pub retry: JobRetry,
    /// The timeout of attempts of jobs that set none; none is no timeout.
    pub timeout: Option<Duration>,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            limit: None,
            group_limit: None,
            paused: false,
            keep_completed: true,
            lease: DEFAULT_LEASE,
            retry: JobRetry::default(),
            timeout: None,
        }
    }
}

impl QueueSettings {
    /// Returns the retry policy of a job with these settings of its own.
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
    fn retry_settings_of_a_job_override_those_of_its_queue() {
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
    fn default_queue_has_no_limit_keeps_completed_jobs_and_is_not_paused() {
        let settings = QueueSettings::default();
        assert_eq!((settings.limit, settings.timeout), (None, None));
        assert!(settings.keep_completed && !settings.paused);
        assert_eq!(settings.lease, Duration::from_secs(30));
    }
}
