//! Numbers that cannot work, refused at the start and by name.

use anyhow::{Result, bail};
use leasehold_core::limits::CLAIM_MAX_BATCH;
use std::time::Duration;

impl super::Settings {
    /// Refuses numbers that cannot work, by name.
    pub(super) fn check(&self) -> Result<()> {
        self.check_counts()?;
        self.check_times()?;
        if self.dispatch.start_timeout.0 <= self.temporal.call_timeout.0 {
            bail!(
                "dispatch.start_timeout: must be longer than temporal.call_timeout, which passes first"
            );
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
        for (name, value, most) in counts {
            if value == 0 || value > most {
                bail!("{name}: must be from 1 to {most}, is {value}");
            }
        }
        Ok(())
    }

    fn check_times(&self) -> Result<()> {
        let dispatch = &self.dispatch;
        let shortest = Duration::from_millis(10);
        let times = [
            ("dispatch.poll_interval", dispatch.poll_interval),
            ("dispatch.claim_lease", dispatch.claim_lease),
            ("dispatch.start_timeout", dispatch.start_timeout),
            ("dispatch.backoff_base", dispatch.backoff_base),
            ("dispatch.backoff_max", dispatch.backoff_max),
            ("dispatch.lock_at_most_for", dispatch.lock_at_most_for),
            ("dispatch.lock_retry", dispatch.lock_retry),
            ("recovery.interval", self.recovery.interval),
            ("recovery.lock_at_most_for", self.recovery.lock_at_most_for),
            ("follow.interval", self.follow.interval),
            ("follow.wide_interval", self.follow.wide_interval),
            ("follow.lock_at_most_for", self.follow.lock_at_most_for),
            ("sweep.interval", self.sweep.interval),
            ("sweep.lock_at_most_for", self.sweep.lock_at_most_for),
            ("cancel.interval", self.cancel.interval),
            ("engine.probe_interval", self.engine.probe_interval),
            (
                "engine.probe_interval_when_open",
                self.engine.probe_interval_when_open,
            ),
            ("temporal.connect_timeout", self.temporal.connect_timeout),
            ("temporal.call_timeout", self.temporal.call_timeout),
        ];
        for (name, value) in times {
            if value.0 < shortest {
                bail!("{name}: must be at least 10ms");
            }
        }
        Ok(())
    }
}
