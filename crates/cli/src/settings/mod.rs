//! Every setting. Sources: defaults, file, environment, flags; later ones override earlier ones. `docs/operations/settings.md` describes each.

mod check;
mod embedded;
mod file;
#[cfg(test)]
mod fuzz_tests;
mod http_nodes;
mod human_duration;
mod jobs;
mod kind;
mod load;
mod metrics;
pub(crate) mod registry;
mod runtime;
mod server;
mod source;
mod traces;
mod variables;
mod worker;

pub(crate) use embedded::EmbeddedSettings;
pub(crate) use http_nodes::HttpNodeSettings;
pub(crate) use human_duration::HumanDuration;
pub(crate) use jobs::{JobSettings, RetentionSettings};
pub(crate) use kind::SettingKind;
pub(crate) use load::{Flag, LoadedSettings};
pub(crate) use metrics::MetricSettings;
pub(crate) use runtime::{
    CancelSettings, DispatchSettings, DriftSettings, FollowSettings, RecoverySettings,
    SweepSettings,
};
pub(crate) use server::{InstanceSettings, ServerSettings};
pub(crate) use source::{Origin, Origins, SettingProblem, SettingProblems};
pub(crate) use traces::TraceSettings;
pub(crate) use worker::WorkerSettings;

use leasehold_process::logging::LogFormat;
use leasehold_runtime::RuntimeOptions;
use leasehold_store_postgres::Pooler;
use registry::{ANY, SettingSpec, TICK, count, file, of, optional, time};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The top-level settings and their allowed values.
const DATA_DIR: &[SettingSpec] = &[of("data_dir", SettingKind::File)];

/// All settings.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Directory for the administrator key and, by default, the SQLite store.
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

/// The settings of `[store]` and their allowed values.
const STORE: &[SettingSpec] = &[
    optional(
        "store.url",
        SettingKind::Secret(kind::store),
        "postgres://leasehold@db/leasehold",
    ),
    of("store.schema", SettingKind::Text(kind::short)),
    file("store.tls_ca_file", "/etc/leasehold/postgres-ca.pem"),
    of("store.migrate", SettingKind::Bool),
    count("store.max_connections", 1, 1_000),
    of("store.pooler", SettingKind::OneOf(&["none", "transaction"])),
    of("store.prepared_statements", SettingKind::Bool),
    of("store.notify", SettingKind::Bool),
    time("store.patience", ANY),
];

/// The store.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StoreSettings {
    /// A file in the data directory if not set.
    pub(crate) url: Option<String>,
    /// The PostgreSQL schema that contains the tables and functions.
    pub(crate) schema: String,
    pub(crate) tls_ca_file: Option<PathBuf>,
    /// Whether a start applies pending migrations.
    pub(crate) migrate: bool,
    /// The pool size for PostgreSQL.
    pub(crate) max_connections: usize,
    pub(crate) pooler: PoolerKind,
    /// Whether the pooler knows prepared statements.
    pub(crate) prepared_statements: bool,
    pub(crate) notify: bool,
    pub(crate) patience: HumanDuration,
}

impl std::fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSettings")
            .field("url", &self.url.as_deref().map(crate::store::redacted_url))
            .field("schema", &self.schema)
            .field("tls_ca_file", &self.tls_ca_file)
            .field("migrate", &self.migrate)
            .field("max_connections", &self.max_connections)
            .field("pooler", &self.pooler)
            .field("prepared_statements", &self.prepared_statements)
            .field("notify", &self.notify)
            .field("patience", &self.patience)
            .finish()
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            url: None,
            schema: "leasehold".to_owned(),
            tls_ca_file: None,
            migrate: true,
            max_connections: 10,
            pooler: PoolerKind::None,
            prepared_statements: true,
            notify: true,
            patience: HumanDuration(Duration::from_secs(30)),
        }
    }
}

/// What is between the program and PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PoolerKind {
    /// Nothing, or a pooler in session mode.
    #[default]
    None,
    /// A pooler in transaction mode.
    Transaction,
}

impl StoreSettings {
    pub(crate) fn pooler(&self) -> Pooler {
        let prepared_statements = self.prepared_statements;
        match self.pooler {
            PoolerKind::None => Pooler::None,
            PoolerKind::Transaction => Pooler::Transaction {
                prepared_statements,
            },
        }
    }
}

