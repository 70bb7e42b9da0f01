//! The settings of the HTTP API and of what an instance says of itself, and how they become options. Their defaults are the server's own.

use super::Span;
use super::kind::{self, Kind};
use super::known::{ANY, Known, MIB, SECOND, TICK, count, file, of, time};
use leasehold_runtime::BeaconOptions;
use leasehold_server::ServerOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What each setting of `[server]` may be.
pub(super) const SERVER: &[Known] = &[
    of("server.listen", Kind::Text(kind::listen)),
    file("server.tls_certificate_file", "/etc/leasehold/server.pem"),
    file("server.tls_key_file", "/etc/leasehold/server.key"),
    count("server.body_max_bytes", 1024, 1024 * MIB),
    count("server.batch_max_bytes", 1024, 1024 * MIB),
    count("server.bodies_max_bytes", 1024, 1024 * 1024 * MIB),
    time("server.body_timeout", TICK),
    time("server.request_timeout", SECOND),
    time("server.claim_wait_max", ANY),
    time("server.header_timeout", TICK),
    count("server.header_max_bytes", 8192, MIB),
    time("server.idle_timeout", TICK),
    // A quiet stream of changes speaks every fifteen seconds, and has twice this time.
    time("server.write_timeout", Duration::from_secs(10)),
    count("server.max_connections", 1, 1_000_000),
    count("server.calls_max", 1, 1_000_000),
    count("server.streams_per_key", 1, 100_000),
    count("server.streams_max", 1, 100_000),
    count("server.backlog_max", 1, 1_000_000_000),
    count("server.rate_per_second", 1, 10_000_000),
    count("server.rate_burst", 1, 100_000_000),
    time("server.key_fresh_for", ANY),
    time("server.drain_timeout", ANY),
];

/// Where the API listens, and what it takes upon itself.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerSettings {
    pub(crate) listen: String,
    pub(crate) tls_certificate_file: Option<PathBuf>,
    pub(crate) tls_key_file: Option<PathBuf>,
    pub(crate) body_max_bytes: usize,
    pub(crate) batch_max_bytes: usize,
    pub(crate) body_timeout: Span,
    pub(crate) request_timeout: Span,
    pub(crate) claim_wait_max: Span,
    pub(crate) header_timeout: Span,
    pub(crate) idle_timeout: Span,
    pub(crate) write_timeout: Span,
    pub(crate) header_max_bytes: usize,
    pub(crate) max_connections: usize,
    pub(crate) calls_max: usize,
    pub(crate) bodies_max_bytes: usize,
    pub(crate) streams_per_key: usize,
    pub(crate) streams_max: usize,
    pub(crate) backlog_max: u64,
    pub(crate) rate_per_second: u32,
    pub(crate) rate_burst: u32,
    pub(crate) key_fresh_for: Span,
    pub(crate) drain_timeout: Span,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let options = ServerOptions::default();
        Self {
            listen: "127.0.0.1:7777".to_owned(),
            tls_certificate_file: None,
            tls_key_file: None,
            body_max_bytes: options.body_max_bytes,
            batch_max_bytes: options.batch_max_bytes,
            body_timeout: Span(options.body_timeout),
            request_timeout: Span(options.request_timeout),
            claim_wait_max: Span(options.claim_wait_max),
            header_timeout: Span(options.header_timeout),
            idle_timeout: Span(options.idle_timeout),
            write_timeout: Span(options.write_timeout),
            header_max_bytes: options.header_max_bytes,
            max_connections: options.max_connections,
            calls_max: options.calls_max,
            bodies_max_bytes: options.bodies_max_bytes,
            streams_per_key: options.streams_per_key,
            streams_max: options.streams_max,
            backlog_max: options.backlog_max,
            rate_per_second: options.rate_per_second,
            rate_burst: options.rate_burst,
            key_fresh_for: Span(options.key_fresh_for),
            drain_timeout: Span(options.drain_timeout),
        }
    }
}

impl ServerSettings {
    pub(crate) fn options(&self) -> ServerOptions {
        ServerOptions {
            body_max_bytes: self.body_max_bytes,
            batch_max_bytes: self.batch_max_bytes,
            body_timeout: self.body_timeout.0,
            request_timeout: self.request_timeout.0,
            claim_wait_max: self.claim_wait_max.0,
            header_timeout: self.header_timeout.0,
            idle_timeout: self.idle_timeout.0,
            write_timeout: self.write_timeout.0,
            header_max_bytes: self.header_max_bytes,
            max_connections: self.max_connections,
            calls_max: self.calls_max,
            bodies_max_bytes: self.bodies_max_bytes,
            streams_per_key: self.streams_per_key,
            streams_max: self.streams_max,
            backlog_max: self.backlog_max,
            rate_per_second: self.rate_per_second,
            rate_burst: self.rate_burst,
            key_fresh_for: self.key_fresh_for.0,
            drain_timeout: self.drain_timeout.0,
        }
    }
}

/// What each setting of `[instance]` may be.
pub(super) const INSTANCE: &[Known] = &[
    time("instance.interval", Duration::from_millis(100)),
    time("instance.forget_after", SECOND),
];

/// How an instance shows that it lives.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InstanceSettings {
    pub(crate) interval: Span,
    pub(crate) forget_after: Span,
}

impl Default for InstanceSettings {
    fn default() -> Self {
        let options = BeaconOptions::default();
        Self {
            interval: Span(options.interval),
            forget_after: Span(options.forget_after),
        }
    }
}

impl InstanceSettings {
    pub(super) fn options(&self) -> BeaconOptions {
        BeaconOptions {
            interval: self.interval.0,
            forget_after: self.forget_after.0,
            ..BeaconOptions::default()
        }
    }
}
