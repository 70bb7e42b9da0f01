//! `leasehold serve`: opens the store, builds the engine, serves the API and runs the background services until stopped.

use crate::address::{self, AddressFile};
use crate::admin_key::AdminKey;
use crate::greeting::Greeting;
use crate::local_socket::LocalSocket;
use crate::settings::{EngineKind, ServerSettings, Settings};
use crate::settings_flags::StoreFlags;
use crate::{admin_key, crash, engine, engine_mismatch, notify, store, telemetry};
use anyhow::{Context, Result, bail};
use clap::Args;
use leasehold_console::{Exit, Failure};
use leasehold_core::Plan;
use leasehold_crash_marker::CrashMarkers;
use leasehold_engine::Engine;
use leasehold_engine_embedded::NodeRunner;
use leasehold_process::signals::{SignalAction, Signals};
use leasehold_runtime::{EngineComparison, Runtime};
use leasehold_server::{
    DrainReport, ListenError, Server, State, StateParts, Tls, share_connections,
};
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Page, Store};
use leasehold_telemetry::Telemetry;
use std::io::Write;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

/// The workspace that commands use by default.
const FIRST_WORKSPACE: &str = "default";

/// Extra time after the drain timeout, to release claims and locks if the store is slow.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Flags of `leasehold serve`; other settings come from the file or the environment.
#[derive(Args)]
pub(crate) struct ServeCommand {
    #[command(flatten)]
    flags: StoreFlags,
    /// API listen address, as `host:port` [default: 127.0.0.1:7777].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Workflow engine [default: embedded].
    #[arg(long, value_enum)]
    engine: Option<EngineKind>,
    /// Temporal address, as `host:port` or a URL [default: 127.0.0.1:7233].
    #[arg(long, value_name = "ADDRESS")]
    temporal_address: Option<String>,
    /// Temporal namespace [default: default].
    #[arg(long, value_name = "NAME")]
    temporal_namespace: Option<String>,
}

impl ServeCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let kind = self.engine.map(|kind| match kind {
            EngineKind::Embedded => "embedded".to_owned(),
            EngineKind::Temporal => "temporal".to_owned(),
        });
        let settings = self.flags.settings(vec![
            ("--listen", "server.listen", self.listen.clone()),
            ("--engine", "engine.kind", kind),
            (
                "--temporal-address",
                "temporal.address",
                self.temporal_address.clone(),
            ),
            (
                "--temporal-namespace",
                "temporal.namespace",
                self.temporal_namespace.clone(),
            ),
        ])?;
        let names_temporal = self.temporal_address.is_some() || self.temporal_namespace.is_some();
        if names_temporal && settings.engine.kind != EngineKind::Temporal {
            bail!(Failure::usage(
                "--temporal-address and --temporal-namespace require --engine temporal"
            ));
        }
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start the async runtime")?
            .block_on(serve(settings))
    }
}

/// Serves with these settings until stopped.
pub(crate) async fn serve(settings: Settings) -> Result<()> {
    // Registers signals before anything is opened, so that none is missed.
    let mut signals = Signals::listen(settings.server.tls_certificate_file.is_some())?;
    match RunningServer::start(settings, &mut signals, greet).await? {
        Some(serving) => serving.run_until_stopped(signals).await,
        None => Ok(()),
    }
}

/// A running server.
pub(crate) struct RunningServer {
    settings: Settings,
    url: String,
    tls: Option<Tls>,
    address: Option<AddressFile>,
    socket: Option<LocalSocket>,
    instance: Instance,
    telemetry: Telemetry,
}

