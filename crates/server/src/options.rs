//! Every limit of the server that an operator can change.

use leasehold_core::limits::CLAIM_WAIT_MAX_SECONDS;
use std::time::Duration;

/// How the server protects itself.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Bytes of an ordinary body.
    pub body_max_bytes: usize,
    /// Bytes of a body that carries many requests or jobs, or a graph.
    pub batch_max_bytes: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long a call may take; waiting for a job comes on top.
    pub request_timeout: Duration,
    /// How long a claim waits for a job at most; a longer wish is cut.
    pub claim_wait_max: Duration,
    /// How long the head of a call may take to arrive.
    pub header_timeout: Duration,
    /// How long a connection may stand idle between two calls.
    pub idle_timeout: Duration,
    /// How long a peer may refuse to take what is sent to it.
    pub write_timeout: Duration,
    /// Bytes of the head of a call.
    pub header_max_bytes: usize,
    /// Connections at once.
    pub max_connections: usize,
    /// Calls at once, those that wait for jobs among them.
    pub calls_max: usize,
    /// Bytes of all bodies that are being read or worked on.
    pub bodies_max_bytes: usize,
    /// Streams of changes at once for one key.
    pub streams_per_key: usize,
    /// Streams of changes at once for all keys.
    pub streams_max: usize,
    /// Requests that may wait in one workspace.
    pub backlog_max: u64,
    /// Calls a second for one workspace.
    pub rate_per_second: u32,
    /// Calls at once beyond that rate.
    pub rate_burst: u32,
    /// How long what is known of a key holds: so long may a revoked one open another instance.
    pub key_fresh_for: Duration,
    /// How long what is under way may take after the server was told to stop.
    pub drain_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            body_max_bytes: 1024 * 1024,
            batch_max_bytes: 16 * 1024 * 1024,
            body_timeout: Duration::from_secs(20),
            request_timeout: Duration::from_secs(30),
            claim_wait_max: Duration::from_secs(CLAIM_WAIT_MAX_SECONDS),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            header_max_bytes: 64 * 1024,
            max_connections: 2_000,
            calls_max: 4_000,
            bodies_max_bytes: 64 * 1024 * 1024,
            streams_per_key: 20,
            streams_max: 500,
            backlog_max: 1_000_000,
            rate_per_second: 10_000,
            rate_burst: 20_000,
            key_fresh_for: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(20),
        }
    }
}
