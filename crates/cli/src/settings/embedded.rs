//! The settings of the embedded engine, and how they become its options. Their defaults are its own.

use super::Span;
use super::known::{ANY, Known, SECOND, TICK, count, time};
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_engine_embedded::RunnerOptions;
use leasehold_runtime::SettlerOptions;
use serde::{Deserialize, Serialize};

/// What each setting of `[embedded]` may be.
pub(super) const EMBEDDED: &[Known] = &[
    count("embedded.concurrency", 1, JOB_MAX_BATCH as u64),
    time("embedded.lease", SECOND),
    time("embedded.settle_interval", TICK),
    time("embedded.drain_timeout", ANY),
];

/// How this process works on the calls and pauses of graphs, and ends those that time has ended.
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
            settle_interval: Span(SettlerOptions::default().interval),
            drain_timeout: Span(options.drain_timeout),
        }
    }
}

impl EmbeddedSettings {
    pub(crate) fn options(&self) -> RunnerOptions {
        RunnerOptions {
            concurrency: self.concurrency,
            lease: self.lease.0,
            drain_timeout: self.drain_timeout.0,
        }
    }

    pub(super) fn settler(&self) -> SettlerOptions {
        SettlerOptions {
            interval: self.settle_interval.0,
            ..SettlerOptions::default()
        }
    }
}