impl RunningServer {
    /// Starts the server and calls `greet` when it listens. Returns `None` if a signal arrived before the store was ready.
    pub(crate) async fn start(
        settings: Settings,
        signals: &mut Signals,
        greet: impl FnOnce(&Settings, SocketAddr, bool, &AdminKey),
    ) -> Result<Option<Self>> {
        let owner = instance_id();
        let telemetry = telemetry::start(&settings, &owner)?;
        let tls = tls(&settings.server)?;
        let markers = CrashMarkers::default();
        let engine = engine::EngineBuilder::new(&settings, &owner, &markers);
        let engine = engine.map_err(|error| Failure::usage(format!("{error:#}")))?;
        let (store, key) = tokio::select! {
            ready = open_store(&settings, &telemetry, &markers) => ready?,
            name = signals.stop() => {
                tracing::info!(signal = name, "stopped before the store was ready");
                return Ok(None);
            }
        };
        let engine = StartingEngine {
            engine: engine.engine(&store, &owner, &markers),
            builder: engine,
        };
        crash::resolve(
            &settings.data_dir,
            &owner,
            &markers,
            &*store,
            &engine.engine,
        )
        .await;
        compare_engine(&*store, &*engine.engine, &settings).await?;
        let server = Server::bind(&settings.server.listen, tls.clone()).await;
        let mut server = server.map_err(listen_failure)?;
        let mut socket = None;
        if settings.server.local_socket
            && let Some((listener, file)) = LocalSocket::listen(&settings.data_dir).await
        {
            server = server.with_local_socket(listener);
            socket = Some(file);
        }
        greet(&settings, server.address(), tls.is_some(), &key);
        let url = address::url(server.address(), tls.is_some());
        // Written before the log says that the server runs, so that clients waiting for the log find the file.
        let address = AddressFile::write(&settings.data_dir, &url);
        let traced = telemetry.clone();
        let instance = Instance::start(&settings, &owner, store, engine, server, traced)?;
        notify::ready();
        Ok(Some(Self {
            settings,
            url,
            tls,
            address,
            socket,
            instance,
            telemetry,
        }))
    }

    /// The URL of the server as seen from this machine.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Serves until a stop signal (SIGTERM or SIGINT) arrives, then shuts down gracefully; a second signal exits at once.
    pub(crate) async fn run_until_stopped(mut self, mut signals: Signals) -> Result<()> {
        let end = self.instance.run(&mut signals, self.tls.as_ref()).await;
        notify::stopping();
        drop((self.address, self.socket));
        tokio::select! {
            all = self.instance.stop(&self.settings) => if all {
                tracing::info!("stopped");
            } else {
                tracing::warn!("stopped without releasing all leases and locks; they expire on their own");
            },
            name = signals.stop() => bail!("received a second stop signal ({name}); exited immediately"),
        }
        telemetry::flush(&self.telemetry).await;
        end
    }
}

/// Opens the store and ensures that an administrator key exists.
async fn open_store(
    settings: &Settings,
    telemetry: &Telemetry,
    markers: &CrashMarkers,
) -> Result<(Arc<dyn Store>, AdminKey)> {
    let store = telemetry::store(store::open(settings, markers).await?, telemetry);
    // The engine and the services use it too: only calls of the API are counted.
    let store = share_connections(store);
    let key = initialize(&*store, settings).await;
    let key = key.map_err(|error| store::explain_error(error, settings))?;
    Ok((store, key))
}

async fn initialize(store: &dyn Store, settings: &Settings) -> Result<AdminKey> {
    engine_mismatch::check(store, settings.engine.kind).await?;
    let key = admin_key::ensure(store, &settings.data_dir).await?;
    if matches!(key, AdminKey::Created(_)) && !store.capabilities().shared {
        create_first_workspace(store).await?;
    }
    Ok(key)
}

/// Creates the default workspace at the first start of a single-process store.
async fn create_first_workspace(store: &dyn Store) -> Result<()> {
    if store.workspace_list(Page::first(1)).await?.is_empty() {
        let new = NewWorkspace {
            id: leasehold_store::fresh_id(),
            name: FIRST_WORKSPACE.to_owned(),
            plan: Plan::Pro,
            limit_override: None,
        };
        leasehold_ops::workspace::create(store, &new, &leasehold_store::Actor::Local).await?;
    }
    Ok(())
}

