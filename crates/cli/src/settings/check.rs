//! Numbers that cannot work, refused at the start and by name.

use super::Span;
use anyhow::{Result, bail};
use leasehold_core::limits::{CLAIM_MAX_BATCH, NODE_ID_MAX_CHARS};
use std::time::Duration;

/// Longer is a slip of the pen.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// What is kept for longer is kept for ever; more is no date.
const LONGEST_KEPT: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// Refuses a number out of bounds.
pub(super) fn count(name: &str, value: u64, least: u64, most: u64) -> Result<()> {
    if !(least..=most).contains(&value) {
        bail!("{name}: must be from {least} to {most}, is {value}");
    }
    Ok(())
}

/// Refuses a length of time out of bounds.
pub(super) fn time(name: &str, value: Span, least: Duration) -> Result<()> {
    if value.0 < least {
        bail!("{name}: must be at least {least:?}");
    }
    if value.0 > LONGEST {
        bail!("{name}: must be at most a day");
    }
    Ok(())
}

impl super::Settings {
    /// Refuses numbers that cannot work, by name.
    pub(super) fn check(&self) -> Result<()> {
        self.check_counts()?;
        self.check_times()?;
        self.server.check()?;
        self.instance.check()?;
        self.embedded.check()?;
        self.http_nodes.outbound()?;
        self.worker.check()?;
        let temporal = self.temporal.call_timeout.0 + self.temporal.connect_timeout.0;
        if self.dispatch.start_timeout.0 <= temporal {
            bail!(
                "dispatch.start_timeout: must be longer than temporal.connect_timeout and temporal.call_timeout together, which pass first"
            );
        }
        for (name, value) in [
            (
                "temporal.graph_workflow_type",
                &self.temporal.graph_workflow_type,
            ),
            ("temporal.graph_task_queue", &self.temporal.graph_task_queue),
        ] {
            if let Err(problem) = leasehold_core::text::check(value, NODE_ID_MAX_CHARS) {
                bail!("{name}: {problem}");
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<()> {
        let dispatch = &self.dispatch;
        let counts = [
            (
                "dispatch.batch_size",
                u64::from(dispatch.batch_size),
                u64::from(CLAIM_MAX_BATCH),
            ),
            ("dispatch.concurrency", dispatch.concurrency as u64, 10_000),
            (
                "dispatch.max_attempts",
                u64::from(dispatch.max_attempts),
                1_000,
            ),
            ("recovery.batch", u64::from(self.recovery.batch), 10_000),
            ("follow.concurrency", self.follow.concurrency as u64, 1_000),
            ("sweep.rate", u64::from(self.sweep.rate), 1_000),
            ("sweep.concurrency", self.sweep.concurrency as u64, 1_000),
            ("cancel.batch", u64::from(self.cancel.batch), 1_000),
            ("cancel.concurrency", self.cancel.concurrency as u64, 1_000),
            ("jobs.sweep_batch", u64::from(self.jobs.sweep_batch), 10_000),
            ("retention.batch", u64::from(self.retention.batch), 10_000),
            (
                "engine.breaker_threshold",
                u64::from(self.engine.breaker_threshold),
                10_000,
            ),
            (
                "engine.breaker_ramp_from",
                u64::from(self.engine.breaker_ramp_from),
                10_000,
            ),
            (
                "store.max_connections",
                self.store.max_connections as u64,
                1_000,
            ),
        ];
        let mut counts = counts.into_iter();
        counts.try_for_each(|(name, value, most)| count(name, value, 1, most))
    }

    fn check_times(&self) -> Result<()> {
        for (name, value, least) in self.times() {
            time(name, value, least)?;
        }
        let retention = &self.retention;
        for (name, value) in [
            ("retention.completed", retention.completed),
            ("retention.failed", retention.failed),
        ] {
            if value.0 > LONGEST_KEPT {
                bail!("{name}: must be at most a hundred years");
            }
        }
        Ok(())
    }

    /// Every length of time, and the shortest that can work.
    fn times(&self) -> [(&'static str, Span, Duration); 31] {
        let (any, tick, second) = (
            Duration::ZERO,
            Duration::from_millis(10),
            Duration::from_secs(1),
        );
        let (dispatch, recovery, follow) = (&self.dispatch, &self.recovery, &self.follow);
        let (sweep, engine, temporal) = (&self.sweep, &self.engine, &self.temporal);
        [
            ("dispatch.poll_interval", dispatch.poll_interval, tick),
            ("dispatch.linger", dispatch.linger, any),
            ("dispatch.claim_lease", dispatch.claim_lease, second),
            ("dispatch.start_timeout", dispatch.start_timeout, tick),
            ("dispatch.backoff_base", dispatch.backoff_base, tick),
            ("dispatch.backoff_max", dispatch.backoff_max, tick),
            (
                "dispatch.lock_at_most_for",
                dispatch.lock_at_most_for,
                second,
            ),
            (
                "dispatch.lock_at_least_for",
                dispatch.lock_at_least_for,
                any,
            ),
            ("dispatch.lock_retry", dispatch.lock_retry, tick),
            ("dispatch.drain_timeout", dispatch.drain_timeout, any),
            ("recovery.interval", recovery.interval, tick),
            (
                "recovery.lock_at_most_for",
                recovery.lock_at_most_for,
                second,
            ),
            (
                "recovery.lock_at_least_for",
                recovery.lock_at_least_for,
                any,
            ),
            ("follow.interval", follow.interval, tick),
            ("follow.overlap", follow.overlap, any),
            ("follow.wide_overlap", follow.wide_overlap, any),
            ("follow.wide_interval", follow.wide_interval, tick),
            ("follow.catch_up", follow.catch_up, any),
            ("follow.lock_at_most_for", follow.lock_at_most_for, second),
            ("sweep.interval", sweep.interval, tick),
            ("sweep.lost_after", sweep.lost_after, second),
            ("sweep.lock_at_most_for", sweep.lock_at_most_for, second),
            ("cancel.interval", self.cancel.interval, tick),
            ("jobs.sweep_interval", self.jobs.sweep_interval, tick),
            ("retention.interval", self.retention.interval, tick),
            (
                "retention.lock_at_most_for",
                self.retention.lock_at_most_for,
                second,
            ),
            ("engine.probe_interval", engine.probe_interval, tick),
            (
                "engine.probe_interval_when_open",
                engine.probe_interval_when_open,
                tick,
            ),
            ("temporal.connect_timeout", temporal.connect_timeout, tick),
            ("temporal.call_timeout", temporal.call_timeout, tick),
            ("store.patience", self.store.patience, any),
        ]
    }
}
