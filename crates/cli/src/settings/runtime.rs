//! The settings of the background services. Their defaults are the services' own.

use super::HumanDuration;
use super::kind::SettingKind;
use super::registry::{ANY, SECOND, SettingSpec, TICK, count, of, time};
use leasehold_core::limits::CLAIM_MAX_BATCH;
use leasehold_core::retry::Backoff;
use leasehold_runtime::{
    CancellerOptions, DispatchMode, DispatcherOptions, DriftCheckerOptions, FullSweepOptions,
    LockOptions, ReconcilerOptions, RecovererOptions,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The settings of `[dispatch]` and their allowed values.
pub(super) const DISPATCH: &[SettingSpec] = &[
    of(
        "dispatch.mode",
        SettingKind::OneOf(&["exclusive", "parallel"]),
    ),
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

/// The dispatcher.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DispatchSettings {
    pub(crate) mode: Mode,
    pub(crate) batch_size: u32,
    pub(crate) concurrency: usize,
    pub(crate) poll_interval: HumanDuration,
    pub(crate) linger: HumanDuration,
    pub(crate) claim_lease: HumanDuration,
    pub(crate) start_timeout: HumanDuration,
    pub(crate) max_attempts: u32,
    pub(crate) backoff_base: HumanDuration,
    pub(crate) backoff_max: HumanDuration,
    pub(crate) lock_at_most_for: HumanDuration,
    pub(crate) lock_at_least_for: HumanDuration,
    pub(crate) lock_retry: HumanDuration,
    pub(crate) drain_timeout: HumanDuration,
}

/// Whether the dispatchers of several instances run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// One active dispatcher.
    Exclusive,
    /// All dispatchers are active.
    Parallel,
}

