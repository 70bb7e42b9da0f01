//! Every setting of the server: defaults, then a file, then the environment, then flags. `docs/operations/settings.md` says why each is as it is.

mod check;
mod embedded;
mod file;
mod http_nodes;
mod jobs;
mod kind;
pub(crate) mod known;
mod metrics;
mod read;
mod runtime;
mod server;
mod source;
mod span;
mod traces;
mod variables;
mod worker;

pub(crate) use embedded::EmbeddedSettings;
pub(crate) use http_nodes::HttpNodeSettings;
pub(crate) use jobs::{JobSettings, RetentionSettings};
pub(crate) use kind::Kind;
pub(crate) use metrics::MetricSettings;
pub(crate) use read::{Flag, Read};
pub(crate) use runtime::{
    CancelSettings, DispatchSettings, DriftSettings, FollowSettings, RecoverySettings,
    SweepSettings,
};
pub(crate) use server::{InstanceSettings, ServerSettings};
pub(crate) use source::{Origin, Origins, Problem, Problems};
pub(crate) use span::Span;
pub(crate) use traces::TraceSettings;
pub(crate) use worker::WorkerSettings;

use known::{ANY, Known, TICK, count, file, of, optional, time};
use leasehold_process::logging::LogFormat;
use leasehold_runtime::RuntimeOptions;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// What each setting of no section may be.
const DATA_DIR: &[Known] = &[of("data_dir", Kind::File)];

/// All of them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// For what this instance keeps itself: the administrator's key, and everything unless another store is named.
    pub(crate) data_dir: PathBuf,
    pub(crate) server: ServerSettings,
    pub(crate) instance: InstanceSettings,
    pub(crate) store: StoreSettings,
    pub(crate) engine: EngineSettings,
    pub(crate) embedded: EmbeddedSettings,
    pub(crate) temporal: TemporalSettings,
    pub(crate) http_nodes: HttpNodeSettings,
    pub(crate) worker: WorkerSettings,
    pub(crate) dispatch: DispatchSettings,
    pub(crate) recovery: RecoverySettings,
    pub(crate) follow: FollowSettings,
    pub(crate) sweep: SweepSettings,
    pub(crate) drift: DriftSettings,
    pub(crate) cancel: CancelSettings,
    pub(crate) jobs: JobSettings,
    pub(crate) retention: RetentionSettings,
    pub(crate) metrics: MetricSettings,
    pub(crate) traces: TraceSettings,
    pub(crate) log: LogSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("leasehold-data"),
            server: ServerSettings::default(),
            instance: InstanceSettings::default(),
            store: StoreSettings::default(),
            engine: EngineSettings::default(),
            embedded: EmbeddedSettings::default(),
            temporal: TemporalSettings::default(),
            http_nodes: HttpNodeSettings::default(),
            worker: WorkerSettings::default(),
            dispatch: DispatchSettings::default(),
            recovery: RecoverySettings::default(),
            follow: FollowSettings::default(),
            sweep: SweepSettings::default(),
            drift: DriftSettings::default(),
            cancel: CancelSettings::default(),
            jobs: JobSettings::default(),
            retention: RetentionSettings::default(),
            metrics: MetricSettings::default(),
            traces: TraceSettings::default(),
            log: LogSettings::default(),
        }
    }
}

/// What each setting of `[store]` may be.
const STORE: &[Known] = &[
    optional(
        "store.url",
        Kind::Secret(kind::store),
        "postgres://leasehold@db/leasehold",
    ),
    file("store.tls_ca_file", "/etc/leasehold/postgres-ca.pem"),
    of("store.migrate", Kind::YesNo),
    count("store.max_connections", 1, 1_000),
    of("store.notify", Kind::YesNo),
    time("store.patience", ANY),
];

/// Where everything is kept.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StoreSettings {
    /// A file in the data folder if none is given.
    pub(crate) url: Option<String>,
    pub(crate) tls_ca_file: Option<PathBuf>,
    /// Whether a start brings the schema up to date by itself.
    pub(crate) migrate: bool,
    pub(crate) max_connections: usize,
    pub(crate) notify: bool,
    pub(crate) patience: Span,
}

impl std::fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSettings")
            .field("url", &self.url.as_deref().map(crate::store::shown))
            .field("tls_ca_file", &self.tls_ca_file)
            .field("migrate", &self.migrate)
            .field("max_connections", &self.max_connections)
            .field("notify", &self.notify)
            .field("patience", &self.patience)
            .finish()
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            url: None,
            tls_ca_file: None,
            migrate: true,
            max_connections: 10,
            notify: true,
            patience: Span(Duration::from_secs(30)),
        }
    }
}

/// What each setting of `[engine]` may be.
const ENGINE: &[Known] = &[
    of("engine.kind", Kind::OneOf(&["embedded", "temporal"])),
    of("engine.enabled", Kind::YesNo),
    count("engine.breaker_threshold", 1, 10_000),
    count("engine.breaker_ramp_from", 1, 10_000),
    time("engine.probe_interval", TICK),
    time("engine.probe_interval_when_open", TICK),
];

