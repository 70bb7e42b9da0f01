//! What `leasehold worker` hands to the program that runs graphs on Temporal. That program is another one: it needs Temporal's SDK, which takes as long to
//! compile as all else together.

use crate::TemporalOptions;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The workflow type that the worker runs. The SDK knows types by names that are written into the program.
pub const GRAPH_WORKFLOW_TYPE: &str = "LeaseholdGraph";

/// The name of the program that runs graphs on Temporal.
pub const WORKER_PROGRAM: &str = "leasehold-temporal-worker";

/// How much a worker takes upon itself.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GraphWorkerOptions {
    /// Calls and tasks at once; a task counts as long as its job has not ended.
    pub concurrency: usize,
    /// How long calls may go on when the worker is told to stop.
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

/// All that the program needs, as `leasehold worker` has read and checked it. JSON on standard input.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerConfig {
    /// The version of the program that wrote this: both must be of one release.
    pub version: String,
    /// How to reach Temporal.
    pub temporal: TemporalOptions,
    /// How much to take on.
    pub options: GraphWorkerOptions,
    /// The Leasehold server with the queues of the tasks.
    pub server: String,
    /// The key that opens them.
    pub key: String,
    /// The authority that signed the server's certificate, as PEM; the system's if none.
    pub server_ca: Option<String>,
    /// What `http` nodes may call although it is not public.
    pub http_allow: Vec<String>,
    /// What is logged: a level or a filter.
    pub log_level: String,
    /// Whether log lines are JSON.
    pub log_json: bool,
}

impl fmt::Debug for WorkerConfig {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerConfig")
            .field("server", &self.server)
            .field("temporal", &self.temporal)
            .finish_non_exhaustive()
    }
}
