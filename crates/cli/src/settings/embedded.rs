//! The settings of the embedded engine, and how they become its options. Their defaults are its own.

use super::Span;
use super::check::{count, time};
use anyhow::Result;
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_engine_embedded::RunnerOptions;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How this process works on the calls and pauses of graphs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EmbeddedSettings {
    pub(crate) concurrency: usize,
    pub(crate) lease: Span,
    pub(crate) settle_interval: Span,
    pub(crate) drain_timeout: Span,
}

impl Default for EmbeddedSettings {
    fn default() -> Self {
        let options = RunnerOptions::default();
        Self {
            concurrency: options.concurrency,
            lease: Span(options.lease),
            settle_interval: Span(options.settle_interval),
            drain_timeout: Span(options.drain_timeout),
        }
    }
}

impl EmbeddedSettings {
    pub(crate) fn options(&self) -> RunnerOptions {
        RunnerOptions {
            concurrency: self.concurrency,
            lease: self.lease.0,
            settle_interval: self.settle_interval.0,
            drain_timeout: self.drain_timeout.0,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let most = JOB_MAX_BATCH as u64;
        count("embedded.concurrency", self.concurrency as u64, 1, most)?;
        time("embedded.lease", self.lease, Duration::from_secs(1))?;
        let tick = Duration::from_millis(10);
        time("embedded.settle_interval", self.settle_interval, tick)?;
        time("embedded.drain_timeout", self.drain_timeout, Duration::ZERO)
    }
}
