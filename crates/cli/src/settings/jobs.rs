//! The settings of what looks after jobs, and of how long ends are kept.

use super::Span;
use super::known::{Known, SECOND, TICK, count, kept, time};
use leasehold_runtime::{JobSweeperOptions, LockOptions, PrunerOptions};
use serde::{Deserialize, Serialize};

/// What each setting of `[jobs]` may be.
pub(super) const JOBS: &[Known] = &[
    time("jobs.sweep_interval", TICK),
    count("jobs.sweep_batch", 1, 10_000),
];

/// How jobs of dead workers are taken back.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JobSettings {
    pub(crate) sweep_interval: Span,
    pub(crate) sweep_batch: u32,
}

impl Default for JobSettings {
    fn default() -> Self {
        let options = JobSweeperOptions::default();
        Self {
            sweep_interval: Span(options.interval),
            sweep_batch: options.batch,
        }
    }
}

impl JobSettings {
    pub(super) fn options(&self) -> JobSweeperOptions {
        JobSweeperOptions {
            interval: self.sweep_interval.0,
            batch: self.sweep_batch,
        }
    }
}

/// What each setting of `[retention]` may be.
pub(super) const RETENTION: &[Known] = &[
    kept("retention.completed"),
    kept("retention.failed"),
    time("retention.interval", TICK),
    count("retention.batch", 1, 10_000),
    time("retention.lock_at_most_for", SECOND),
];

/// How long requests and jobs are kept after their end.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionSettings {
    pub(crate) completed: Span,
    pub(crate) failed: Span,
    pub(crate) interval: Span,
    pub(crate) batch: u32,
    pub(crate) lock_at_most_for: Span,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        let options = PrunerOptions::default();
        Self {
            completed: Span(options.completed),
            failed: Span(options.failed),
            interval: Span(options.interval),
            batch: options.batch,
            lock_at_most_for: Span(options.lock.at_most_for),
        }
    }
}

impl RetentionSettings {
    pub(super) fn options(&self) -> PrunerOptions {
        PrunerOptions {
            completed: self.completed.0,
            failed: self.failed.0,
            interval: self.interval.0,
            batch: self.batch,
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                ..LockOptions::default()
            },
        }
    }
}
