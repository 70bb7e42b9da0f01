//! The settings of `leasehold worker`.

use super::HumanDuration;
use super::kind::{self, SettingKind};
use super::registry::{ANY, SettingSpec, count, file, optional, time};
use leasehold_engine_temporal::GraphWorkerOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The settings of `[worker]` and their allowed values.
pub(super) const WORKER: &[SettingSpec] = &[
    // No default: a key goes only to an address that is set with it.
    optional(
        "worker.server",
        SettingKind::Text(kind::server),
        "http://127.0.0.1:7777",
    ),
    optional(
        "worker.key",
        SettingKind::Secret(kind::key),
        "a key that starts with lh_worker_",
    ),
    file("worker.key_file", "/etc/leasehold/worker.key"),
    file("worker.tls_ca_file", "/etc/leasehold/server-ca.pem"),
    count("worker.concurrency", 1, 100_000),
    time("worker.drain_timeout", ANY),
];

/// Server, key and limits of the worker.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkerSettings {
    pub(crate) server: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) tls_ca_file: Option<PathBuf>,
    pub(crate) concurrency: usize,
    pub(crate) drain_timeout: HumanDuration,
}

impl std::fmt::Debug for WorkerSettings {
    /// Omits the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerSettings")
            .field("server", &self.server)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

impl Default for WorkerSettings {
    fn default() -> Self {
        let options = GraphWorkerOptions::default();
        Self {
            server: None,
            key: None,
            key_file: None,
            tls_ca_file: None,
            concurrency: options.concurrency,
            drain_timeout: HumanDuration(options.drain_timeout),
        }
    }
}

impl WorkerSettings {
    pub(crate) fn options(&self) -> GraphWorkerOptions {
        GraphWorkerOptions {
            concurrency: self.concurrency,
            drain_timeout: self.drain_timeout.0,
        }
    }
}