/// The settings of `[engine]` and their allowed values.
const ENGINE: &[SettingSpec] = &[
    of("engine.kind", SettingKind::OneOf(&["embedded", "temporal"])),
    of("engine.enabled", SettingKind::Bool),
    count("engine.breaker_threshold", 1, 10_000),
    count("engine.breaker_ramp_from", 1, 10_000),
    time("engine.probe_interval", TICK),
    time("engine.probe_interval_when_open", TICK),
];

/// The workflow engine and its circuit breaker.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EngineSettings {
    pub(crate) kind: EngineKind,
    pub(crate) enabled: bool,
    pub(crate) breaker_threshold: u32,
    pub(crate) breaker_ramp_from: u32,
    pub(crate) probe_interval: HumanDuration,
    pub(crate) probe_interval_when_open: HumanDuration,
}

/// The workflow engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineKind {
    /// Runs graphs in this process on the WorkQueue.
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
            probe_interval: HumanDuration(options.prober.interval),
            probe_interval_when_open: HumanDuration(options.prober.interval_when_open),
        }
    }
}

/// The settings of `[temporal]` and their allowed values.
const TEMPORAL: &[SettingSpec] = &[
    of("temporal.address", SettingKind::Text(kind::temporal)),
    of("temporal.namespace", SettingKind::Text(kind::short)),
    of("temporal.tls", SettingKind::Bool),
    file("temporal.tls_ca_file", "/etc/leasehold/temporal-ca.pem"),
    optional(
        "temporal.tls_domain",
        SettingKind::Text(kind::short),
        "temporal.example.com",
    ),
    file(
        "temporal.tls_certificate_file",
        "/etc/leasehold/temporal.pem",
    ),
    file("temporal.tls_key_file", "/etc/leasehold/temporal.key"),
    optional(
        "temporal.api_key",
        SettingKind::Secret(kind::visible),
        "your Temporal Cloud API key",
    ),
    of(
        "temporal.graph_workflow_type",
        SettingKind::Text(kind::short),
    ),
    of("temporal.graph_task_queue", SettingKind::Text(kind::short)),
    time("temporal.connect_timeout", TICK),
    time("temporal.call_timeout", TICK),
];

/// The connection to Temporal.
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
    pub(crate) connect_timeout: HumanDuration,
    pub(crate) call_timeout: HumanDuration,
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
            connect_timeout: HumanDuration(options.connect_timeout),
            call_timeout: HumanDuration(options.call_timeout),
        }
    }
}

/// The settings of `[log]` and their allowed values.
const LOG: &[SettingSpec] = &[
    of("log.level", SettingKind::Text(kind::level)),
    of("log.format", SettingKind::OneOf(&["text", "json"])),
];

/// Logging.
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
    /// The URL of the store.
    pub(crate) fn store_url(&self) -> String {
        let in_folder = || format!("sqlite:{}", self.data_dir.join("leasehold.db").display());
        self.store.url.clone().unwrap_or_else(in_folder)
    }

    /// The options of the background services.
    pub(crate) fn runtime(&self, owner: &str) -> RuntimeOptions {
        let mut options = RuntimeOptions::new(owner);
        options.dispatch = self.engine.enabled;
        options.breaker.threshold = self.engine.breaker_threshold;
        options.breaker.ramp_from = self.engine.breaker_ramp_from;
        options.prober.interval = self.engine.probe_interval.0;
        options.prober.interval_when_open = self.engine.probe_interval_when_open.0;
        options.dispatcher = self.dispatch.options(owner);
        options.recoverer = self.recovery.options();
        options.reconciler = self.follow.options();
        options.full_sweep = self.sweep.options();
        options.drift_checker = self.drift.options();
        options.canceller = self.cancel.options();
        options.job_sweeper = self.jobs.options();
        let embedded = self.engine.kind == EngineKind::Embedded;
        options.timeout_sweeper = embedded.then(|| self.embedded.timeout_sweeper());
        options.pruner = self.retention.options();
        options.heartbeat = self.instance.options();
        options
    }
}

#[cfg(test)]
mod tests;