impl Default for DispatchSettings {
    fn default() -> Self {
        let options = DispatcherOptions::new("");
        Self {
            mode: Mode::Exclusive,
            batch_size: options.batch_size,
            concurrency: options.concurrency,
            poll_interval: HumanDuration(options.poll_interval),
            linger: HumanDuration(options.linger),
            claim_lease: HumanDuration(options.claim_lease),
            start_timeout: HumanDuration(options.start_timeout),
            max_attempts: options.max_attempts,
            backoff_base: HumanDuration(options.backoff.base),
            backoff_max: HumanDuration(options.backoff.max),
            lock_at_most_for: HumanDuration(options.lock.at_most_for),
            lock_at_least_for: HumanDuration(options.lock.at_least_for),
            lock_retry: HumanDuration(options.lock_retry),
            drain_timeout: HumanDuration(options.drain_timeout),
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

/// The settings of `[recovery]` and their allowed values.
pub(super) const RECOVERY: &[SettingSpec] = &[
    time("recovery.interval", TICK),
    count("recovery.batch", 1, 10_000),
    time("recovery.lock_at_most_for", SECOND),
    time("recovery.lock_at_least_for", ANY),
];

/// The recoverer, which releases expired claims.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RecoverySettings {
    pub(crate) interval: HumanDuration,
    pub(crate) batch: u32,
    pub(crate) lock_at_most_for: HumanDuration,
    pub(crate) lock_at_least_for: HumanDuration,
}

impl Default for RecoverySettings {
    fn default() -> Self {
        let options = RecovererOptions::default();
        Self {
            interval: HumanDuration(options.interval),
            batch: options.batch,
            lock_at_most_for: HumanDuration(options.lock.at_most_for),
            lock_at_least_for: HumanDuration(options.lock.at_least_for),
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

/// The settings of `[follow]` and their allowed values.
pub(super) const FOLLOW: &[SettingSpec] = &[
    time("follow.interval", TICK),
    time("follow.overlap", ANY),
    time("follow.wide_overlap", ANY),
    time("follow.wide_interval", TICK),
    time("follow.catch_up", ANY),
    count("follow.concurrency", 1, 1_000),
    time("follow.lock_at_most_for", SECOND),
];

/// The reconciler, which finds finished executions.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FollowSettings {
    pub(crate) interval: HumanDuration,
    pub(crate) overlap: HumanDuration,
    pub(crate) wide_overlap: HumanDuration,
    pub(crate) wide_interval: HumanDuration,
    pub(crate) catch_up: HumanDuration,
    pub(crate) concurrency: usize,
    pub(crate) lock_at_most_for: HumanDuration,
}

impl Default for FollowSettings {
    fn default() -> Self {
        let options = ReconcilerOptions::default();
        Self {
            interval: HumanDuration(options.interval),
            overlap: HumanDuration(options.overlap),
            wide_overlap: HumanDuration(options.wide_overlap),
            wide_interval: HumanDuration(options.wide_interval),
            catch_up: HumanDuration(options.catch_up),
            concurrency: options.concurrency,
            lock_at_most_for: HumanDuration(options.lock.at_most_for),
        }
    }
}

impl FollowSettings {
    pub(super) fn options(&self) -> ReconcilerOptions {
        ReconcilerOptions {
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

/// The settings of `[sweep]` and their allowed values.
pub(super) const SWEEP: &[SettingSpec] = &[
    time("sweep.interval", TICK),
    count("sweep.rate", 1, 1_000),
    count("sweep.concurrency", 1, 1_000),
    time("sweep.lost_after", SECOND),
    count("sweep.lost_at_most", 0, 1_000_000_000),
    time("sweep.lock_at_most_for", SECOND),
];

/// The full sweep over open executions.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SweepSettings {
    pub(crate) interval: HumanDuration,
    pub(crate) rate: u32,
    pub(crate) concurrency: usize,
    pub(crate) lost_after: HumanDuration,
    pub(crate) lost_at_most: usize,
    pub(crate) lock_at_most_for: HumanDuration,
}

impl Default for SweepSettings {
    fn default() -> Self {
        let options = FullSweepOptions::default();
        Self {
            interval: HumanDuration(options.interval),
            rate: options.rate,
            concurrency: options.concurrency,
            lost_after: HumanDuration(options.lost_after),
            lost_at_most: options.lost_at_most,
            lock_at_most_for: HumanDuration(options.lock.at_most_for),
        }
    }
}

impl SweepSettings {
    pub(super) fn options(&self) -> FullSweepOptions {
        FullSweepOptions {
            interval: self.interval.0,
            rate: self.rate,
            concurrency: self.concurrency,
            lost_after: self.lost_after.0,
            lost_at_most: self.lost_at_most,
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                at_least_for: Duration::ZERO,
            },
            ..FullSweepOptions::default()
        }
    }
}

/// The settings of `[drift]` and their allowed values.
pub(super) const DRIFT: &[SettingSpec] = &[
    time("drift.interval", TICK),
    time("drift.lock_at_most_for", SECOND),
];

/// The drift check.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DriftSettings {
    pub(crate) interval: HumanDuration,
    pub(crate) lock_at_most_for: HumanDuration,
}

impl Default for DriftSettings {
    fn default() -> Self {
        let options = DriftCheckerOptions::default();
        Self {
            interval: HumanDuration(options.interval),
            lock_at_most_for: HumanDuration(options.lock.at_most_for),
        }
    }
}

impl DriftSettings {
    pub(super) fn options(&self) -> DriftCheckerOptions {
        DriftCheckerOptions {
            interval: self.interval.0,
            lock: LockOptions {
                at_most_for: self.lock_at_most_for.0,
                at_least_for: Duration::ZERO,
            },
            ..DriftCheckerOptions::default()
        }
    }
}

/// The settings of `[cancel]` and their allowed values.
pub(super) const CANCEL: &[SettingSpec] = &[
    time("cancel.interval", TICK),
    count("cancel.batch", 1, 1_000),
    count("cancel.concurrency", 1, 1_000),
];

/// The canceller.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CancelSettings {
    pub(crate) interval: HumanDuration,
    pub(crate) batch: u32,
    pub(crate) concurrency: usize,
}

impl Default for CancelSettings {
    fn default() -> Self {
        let options = CancellerOptions::default();
        Self {
            interval: HumanDuration(options.interval),
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