/// Refuses to start if the engine is not the one that has the open executions. An engine that does not answer is compared later; until then nothing starts.
async fn compare_engine(store: &dyn Store, engine: &dyn Engine, settings: &Settings) -> Result<()> {
    match leasehold_runtime::compare_engine(store, engine).await {
        Ok(EngineComparison::Same) => Ok(()),
        Ok(EngineComparison::Other(reason)) => {
            bail!(Failure::usage(format!(
                "cannot start with this engine: {reason}"
            )))
        }
        Err(leasehold_runtime::Error::Engine(error)) => {
            tracing::warn!(%error, "engine not compared with the recorded one yet; nothing starts until it is");
            Ok(())
        }
        Err(leasehold_runtime::Error::Store(error)) => {
            Err(store::explain_error(error.into(), settings))
        }
        Err(error @ leasehold_runtime::Error::Panicked(_)) => Err(error.into()),
    }
}

/// Explains why the server cannot listen.
fn listen_failure(error: ListenError) -> Failure {
    match error {
        ListenError::AddressInUse(address) => Failure::new(
            Exit::InUse,
            format!(
                "cannot listen on {address}: in use by another process; stop it, or choose another with --listen"
            ),
        ),
        ListenError::Bind { address, source } => Failure::usage(format!(
            "cannot listen on {address}: {source}; choose another with --listen"
        )),
    }
}

fn tls(settings: &ServerSettings) -> Result<Option<Tls>> {
    match (&settings.tls_certificate_file, &settings.tls_key_file) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::read(certificate, key);
            Ok(Some(
                tls.map_err(|error| Failure::usage(error.to_string()))?,
            ))
        }
        _ => Ok(None),
    }
}

fn greet(settings: &Settings, address: SocketAddr, tls: bool, key: &AdminKey) {
    let greeting = Greeting {
        address,
        tls,
        store: &store::redacted_url(&settings.store_url()),
        data: &settings.data_dir,
        engine: &engine::describe(settings),
        key,
    };
    // A closed standard output does not stop the server.
    let _ = std::io::stdout().write_all(greeting.text().as_bytes());
    if !tls && !address.ip().is_loopback() {
        tracing::warn!(%address, "listening without TLS on a non-loopback address");
    }
}

/// The engine before its node runners are started.
struct StartingEngine {
    engine: Arc<dyn Engine>,
    builder: engine::EngineBuilder,
}

/// The API server and the background services.
struct Instance {
    runtime: Runtime,
    /// The node runners of the embedded engine.
    runners: Option<NodeRunner>,
    /// `None` after the task has ended; a finished handle must not be polled again.
    serving: Option<JoinHandle<DrainReport>>,
    stop: CancellationToken,
}

