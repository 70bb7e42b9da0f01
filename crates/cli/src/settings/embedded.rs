//! The settings of the embedded engine. Their defaults are the engine's own.

use super::HumanDuration;
use super::registry::{ANY, SECOND, SettingSpec, TICK, count, time};
use leasehold_core::limits::JOB_MAX_BATCH;
use leasehold_engine_embedded::NodeRunnerOptions;
use leasehold_runtime::TimeoutSweeperOptions;
use serde::{Deserialize, Serialize};

/// The settings of `[embedded]` and their allowed values.
pub(super) const EMBEDDED: &[SettingSpec] = &[
    count("embedded.concurrency", 1, JOB_MAX_BATCH as u64),
    time("embedded.lease", SECOND),
    time("embedded.settle_interval", TICK),
    time("embedded.drain_timeout", ANY),
];

/// Node runners and timeouts of the embedded engine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EmbeddedSettings {
    pub(crate) concurrency: usize,
    pub(crate) lease: HumanDuration,
    pub(crate) settle_interval: HumanDuration,
    pub(crate) drain_timeout: HumanDuration,
}

impl Default for EmbeddedSettings {
    fn default() -> Self {
        let options = NodeRunnerOptions::default();
        Self {
            concurrency: options.concurrency,
            lease: HumanDuration(options.lease),
            settle_interval: HumanDuration(TimeoutSweeperOptions::default().interval),
            drain_timeout: HumanDuration(options.drain_timeout),
        }
    }
}

impl EmbeddedSettings {
    pub(crate) fn options(&self) -> NodeRunnerOptions {
        NodeRunnerOptions {
            concurrency: self.concurrency,
            lease: self.lease.0,
            drain_timeout: self.drain_timeout.0,
        }
    }

    pub(super) fn timeout_sweeper(&self) -> TimeoutSweeperOptions {
        TimeoutSweeperOptions {
            interval: self.settle_interval.0,
            ..TimeoutSweeperOptions::default()
        }
    }
}
