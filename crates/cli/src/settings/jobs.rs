//! The settings of the job sweeper and of retention.

use super::HumanDuration;
use super::registry::{SECOND, SettingSpec, TICK, count, retention, time};
use leasehold_runtime::{JobSweeperOptions, LockOptions, PrunerOptions};
use serde::{Deserialize, Serialize};

/// The settings of `[jobs]` and their allowed values.
pub(super) const JOBS: &[SettingSpec] = &[
    time("jobs.sweep_interval", TICK),
    count("jobs.sweep_batch", 1, 10_000),
];

/// The job sweeper, which requeues jobs with expired leases.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JobSettings {
    pub(crate) sweep_interval: HumanDuration,
    pub(crate) sweep_batch: u32,
}

impl Default for JobSettings {
    fn default() -> Self {
        let options = JobSweeperOptions::default();
        Self {
            sweep_interval: HumanDuration(options.interval),
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

/// The settings of `[retention]` and their allowed values.
pub(super) const RETENTION: &[SettingSpec] = &[
    retention("retention.completed"),
    retention("retention.failed"),
    retention("retention.audit"),
    time("retention.interval", TICK),
    count("retention.batch", 1, 10_000),
    time("retention.lock_at_most_for", SECOND),
];

/// Retention of finished requests and jobs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionSettings {
    pub(crate) completed: HumanDuration,
    pub(crate) failed: HumanDuration,
    pub(crate) audit: HumanDuration,
    pub(crate) interval: HumanDuration,
    pub(crate) batch: u32,
    pub(crate) lock_at_most_for: HumanDuration,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        let options = PrunerOptions::default();
        Self {
            completed: HumanDuration(options.completed),
            failed: HumanDuration(options.failed),
            audit: HumanDuration(options.audit),
            interval: HumanDuration(options.interval),
            batch: options.batch,
            lock_at_most_for: HumanDuration(options.lock.at_most_for),
        }
    }
}

impl RetentionSettings {
    pub(super) fn options(&self) -> PrunerOptions {
        PrunerOptions {
            completed: self.completed.0,
            failed: self.failed.0,
            audit: self.audit.0,
            interval: self.interval.0,
            batch: self.batch,
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                ..LockOptions::default()
            },
        }
    }
}
