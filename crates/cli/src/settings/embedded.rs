//! The settings of the embedded engine, and how they become its options. Their defaults are its own.

use super::Span;
use leasehold_engine_embedded::RunnerOptions;
use serde::{Deserialize, Serialize};

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
}
