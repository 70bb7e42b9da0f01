//! `leasehold serve`: opens the store, makes the engine, runs the services until told to stop.

use crate::settings::{EngineKind, LogFormat, Settings};
use crate::{engine, logging, store};
use anyhow::{Context, Result, bail};
use clap::Args;
use leasehold_runtime::Runtime;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Beyond the time to drain: for giving back claims and locks to a store that may not answer.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The flags; everything else is set in the file or by variables.
#[derive(Args)]
pub(crate) struct Serve {
    /// A TOML file with settings; docs/operations/settings.md lists them all.
    #[arg(long, value_name = "FILE", env = "LEASEHOLD_CONFIG")]
    config: Option<PathBuf>,
    /// Where everything is kept: `sqlite:FILE` or `postgres://user:password@host/database`.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// What executions are started in.
    #[arg(long, value_enum)]
    engine: Option<EngineKind>,
    /// Temporal's address, as `host:port` or a URL.
    #[arg(long, value_name = "ADDRESS")]
    temporal_address: Option<String>,
    /// Temporal's namespace.
    #[arg(long, value_name = "NAME")]
    temporal_namespace: Option<String>,
    /// What to log: error, warn, info, debug, trace, or a filter.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// How log lines look.
    #[arg(long, value_enum)]
    log_format: Option<LogFormat>,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<()> {
        let settings = Settings::read(self.config.as_deref(), &self.overrides())?;
        logging::start(&settings.log.level, settings.log.format)?;
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime cannot be started")?
            .block_on(serve(settings))
    }

    fn overrides(&self) -> Vec<(&'static str, String)> {
        let named = |value: Option<&'static str>| value.map(str::to_owned);
        [
            ("store.url", self.store.clone()),
            (
                "engine.kind",
                named(self.engine.map(|kind| match kind {
                    EngineKind::Temporal => "temporal",
                })),
            ),
            ("temporal.address", self.temporal_address.clone()),
            ("temporal.namespace", self.temporal_namespace.clone()),
            ("log.level", self.log_level.clone()),
            (
                "log.format",
                named(self.log_format.map(|format| match format {
                    LogFormat::Text => "text",
                    LogFormat::Json => "json",
                })),
            ),
        ]
        .into_iter()
        .filter_map(|(key, value)| value.map(|value| (key, value)))
        .collect()
    }
}

async fn serve(settings: Settings) -> Result<()> {
    // Before anything is opened, so that a signal is never missed.
    let mut signals = Signals::listen()?;
    let owner = owner();
    let store = tokio::select! {
        store = store::open(&settings.store) => store?,
        name = signals.next() => {
            tracing::info!(signal = name, "told to stop before the store was ready");
            return Ok(());
        }
    };
    let engine = match settings.engine.kind {
        EngineKind::Temporal => engine::temporal(&settings.temporal, &owner)?,
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        store = store::shown(&settings.store.url),
        engine = engine.name(),
        temporal = settings.temporal.address,
        namespace = settings.temporal.namespace,
        dispatch = settings.engine.enabled,
        instance = owner,
        "leasehold is running"
    );
    let mut runtime = Runtime::start(store, engine, settings.runtime(&owner));
    let broken = tokio::select! {
        name = signals.next() => {
            tracing::info!(
                signal = name,
                "stopping: no more is admitted, what is under way is finished or given back"
            );
            None
        }
        broken = runtime.broken() => {
            tracing::error!(error = broken, "a service has broken; stopping");
            Some(broken)
        }
    };
    let limit = settings.dispatch.drain_timeout.0 + LAST_WORDS;
    tokio::select! {
        () = runtime.stop() => tracing::info!("stopped"),
        () = tokio::time::sleep(limit) => {
            tracing::warn!("stopped before all was given back: the store does not answer; leases and locks end by themselves");
        }
        name = signals.next() => bail!("told to stop again ({name}); left at once"),
    }
    match broken {
        Some(broken) => bail!("a service has broken: {broken}"),
        None => Ok(()),
    }
}

/// A name for this process that no other has or had.
fn owner() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "leasehold" } else { host };
    let random: leasehold_core::RequestId = leasehold_store::fresh_id();
    let short: String = random.to_string().chars().rev().take(12).collect();
    let host: String = host.chars().take(100).collect();
    format!("{host}-{}-{short}", std::process::id())
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