/// What executions are started in.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EngineSettings {
    pub(crate) kind: EngineKind,
    pub(crate) enabled: bool,
    pub(crate) breaker_threshold: u32,
    pub(crate) breaker_ramp_from: u32,
    pub(crate) probe_interval: Span,
    pub(crate) probe_interval_when_open: Span,
}

/// The engines there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineKind {
    /// This process itself: it runs graphs on the WorkQueue, with no other server.
    #[default]
    Embedded,
    /// A Temporal server.
    Temporal,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let options = RuntimeOptions::new("");
        Self {
            kind: EngineKind::default(),
            enabled: true,
            breaker_threshold: options.breaker.threshold,
            breaker_ramp_from: options.breaker.ramp_from,
            probe_interval: Span(options.prober.interval),
            probe_interval_when_open: Span(options.prober.interval_when_open),
        }
    }
}

/// What each setting of `[temporal]` may be.
const TEMPORAL: &[Known] = &[
    of("temporal.address", Kind::Text(kind::temporal)),
    of("temporal.namespace", Kind::Text(kind::short)),
    of("temporal.tls", Kind::YesNo),
    file("temporal.tls_ca_file", "/etc/leasehold/temporal-ca.pem"),
    optional(
        "temporal.tls_domain",
        Kind::Text(kind::short),
        "temporal.example.com",
    ),
    file(
        "temporal.tls_certificate_file",
        "/etc/leasehold/temporal.pem",
    ),
    file("temporal.tls_key_file", "/etc/leasehold/temporal.key"),
    optional(
        "temporal.api_key",
        Kind::Secret(kind::visible),
        "the key that Temporal Cloud gave you",
    ),
    of("temporal.graph_workflow_type", Kind::Text(kind::short)),
    of("temporal.graph_task_queue", Kind::Text(kind::short)),
    time("temporal.connect_timeout", TICK),
    time("temporal.call_timeout", TICK),
];

/// How to reach Temporal.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TemporalSettings {
    pub(crate) address: String,
    pub(crate) namespace: String,
    pub(crate) tls: bool,
    pub(crate) tls_ca_file: Option<PathBuf>,
    pub(crate) tls_domain: Option<String>,
    pub(crate) tls_certificate_file: Option<PathBuf>,
    pub(crate) tls_key_file: Option<PathBuf>,
    pub(crate) api_key: Option<String>,
    pub(crate) graph_workflow_type: String,
    pub(crate) graph_task_queue: String,
    pub(crate) connect_timeout: Span,
    pub(crate) call_timeout: Span,
}

impl std::fmt::Debug for TemporalSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemporalSettings")
            .field("address", &self.address)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Default for TemporalSettings {
    fn default() -> Self {
        let options = leasehold_engine_temporal::TemporalOptions::default();
        Self {
            address: options.address,
            namespace: options.namespace,
            tls: false,
            tls_ca_file: None,
            tls_domain: None,
            tls_certificate_file: None,
            tls_key_file: None,
            api_key: None,
            graph_workflow_type: options.graph_workflow_type,
            graph_task_queue: options.graph_task_queue,
            connect_timeout: Span(options.connect_timeout),
            call_timeout: Span(options.call_timeout),
        }
    }
}

/// What each setting of `[log]` may be.
const LOG: &[Known] = &[
    of("log.level", Kind::Text(kind::level)),
    of("log.format", Kind::OneOf(&["text", "json"])),
];

/// What is logged, and how.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogSettings {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
        }
    }
}

impl Settings {
    /// Where everything is kept.
    pub(crate) fn store_url(&self) -> String {
        let in_folder = || format!("sqlite:{}", self.data_dir.join("leasehold.db").display());
        self.store.url.clone().unwrap_or_else(in_folder)
    }

    /// The options of the services.
    pub(crate) fn runtime(&self, owner: &str) -> RuntimeOptions {
        let mut options = RuntimeOptions::new(owner);
        options.dispatch = self.engine.enabled;
        options.breaker.threshold = self.engine.breaker_threshold;
        options.breaker.ramp_from = self.engine.breaker_ramp_from;
        options.prober.interval = self.engine.probe_interval.0;
        options.prober.interval_when_open = self.engine.probe_interval_when_open.0;
        options.dispatcher = self.dispatch.options(owner);
        options.recoverer = self.recovery.options();
        options.follower = self.follow.options();
        options.sweeper = self.sweep.options();
        options.auditor = self.drift.options();
        options.canceller = self.cancel.options();
        options.job_sweeper = self.jobs.options();
        let embedded = self.engine.kind == EngineKind::Embedded;
        options.settler = embedded.then(|| self.embedded.settler());
        options.pruner = self.retention.options();
        options.beacon = self.instance.options();
        options
    }
}

#[cfg(test)]
mod tests;
