//! The settings of the services, and how they become their options. Their defaults are the services' own.

use super::Span;
use super::kind::Kind;
use super::known::{ANY, Known, SECOND, TICK, count, of, time};
use leasehold_core::limits::CLAIM_MAX_BATCH;
use leasehold_core::retry::Backoff;
use leasehold_runtime::{
    AuditorOptions, CancellerOptions, DispatchMode, DispatcherOptions, FollowerOptions,
    LockOptions, RecovererOptions, SweeperOptions,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What each setting of `[dispatch]` may be.
pub(super) const DISPATCH: &[Known] = &[
    of("dispatch.mode", Kind::OneOf(&["exclusive", "parallel"])),
    count("dispatch.batch_size", 1, CLAIM_MAX_BATCH as u64),
    count("dispatch.concurrency", 1, 10_000),
    time("dispatch.poll_interval", TICK),
    time("dispatch.linger", ANY),
    time("dispatch.claim_lease", SECOND),
    time("dispatch.start_timeout", TICK),
    count("dispatch.max_attempts", 1, 1_000),
    time("dispatch.backoff_base", TICK),
    time("dispatch.backoff_max", TICK),
    time("dispatch.lock_at_most_for", SECOND),
    time("dispatch.lock_at_least_for", ANY),
    time("dispatch.lock_retry", TICK),
    time("dispatch.drain_timeout", ANY),
];

/// How requests are admitted and started.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DispatchSettings {
    pub(crate) mode: Mode,
    pub(crate) batch_size: u32,
    pub(crate) concurrency: usize,
    pub(crate) poll_interval: Span,
    pub(crate) linger: Span,
    pub(crate) claim_lease: Span,
    pub(crate) start_timeout: Span,
    pub(crate) max_attempts: u32,
    pub(crate) backoff_base: Span,
    pub(crate) backoff_max: Span,
    pub(crate) lock_at_most_for: Span,
    pub(crate) lock_at_least_for: Span,
    pub(crate) lock_retry: Span,
    pub(crate) drain_timeout: Span,
}

/// Whether dispatchers of several instances work at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// At most one is active.
    Exclusive,
    /// All are.
    Parallel,
}

impl Default for DispatchSettings {
    fn default() -> Self {
        let options = DispatcherOptions::new("");
        Self {
            mode: Mode::Exclusive,
            batch_size: options.batch_size,
            concurrency: options.concurrency,
            poll_interval: Span(options.poll_interval),
            linger: Span(options.linger),
            claim_lease: Span(options.claim_lease),
            start_timeout: Span(options.start_timeout),
            max_attempts: options.max_attempts,
            backoff_base: Span(options.backoff.base),
            backoff_max: Span(options.backoff.max),
            lock_at_most_for: Span(options.lock.at_most_for),
            lock_at_least_for: Span(options.lock.at_least_for),
            lock_retry: Span(options.lock_retry),
            drain_timeout: Span(options.drain_timeout),
        }
    }
}

impl DispatchSettings {
    pub(super) fn options(&self, owner: &str) -> DispatcherOptions {
        DispatcherOptions {
            mode: match self.mode {
                Mode::Exclusive => DispatchMode::Exclusive,
                Mode::Parallel => DispatchMode::Parallel,
            },
            batch_size: self.batch_size,
            concurrency: self.concurrency,
            poll_interval: self.poll_interval.0,
            linger: self.linger.0,
            claim_lease: self.claim_lease.0,
            start_timeout: self.start_timeout.0,
            max_attempts: self.max_attempts,
            backoff: Backoff {
                base: self.backoff_base.0,
                max: self.backoff_max.0,
                ..Backoff::default()
            },
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                at_least_for: self.lock_at_least_for.0,
            },
            lock_retry: self.lock_retry.0,
            drain_timeout: self.drain_timeout.0,
            ..DispatcherOptions::new(owner)
        }
    }
}

/// What each setting of `[recovery]` may be.
pub(super) const RECOVERY: &[Known] = &[
    time("recovery.interval", TICK),
    count("recovery.batch", 1, 10_000),
    time("recovery.lock_at_most_for", SECOND),
    time("recovery.lock_at_least_for", ANY),
];

/// How expired claims are taken back.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RecoverySettings {
    pub(crate) interval: Span,
    pub(crate) batch: u32,
    pub(crate) lock_at_most_for: Span,
    pub(crate) lock_at_least_for: Span,
}

impl Default for RecoverySettings {
    fn default() -> Self {
        let options = RecovererOptions::default();
        Self {
            interval: Span(options.interval),
            batch: options.batch,
            lock_at_most_for: Span(options.lock.at_most_for),
            lock_at_least_for: Span(options.lock.at_least_for),
        }
    }
}

impl RecoverySettings {
    pub(super) fn options(&self) -> RecovererOptions {
        RecovererOptions {
            interval: self.interval.0,
            batch: self.batch,
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                at_least_for: self.lock_at_least_for.0,
            },
            ..RecovererOptions::default()
        }
    }
}

