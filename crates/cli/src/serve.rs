//! `leasehold serve`: opens the store, makes the engine, serves the API and runs the services until told to stop.

use crate::address::{self, AddressFile};
use crate::admin_key::AdminKey;
use crate::greeting::Greeting;
use crate::place::Place;
use crate::settings::{EngineKind, ServerSettings, Settings};
use crate::{admin_key, engine, notify, other_engine, store, telemetry};
use anyhow::{Context, Result, bail};
use clap::Args;
use leasehold_console::{Exit, Failure};
use leasehold_core::Plan;
use leasehold_engine_embedded::NodeRunners;
use leasehold_process::signals::{Order, Signals};
use leasehold_runtime::Runtime;
use leasehold_server::{Drained, ListenError, Parts, Server, State, Tls};
use leasehold_store::workspace::NewWorkspace;
use leasehold_store::{Page, Store};
use leasehold_telemetry::Telemetry;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

/// What commands use where no workspace is named.
const FIRST_WORKSPACE: &str = "default";

/// Beyond the time to drain: for giving back claims and locks to a store that may not answer.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The flags; everything else is set in the file or by variables.
#[derive(Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    place: Place,
    /// Where the API listens, as `host:port` [default: 127.0.0.1:7777].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// What executions are started in [default: embedded].
    #[arg(long, value_enum)]
    engine: Option<EngineKind>,
    /// Temporal's address, as `host:port` or a URL.
    #[arg(long, value_name = "ADDRESS")]
    temporal_address: Option<String>,
    /// Temporal's namespace.
    #[arg(long, value_name = "NAME")]
    temporal_namespace: Option<String>,
}

impl Serve {
    pub(crate) fn run(&self) -> Result<()> {
        let kind = self.engine.map(|kind| match kind {
            EngineKind::Embedded => "embedded".to_owned(),
            EngineKind::Temporal => "temporal".to_owned(),
        });
        let settings = self.place.settings(vec![
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
                "--temporal-address and --temporal-namespace need --engine temporal"
            ));
        }
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime cannot be started")?
            .block_on(serve(settings))
    }
}

/// Serves with these settings until told to stop.
pub(crate) async fn serve(settings: Settings) -> Result<()> {
    // Before anything is opened, so that a signal is never missed.
    let mut signals = Signals::listen(settings.server.tls_certificate_file.is_some())?;
    match Serving::begin(settings, &mut signals, greet).await? {
        Some(serving) => serving.until_told(signals).await,
        None => Ok(()),
    }
}

/// A server that has begun.
pub(crate) struct Serving {
    settings: Settings,
    url: String,
    tls: Option<Tls>,
    address: Option<AddressFile>,
    instance: Instance,
    telemetry: Telemetry,
}

impl Serving {
    /// Begins, and greets when it listens; none if it was told to stop before the store was ready.
    pub(crate) async fn begin(
        settings: Settings,
        signals: &mut Signals,
        greet: impl FnOnce(&Settings, SocketAddr, bool, &AdminKey),
    ) -> Result<Option<Self>> {
        let owner = owner();
        let telemetry = telemetry::begin(&settings, &owner)?;
        let tls = tls(&settings.server)?;
        let engine = engine::Prepared::new(&settings, &owner);
        let engine = engine.map_err(|error| Failure::usage(format!("{error:#}")))?;
        let (store, key) = tokio::select! {
            ready = prepare(&settings, &telemetry) => ready?,
            name = signals.stop() => {
                tracing::info!(signal = name, "told to stop before the store was ready");
                return Ok(None);
            }
        };
        let server = Server::bind(&settings.server.listen, tls.clone()).await;
        let server = server.map_err(refused)?;
        greet(&settings, server.address(), tls.is_some(), &key);
        let url = address::url(server.address(), tls.is_some());
        // Before it says that it runs: whoever waited for that finds the way.
        let address = AddressFile::write(&settings.data_dir, &url);
        let seen = telemetry.clone();
        let instance = Instance::start(&settings, &owner, store, engine, server, seen)?;
        notify::ready();
        Ok(Some(Self {
            settings,
            url,
            tls,
            address,
            instance,
            telemetry,
        }))
    }

    /// Where it is, for this machine.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Serves until it is told to stop, and then ends in order.
    pub(crate) async fn until_told(mut self, mut signals: Signals) -> Result<()> {
        let end = self.instance.run(&mut signals, self.tls.as_ref()).await;
        notify::stopping();
        drop(self.address);
        tokio::select! {
            all = self.instance.stop(&self.settings) => if all {
                tracing::info!("stopped");
            } else {
                tracing::warn!("stopped before all was given back: the store does not answer; leases and locks end by themselves");
            },
            name = signals.stop() => bail!("told to stop again ({name}); left at once"),
        }
        telemetry::end(&self.telemetry).await;
        end
    }
}

/// The store, and that somebody can get in.
async fn prepare(settings: &Settings, telemetry: &Telemetry) -> Result<(Arc<dyn Store>, AdminKey)> {
    let store = telemetry::store(store::open(settings).await?, telemetry);
    let key = settle_in(&*store, settings).await;
    let key = key.map_err(|error| store::told(error, settings))?;
    Ok((store, key))
}

async fn settle_in(store: &dyn Store, settings: &Settings) -> Result<AdminKey> {
    other_engine::refuse(store, settings.engine.kind).await?;
    let key = admin_key::ensure(store, &settings.data_dir).await?;
    if matches!(key, AdminKey::Made(_)) && !store.capabilities().shared {
        make_first_workspace(store).await?;
    }
    Ok(key)
}