impl Instance {
    fn start(
        settings: &Settings,
        owner: &str,
        store: Arc<dyn Store>,
        engine: StartingEngine,
        server: Server,
        telemetry: Telemetry,
    ) -> Result<Self> {
        let address = server.address();
        let temporal = settings.engine.kind == EngineKind::Temporal;
        let temporal = temporal.then_some(&settings.temporal);
        let dispatches = settings.engine.enabled;
        let StartingEngine { engine, builder } = engine;
        let runners = builder.start_runners(&store, settings)?;
        let engine = telemetry::engine(engine, &telemetry);
        let mut options = settings.runtime(owner);
        options.heartbeat.listens = Some(address.to_string());
        options.telemetry = telemetry.clone();
        let runtime = Runtime::start(store.clone(), Some(engine.clone()), options);
        let breaker = Arc::clone(runtime.circuit_breaker());
        let stop = CancellationToken::new();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            listens = %address,
            store = store::redacted_url(&settings.store_url()),
            engine = engine.name(),
            temporal = temporal.map(|temporal| &*temporal.address),
            namespace = temporal.map(|temporal| &*temporal.namespace),
            dispatch = dispatches,
            instance = owner,
            "leasehold is running"
        );
        let state = State::new(StateParts {
            store,
            engine: Some(engine),
            watch: Arc::new(engine::EngineMonitor {
                breaker,
                dispatches,
            }),
            options: settings.server.options(),
            telemetry,
            stop: stop.clone(),
        });
        Ok(Self {
            runtime,
            runners,
            serving: Some(tokio::spawn(server.serve(state))),
            stop,
        })
    }

    /// Runs until a stop signal arrives, a component crashes, or a newer program has migrated the schema and this one may not use it.
    async fn run(&mut self, signals: &mut Signals, tls: Option<&Tls>) -> Result<()> {
        let mut schema_refused = pin!(self.runtime.schema_refused());
        let mut engine_refused = pin!(self.runtime.engine_refused());
        loop {
            let order = tokio::select! {
                order = signals.next() => order,
                error = self.runtime.crashed() => {
                    tracing::error!(error, "service crashed; stopping");
                    bail!("service crashed: {error}");
                }
                reason = &mut schema_refused => {
                    tracing::error!(reason, "schema is too new for this program; stopping");
                    bail!(Failure::new(Exit::Schema, format!("stopped: {reason}")));
                }
                reason = &mut engine_refused => {
                    tracing::error!(reason, "engine is not the recorded one; stopping");
                    bail!(Failure::usage(format!("stopped: {reason}")));
                }
                error = node_runner_crash(&mut self.runners) => {
                    tracing::error!(error, "node runner crashed; stopping");
                    bail!("node runner crashed: {error}");
                }
                ended = api_task_ended(&mut self.serving) => {
                    let error = ended
                        .err()
                        .map_or("exited unexpectedly".to_owned(), |error| error.to_string());
                    tracing::error!(error, "API server crashed; stopping");
                    bail!("API server crashed: {error}");
                }
            };
            match order {
                SignalAction::Stop(signal) => {
                    tracing::info!(signal, "stopping; draining work in progress");
                    return Ok(());
                }
                SignalAction::ReloadCertificate => reload_certificate(tls),
            }
        }
    }

    /// The graceful drain: stops the API and the services, each within its drain timeout; returns whether everything was released.
    async fn stop(self, settings: &Settings) -> bool {
        self.stop.cancel();
        let served = async {
            // A crash was logged when it happened.
            if let Some(serving) = self.serving
                && let Ok(DrainReport { cut }) = serving.await
                && cut > 0
            {
                tracing::warn!(cut, "connections closed before their calls finished");
            }
        };
        let serving = settings.server.drain_timeout.0 + STOP_GRACE;
        let services = settings.dispatch.drain_timeout.0 + STOP_GRACE;
        // Node runners have an additional grace period after their drain timeout.
        let nodes = settings.embedded.drain_timeout.0 + 2 * STOP_GRACE;
        let drained = async {
            if let Some(runners) = self.runners {
                runners.stop().await;
            }
        };
        let (_, stopped, drained) = tokio::join!(
            tokio::time::timeout(serving, served),
            tokio::time::timeout(services, self.runtime.stop()),
            tokio::time::timeout(nodes, drained),
        );
        stopped.is_ok() && drained.is_ok()
    }
}

/// Returns when the node runners crash; never without node runners.
async fn node_runner_crash(runners: &mut Option<NodeRunner>) -> String {
    match runners {
        Some(runners) => runners.crashed().await,
        None => std::future::pending().await,
    }
}

/// Waits for the API task and clears the handle; never returns once cleared.
async fn api_task_ended(
    serving: &mut Option<JoinHandle<DrainReport>>,
) -> Result<DrainReport, JoinError> {
    let Some(handle) = serving else {
        return std::future::pending().await;
    };
    let ended = handle.await;
    *serving = None;
    ended
}

fn reload_certificate(tls: Option<&Tls>) {
    match tls.map(Tls::reload) {
        Some(Ok(())) => tracing::info!("TLS certificate reloaded"),
        Some(Err(error)) => {
            tracing::error!(%error, "failed to reload the TLS certificate; keeping the current one")
        }
        None => {}
    }
}

/// A unique name for this process.
pub(crate) fn instance_id() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "leasehold" } else { host };
    let random: leasehold_core::RequestId = leasehold_store::fresh_id();
    let short: String = random.to_string().chars().rev().take(12).collect();
    let host: String = host.chars().take(100).collect();
    format!("{host}-{}-{short}", std::process::id())
}