/// What each setting of `[follow]` may be.
pub(super) const FOLLOW: &[Known] = &[
    time("follow.interval", TICK),
    time("follow.overlap", ANY),
    time("follow.wide_overlap", ANY),
    time("follow.wide_interval", TICK),
    time("follow.catch_up", ANY),
    count("follow.concurrency", 1, 1_000),
    time("follow.lock_at_most_for", SECOND),
];

/// How ended executions are found.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FollowSettings {
    pub(crate) interval: Span,
    pub(crate) overlap: Span,
    pub(crate) wide_overlap: Span,
    pub(crate) wide_interval: Span,
    pub(crate) catch_up: Span,
    pub(crate) concurrency: usize,
    pub(crate) lock_at_most_for: Span,
}

impl Default for FollowSettings {
    fn default() -> Self {
        let options = FollowerOptions::default();
        Self {
            interval: Span(options.interval),
            overlap: Span(options.overlap),
            wide_overlap: Span(options.wide_overlap),
            wide_interval: Span(options.wide_interval),
            catch_up: Span(options.catch_up),
            concurrency: options.concurrency,
            lock_at_most_for: Span(options.lock.at_most_for),
        }
    }
}

impl FollowSettings {
    pub(super) fn options(&self) -> FollowerOptions {
        FollowerOptions {
            interval: self.interval.0,
            overlap: self.overlap.0,
            wide_overlap: self.wide_overlap.0,
            wide_interval: self.wide_interval.0,
            catch_up: self.catch_up.0,
            concurrency: self.concurrency,
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                at_least_for: Duration::ZERO,
            },
        }
    }
}

/// What each setting of `[sweep]` may be.
pub(super) const SWEEP: &[Known] = &[
    time("sweep.interval", TICK),
    count("sweep.rate", 1, 1_000),
    count("sweep.concurrency", 1, 1_000),
    time("sweep.lost_after", SECOND),
    count("sweep.lost_at_most", 0, 1_000_000_000),
    time("sweep.lock_at_most_for", SECOND),
];

/// How open executions are swept.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SweepSettings {
    pub(crate) interval: Span,
    pub(crate) rate: u32,
    pub(crate) concurrency: usize,
    pub(crate) lost_after: Span,
    pub(crate) lost_at_most: usize,
    pub(crate) lock_at_most_for: Span,
}

impl Default for SweepSettings {
    fn default() -> Self {
        let options = SweeperOptions::default();
        Self {
            interval: Span(options.interval),
            rate: options.rate,
            concurrency: options.concurrency,
            lost_after: Span(options.lost_after),
            lost_at_most: options.lost_at_most,
            lock_at_most_for: Span(options.lock.at_most_for),
        }
    }
}

impl SweepSettings {
    pub(super) fn options(&self) -> SweeperOptions {
        SweeperOptions {
            interval: self.interval.0,
            rate: self.rate,
            concurrency: self.concurrency,
            lost_after: self.lost_after.0,
            lost_at_most: self.lost_at_most,
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                at_least_for: Duration::ZERO,
            },
            ..SweeperOptions::default()
        }
    }
}

/// What each setting of `[drift]` may be.
pub(super) const DRIFT: &[Known] = &[
    time("drift.interval", TICK),
    time("drift.lock_at_most_for", SECOND),
];

/// How drift is looked for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DriftSettings {
    pub(crate) interval: Span,
    pub(crate) lock_at_most_for: Span,
}

impl Default for DriftSettings {
    fn default() -> Self {
        let options = AuditorOptions::default();
        Self {
            interval: Span(options.interval),
            lock_at_most_for: Span(options.lock.at_most_for),
        }
    }
}

impl DriftSettings {
    pub(super) fn options(&self) -> AuditorOptions {
        AuditorOptions {
            interval: self.interval.0,
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                at_least_for: Duration::ZERO,
            },
            ..AuditorOptions::default()
        }
    }
}

/// What each setting of `[cancel]` may be.
pub(super) const CANCEL: &[Known] = &[
    time("cancel.interval", TICK),
    count("cancel.batch", 1, 1_000),
    count("cancel.concurrency", 1, 1_000),
];

/// How cancellations are delivered.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CancelSettings {
    pub(crate) interval: Span,
    pub(crate) batch: u32,
    pub(crate) concurrency: usize,
}

impl Default for CancelSettings {
    fn default() -> Self {
        let options = CancellerOptions::default();
        Self {
            interval: Span(options.interval),
            batch: options.batch,
            concurrency: options.concurrency,
        }
    }
}

impl CancelSettings {
    pub(super) fn options(&self) -> CancellerOptions {
        CancellerOptions {
            interval: self.interval.0,
            batch: self.batch,
            concurrency: self.concurrency,
        }
    }
}
