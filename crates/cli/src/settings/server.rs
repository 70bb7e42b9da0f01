//! The settings of the HTTP API and of the instance heartbeat. Their defaults are the server's own.

use super::HumanDuration;
use super::kind::{self, SettingKind};
use super::registry::{ANY, MIB, SECOND, SettingSpec, TICK, count, file, of, time};
use leasehold_runtime::{HEARTBEAT_INTERVAL_MAX, HeartbeatOptions};
use leasehold_server::ServerOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The settings of `[server]` and their allowed values.
pub(super) const SERVER: &[SettingSpec] = &[
    of("server.listen", SettingKind::Text(kind::listen)),
    of("server.local_socket", SettingKind::Bool),
    file("server.tls_certificate_file", "/etc/leasehold/server.pem"),
    file("server.tls_key_file", "/etc/leasehold/server.key"),
    count("server.body_max_bytes", 1024, 1024 * MIB),
    count("server.batch_max_bytes", 1024, 1024 * MIB),
    count("server.bodies_max_bytes", 1024, 1024 * 1024 * MIB),
    count("server.responses_max_bytes", 1024, 1024 * 1024 * MIB),
    time("server.body_timeout", TICK),
    time("server.request_timeout", SECOND),
    time("server.claim_wait_max", ANY),
    time("server.header_timeout", TICK),
    count("server.header_max_bytes", 8192, MIB),
    time("server.idle_timeout", TICK),
    time("server.write_timeout", Duration::from_secs(10)),
    count("server.max_connections", 1, 1_000_000),
    count("server.calls_max", 1, 1_000_000),
    count("server.streams_per_key", 1, 100_000),
    count("server.streams_max", 1, 100_000),
    count("server.key_max_open_bytes", 1024, 1024 * 1024 * MIB),
    count("server.rate_per_second", 1, 10_000_000),
    count("server.rate_burst", 1, 100_000_000),
    time("server.key_fresh_for", ANY),
    time("server.drain_timeout", ANY),
];

/// Listen address and limits of the API.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerSettings {
    pub(crate) listen: String,
    /// Whether to listen on a Unix socket in the data directory too.
    pub(crate) local_socket: bool,
    pub(crate) tls_certificate_file: Option<PathBuf>,
    pub(crate) tls_key_file: Option<PathBuf>,
    pub(crate) body_max_bytes: usize,
    pub(crate) batch_max_bytes: usize,
    pub(crate) body_timeout: HumanDuration,
    pub(crate) request_timeout: HumanDuration,
    pub(crate) claim_wait_max: HumanDuration,
    pub(crate) header_timeout: HumanDuration,
    pub(crate) idle_timeout: HumanDuration,
    pub(crate) write_timeout: HumanDuration,
    pub(crate) header_max_bytes: usize,
    pub(crate) max_connections: usize,
    pub(crate) calls_max: usize,
    pub(crate) bodies_max_bytes: usize,
    pub(crate) responses_max_bytes: usize,
    pub(crate) streams_per_key: usize,
    pub(crate) streams_max: usize,
    pub(crate) key_max_open_bytes: u64,
    pub(crate) rate_per_second: u32,
    pub(crate) rate_burst: u32,
    pub(crate) key_fresh_for: HumanDuration,
    pub(crate) drain_timeout: HumanDuration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let options = ServerOptions::default();
        Self {
            listen: "127.0.0.1:7777".to_owned(),
            local_socket: true,
            tls_certificate_file: None,
            tls_key_file: None,
            body_max_bytes: options.body_max_bytes,
            batch_max_bytes: options.batch_max_bytes,
            body_timeout: HumanDuration(options.body_timeout),
            request_timeout: HumanDuration(options.request_timeout),
            claim_wait_max: HumanDuration(options.claim_wait_max),
            header_timeout: HumanDuration(options.header_timeout),
            idle_timeout: HumanDuration(options.idle_timeout),
            write_timeout: HumanDuration(options.write_timeout),
            header_max_bytes: options.header_max_bytes,
            max_connections: options.max_connections,
            calls_max: options.calls_max,
            bodies_max_bytes: options.bodies_max_bytes,
            responses_max_bytes: options.responses_max_bytes,
            streams_per_key: options.streams_per_key,
            streams_max: options.streams_max,
            key_max_open_bytes: options.key_max_open_bytes,
            rate_per_second: options.rate_per_second,
            rate_burst: options.rate_burst,
            key_fresh_for: HumanDuration(options.key_fresh_for),
            drain_timeout: HumanDuration(options.drain_timeout),
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
            responses_max_bytes: self.responses_max_bytes,
            streams_per_key: self.streams_per_key,
            streams_max: self.streams_max,
            key_max_open_bytes: self.key_max_open_bytes,
            rate_per_second: self.rate_per_second,
            rate_burst: self.rate_burst,
            key_fresh_for: self.key_fresh_for.0,
            drain_timeout: self.drain_timeout.0,
            ..ServerOptions::default()
        }
    }
}

/// The settings of `[instance]` and their allowed values.
pub(super) const INSTANCE: &[SettingSpec] = &[
    of(
        "instance.interval",
        SettingKind::Duration {
            min: Duration::from_millis(100),
            max: HEARTBEAT_INTERVAL_MAX,
        },
    ),
    time("instance.forget_after", SECOND),
];

/// The heartbeat of an instance.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InstanceSettings {
    pub(crate) interval: HumanDuration,
    pub(crate) forget_after: HumanDuration,
}

impl Default for InstanceSettings {
    fn default() -> Self {
        let options = HeartbeatOptions::default();
        Self {
            interval: HumanDuration(options.interval),
            forget_after: HumanDuration(options.forget_after),
        }
    }
}

impl InstanceSettings {
    pub(super) fn options(&self) -> HeartbeatOptions {
        HeartbeatOptions {
            interval: self.interval.0,
            forget_after: self.forget_after.0,
            ..HeartbeatOptions::default()
        }
    }
}