/// Somebody's very first start: there is a workspace to begin with. Fleets make their own.
async fn make_first_workspace(store: &dyn Store) -> Result<()> {
    if store.workspace_list(Page::first(1)).await?.is_empty() {
        let new = NewWorkspace {
            id: leasehold_store::fresh_id(),
            name: FIRST_WORKSPACE.to_owned(),
            plan: Plan::Pro,
            limit_override: None,
        };
        leasehold_ops::workspace::create(store, &new).await?;
    }
    Ok(())
}

/// Why it cannot listen.
fn refused(error: ListenError) -> Failure {
    match error {
        ListenError::Taken(address) => Failure::new(
            Exit::InUse,
            format!(
                "{address} is taken by another process; stop it, or choose another with --listen"
            ),
        ),
        ListenError::Refused { address, source } => Failure::usage(format!(
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
        store: &store::shown(&settings.store_url()),
        data: &settings.data_dir,
        engine: &engine::shown(settings),
        key,
    };
    // A server whose standard output nobody reads serves all the same.
    let _ = std::io::stdout().write_all(greeting.text().as_bytes());
    if !tls && !address.ip().is_loopback() {
        tracing::warn!(%address, "listening without TLS on an address that others can reach");
    }
}

/// The API and the services.
struct Instance {
    runtime: Runtime,
    /// What works on the embedded engine's nodes.
    runners: Option<NodeRunners>,
    /// None once it has ended: what has ended must not be asked again.
    serving: Option<JoinHandle<Drained>>,
    stop: CancellationToken,
}

impl Instance {
    fn start(
        settings: &Settings,
        owner: &str,
        store: Arc<dyn Store>,
        engine: engine::Prepared,
        server: Server,
        telemetry: Telemetry,
    ) -> Result<Self> {
        let address = server.address();
        let temporal = settings.engine.kind == EngineKind::Temporal;
        let temporal = temporal.then_some(&settings.temporal);
        let dispatches = settings.engine.enabled;
        let (engine, runners) = engine.start(&store, settings, owner)?;
        let engine = telemetry::engine(engine, &telemetry);
        let mut options = settings.runtime(owner);
        options.beacon.listens = Some(address.to_string());
        options.telemetry = telemetry.clone();
        let runtime = Runtime::start(store.clone(), Some(engine.clone()), options);
        let gate = Arc::clone(runtime.gate());
        let stop = CancellationToken::new();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            listens = %address,
            store = store::shown(&settings.store_url()),
            engine = engine.name(),
            temporal = temporal.map(|temporal| &*temporal.address),
            namespace = temporal.map(|temporal| &*temporal.namespace),
            dispatch = dispatches,
            instance = owner,
            "leasehold is running"
        );
        let state = State::new(Parts {
            store,
            engine: Some(engine),
            watch: Arc::new(engine::Watch { gate, dispatches }),
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

    /// Returns when it is told to stop, or when something has broken.
    async fn run(&mut self, signals: &mut Signals, tls: Option<&Tls>) -> Result<()> {
        loop {
            let order = tokio::select! {
                order = signals.next() => order,
                broken = self.runtime.broken() => {
                    tracing::error!(error = broken, "a service has broken; stopping");
                    bail!("a service has broken: {broken}");
                }
                broken = broken(&mut self.runners) => {
                    tracing::error!(error = broken, "what works on nodes has broken; stopping");
                    bail!("what works on nodes has broken: {broken}");
                }
                ended = ended(&mut self.serving) => {
                    let error = ended.err().map_or("it ended by itself".to_owned(), said);
                    tracing::error!(error, "the API has broken; stopping");
                    bail!("the API has broken: {error}");
                }
            };
            match order {
                Order::Stop(signal) => {
                    tracing::info!(
                        signal,
                        "stopping: no more is admitted, what is under way is finished or given back"
                    );
                    return Ok(());
                }
                Order::Renew => renew(tls),
            }
        }
    }

    /// Lets calls and services end in order, each within its time; says whether all was given back.
    async fn stop(self, settings: &Settings) -> bool {
        self.stop.cancel();
        let served = async {
            // What broke was said when it did; what is cut here was cut by its own time already.
            if let Some(serving) = self.serving
                && let Ok(Drained { cut }) = serving.await
                && cut > 0
            {
                tracing::warn!(cut, "connections were cut: their calls did not end in time");
            }
        };
        let serving = settings.server.drain_timeout.0 + LAST_WORDS;
        let services = settings.dispatch.drain_timeout.0 + LAST_WORDS;
        // A worker's drain has last words of its own for what does not stop.
        let nodes = settings.embedded.drain_timeout.0 + 2 * LAST_WORDS;
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

/// Returns when what works on nodes has broken; never where nothing does.
async fn broken(runners: &mut Option<NodeRunners>) -> String {
    match runners {
        Some(runners) => runners.broken().await,
        None => std::future::pending().await,
    }
}

/// Waits for the end, and takes it; what was taken before never ends.
async fn ended(serving: &mut Option<JoinHandle<Drained>>) -> Result<Drained, JoinError> {
    let Some(handle) = serving else {
        return std::future::pending().await;
    };
    let ended = handle.await;
    *serving = None;
    ended
}

fn said(error: JoinError) -> String {
    error.to_string()
}

fn renew(tls: Option<&Tls>) {
    match tls.map(Tls::renew) {
        Some(Ok(())) => tracing::info!("the certificate was read again; new connections get it"),
        Some(Err(error)) => tracing::error!(%error, "the certificate stays the one it was"),
        None => {}
    }
}

/// A name for this process that no other has or had.
pub(crate) fn owner() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "leasehold" } else { host };
    let random: leasehold_core::RequestId = leasehold_store::fresh_id();
    let short: String = random.to_string().chars().rev().take(12).collect();
    let host: String = host.chars().take(100).collect();
    format!("{host}-{}-{short}", std::process::id())
}
