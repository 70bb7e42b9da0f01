//! The configuration that `leasehold worker` passes to `leasehold-temporal-worker`. That is a separate program because Temporal's SDK takes as long to
//! compile as the rest of Leasehold.

use crate::TemporalOptions;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The workflow type of graphs. The SDK needs the name at compile time.
pub const GRAPH_WORKFLOW_TYPE: &str = "LeaseholdGraph";

/// The name of the program that runs graphs on Temporal.
pub const WORKER_PROGRAM: &str = "leasehold-temporal-worker";

/// The limits of a graph worker.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GraphWorkerOptions {
    /// Maximum number of concurrent calls and tasks; a task counts until its job has ended.
    pub concurrency: usize,
    /// How long running calls may take to finish on shutdown.
    pub drain_timeout: Duration,
}

impl Default for GraphWorkerOptions {
    fn default() -> Self {
        Self {
            concurrency: 1000,
            drain_timeout: Duration::from_secs(20),
        }
    }
}

/// The configuration of `leasehold-temporal-worker`, validated by `leasehold worker`. Sent as JSON on standard input.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// The version of `leasehold`: both programs must be of the same release.
    pub version: String,
    /// The connection to Temporal.
    pub temporal: TemporalOptions,
    /// The limits of the worker.
    pub options: GraphWorkerOptions,
    /// The address of the Leasehold server with the task queues.
    pub server: String,
    /// The API key with access to those queues.
    pub key: String,
    /// The certificate authority of the server, as PEM. Default: the system's.
    pub server_ca: Option<String>,
    /// Non-public addresses that `http` nodes may call.
    pub http_allow: Vec<String>,
    /// Addresses, networks and names that `http` nodes must not call.
    pub http_deny: Vec<String>,
    /// The log level or filter.
    pub log_level: String,
    /// Whether log lines are JSON.
    pub log_json: bool,
}

impl fmt::Debug for WorkerConfig {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerConfig")
            .field("server", &self.server)
            .field("temporal", &self.temporal)
            .finish_non_exhaustive()
    }
}
