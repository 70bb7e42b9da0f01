//! The limits and timeouts of the server that an operator can configure.

use leasehold_core::limits::{CLAIM_WAIT_MAX_SECONDS, KEY_USE_INTERVAL_SECONDS};
use std::time::Duration;

/// Limits and timeouts of the server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Maximum size of an ordinary request body, in bytes.
    pub body_max_bytes: usize,
    /// Maximum size of a body with a batch or a graph, in bytes.
    pub batch_max_bytes: usize,
    /// Time limit for receiving a body.
    pub body_timeout: Duration,
    /// Time limit of a call; the wait for a job is added to it.
    pub request_timeout: Duration,
    /// The long poll timeout: the longest wait of a claim for a job; a longer `wait_ms` is reduced to it.
    pub claim_wait_max: Duration,
    /// Time limit for receiving the headers of a call.
    pub header_timeout: Duration,
    /// How long a connection may be idle between two calls.
    pub idle_timeout: Duration,
    /// How long a write may block because the peer does not read.
    pub write_timeout: Duration,
    /// Maximum size of the headers of a call, in bytes.
    pub header_max_bytes: usize,
    /// Maximum number of open connections.
    pub max_connections: usize,
    /// The limit for load shedding: maximum number of concurrent calls, including claims that wait for jobs; more get 503.
    pub calls_max: usize,
    /// The limit for load shedding: maximum total size of all bodies in memory, in bytes.
    pub bodies_max_bytes: usize,
    /// Maximum total size of all responses that are being built or sent, in bytes.
    pub responses_max_bytes: usize,
    /// Maximum number of open change streams of one key.
    pub streams_per_key: usize,
    /// Maximum number of open change streams of all keys.
    pub streams_max: usize,
    /// Maximum bytes of open jobs in the queues of one worker key; beyond it the key cannot enqueue.
    pub key_max_open_bytes: u64,
    /// The rate limit: calls per second of one workspace.
    pub rate_per_second: u32,
    /// Calls allowed in a burst above that rate.
    pub rate_burst: u32,
    /// How long a key is cached: for this long, an instance may accept a key that expired, and other instances one that was revoked.
    pub key_fresh_for: Duration,
    /// Shortest time between two records of the last use of a key.
    pub key_use_interval: Duration,
    /// For a graceful shutdown: how long calls in progress may take after the server was stopped.
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
            responses_max_bytes: 128 * 1024 * 1024,
            streams_per_key: 20,
            streams_max: 500,
            key_max_open_bytes: leasehold_core::limits::KEY_MAX_OPEN_BYTES,
            rate_per_second: 10_000,
            rate_burst: 20_000,
            key_fresh_for: Duration::from_secs(1),
            key_use_interval: Duration::from_secs(KEY_USE_INTERVAL_SECONDS),
            drain_timeout: Duration::from_secs(20),
        }
    }
}
