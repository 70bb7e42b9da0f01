//! The settings of `leasehold worker`.

use super::Span;
use super::kind::{self, Kind};
use super::known::{ANY, Known, count, file, of, optional, time};
use leasehold_engine_temporal::GraphWorkerOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What each setting of `[worker]` may be.
pub(super) const WORKER: &[Known] = &[
    of("worker.server", Kind::Text(kind::server)),
    optional(
        "worker.key",
        Kind::Secret(kind::key),
        "the key, which begins with lh_worker_",
    ),
    file("worker.key_file", "/etc/leasehold/worker.key"),
    file("worker.tls_ca_file", "/etc/leasehold/server-ca.pem"),
    count("worker.concurrency", 1, 100_000),
    time("worker.drain_timeout", ANY),
];

/// Which server the worker works for, and how much it takes upon itself.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkerSettings {
    pub(crate) server: String,
    pub(crate) key: Option<String>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) tls_ca_file: Option<PathBuf>,
    pub(crate) concurrency: usize,
    pub(crate) drain_timeout: Span,
}

impl std::fmt::Debug for WorkerSettings {
    /// Without the key.
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
            server: "http://127.0.0.1:7777".to_owned(),
            key: None,
            key_file: None,
            tls_ca_file: None,
            concurrency: options.concurrency,
            drain_timeout: Span(options.drain_timeout),
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
