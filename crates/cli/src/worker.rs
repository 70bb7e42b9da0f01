//! `leasehold worker`: runs graphs on Temporal until told to stop. Knows no store; the server is reached by HTTP.

use crate::place::Basics;
use crate::settings::{Settings, WorkerSettings};
use crate::signals::Signals;
use crate::{engine, serve};
use anyhow::{Context, Result, bail};
use clap::Args;
use leasehold_client::api::Code;
use leasehold_client::api::key::Scope;
use leasehold_client::{Client, ClientError, ClientOptions};
use leasehold_console::{Exit, Failure};
use leasehold_engine_temporal::TemporalOptions;
use leasehold_engine_temporal::worker::GraphWorker;
use leasehold_outbound::Outbound;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Holds the key. Never a flag: flags are seen by everybody on the machine.
const KEY_VARIABLE: &str = "LEASEHOLD_KEY";
/// Beyond the time to drain: for Temporal to be told.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// The flags; everything else is set in the file or by variables.
#[derive(Args)]
pub(crate) struct WorkerCommand {
    #[command(flatten)]
    basics: Basics,
    /// The server to work for [default: http://127.0.0.1:7777].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// A file with the key and nothing else, instead of the variable LEASEHOLD_KEY.
    #[arg(long, value_name = "FILE")]
    key_file: Option<String>,
    /// Trusts this authority (PEM) for the server's certificate, instead of the system's.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<String>,
    /// Calls and tasks at once [default: 1000].
    #[arg(long, value_name = "N")]
    concurrency: Option<usize>,
    /// Temporal's address, as `host:port` or a URL [default: 127.0.0.1:7233].
    #[arg(long, value_name = "ADDRESS")]
    temporal_address: Option<String>,
    /// Temporal's namespace [default: default].
    #[arg(long, value_name = "NAME")]
    temporal_namespace: Option<String>,
    /// Temporal's task queue of graphs; the server must start them on the same [default: leasehold].
    #[arg(long, value_name = "NAME")]
    task_queue: Option<String>,
}

impl WorkerCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let settings = self.basics.settings(vec![
            ("--server", "worker.server", self.server.clone()),
            ("--key-file", "worker.key_file", self.key_file.clone()),
            ("--ca-file", "worker.tls_ca_file", self.ca_file.clone()),
            (
                "--concurrency",
                "worker.concurrency",
                self.concurrency.map(|count| count.to_string()),
            ),
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
            (
                "--task-queue",
                "temporal.graph_task_queue",
                self.task_queue.clone(),
            ),
        ])?;
        let client = client(&settings.worker, self.key_file.is_some())?;
        let temporal = engine::temporal_options(&settings.temporal, &serve::owner());
        let temporal = temporal.map_err(wrong)?;
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime cannot be started")?
            .block_on(work(settings, client, temporal))
    }
}

async fn work(settings: Settings, client: Client, temporal: TemporalOptions) -> Result<()> {
    let mut signals = Signals::listen(false)?;
    let outbound = Outbound::new(settings.http_nodes.outbound()?)?;
    let identity = temporal.identity.clone();
    let options = settings.worker.options();
    let worker = GraphWorker::new(temporal, options, client.clone(), outbound);
    let worker = worker.map_err(|error| wrong(error.into()))?;
    check_key(&client).await?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        server = settings.worker.server,
        temporal = settings.temporal.address,
        namespace = settings.temporal.namespace,
        task_queue = settings.temporal.graph_task_queue,
        worker = identity,
        "leasehold worker is running"
    );
    let stop = CancellationToken::new();
    let mut working = tokio::spawn(worker.run(stop.clone()));
    let signal = tokio::select! {
        signal = signals.stop() => signal,
        ended = &mut working => {
            ended??;
            bail!("the worker ended by itself");
        }
    };
    tracing::info!(
        signal,
        "stopping: nothing more is taken on, calls under way may end, tasks go on elsewhere"
    );
    stop.cancel();
    let limit = settings.worker.drain_timeout.0 + LAST_WORDS;
    tokio::select! {
        ended = tokio::time::timeout(limit, working) => match ended {
            Ok(ended) => ended??,
            Err(_elapsed) => tracing::warn!("stopped before all was told to Temporal; it finds out by itself"),
        },
        name = signals.stop() => bail!("told to stop again ({name}); left at once"),
    }
    tracing::info!("stopped");
    Ok(())
}

/// A wrong key is told at once. A server that is away is not: it comes back, and the worker waits for it with every task.
async fn check_key(client: &Client) -> Result<()> {
    match client.key_me().await {
        Ok(key) if matches!(key.scope, Scope::Workspace { .. }) => {
            bail!(Failure::new(
                Exit::Denied,
                "the key is a workspace's; a worker needs a worker's key or an administrator's"
            ))
        }
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(Code::Unauthenticated) => {
            bail!(Failure::new(
                Exit::Denied,
                "the server does not accept the key: it was revoked, or is another server's"
            ))
        }
        Err(error @ ClientError::Unexpected(_)) => Err(error).context("worker.server"),
        Err(error) => {
            tracing::warn!(%error, "the server does not answer; tasks wait until it does");
            Ok(())
        }
    }
}

fn client(settings: &WorkerSettings, by_flag: bool) -> Result<Client> {
    let ca_pem = match &settings.tls_ca_file {
        Some(file) => Some(engine::read("worker.tls_ca_file", file).map_err(wrong)?),
        None => None,
    };
    let options = ClientOptions {
        ca_pem,
        ..ClientOptions::default()
    };
    let key = key(settings, by_flag)?;
    let client = Client::with(&settings.server, &key, options);
    client.context("worker.server").map_err(wrong)
}

/// A setting, or a file that it names, is of no use.
fn wrong(error: anyhow::Error) -> anyhow::Error {
    Failure::usage(format!("{error:#}")).into()
}

/// A flag goes before the variable, the variable before the settings.
fn key(settings: &WorkerSettings, by_flag: bool) -> Result<String> {
    let variable = std::env::var(KEY_VARIABLE)
        .ok()
        .filter(|key| !key.trim().is_empty());
    let key = match (&settings.key_file, variable, &settings.key) {
        (Some(file), _, _) if by_flag => from_file(file)?,
        (_, Some(key), _) => key,
        (Some(file), None, _) => from_file(file)?,
        (None, None, Some(key)) => key.clone(),
        (None, None, None) => bail!(Failure::new(
            Exit::Denied,
            format!(
                "there is no key: set {KEY_VARIABLE}, or name a file that holds it with --key-file"
            )
        )),
    };
    let key = key.trim();
    if leasehold_core::key::Secret::parse(key).is_none() {
        bail!(Failure::new(
            Exit::Denied,
            "the key is no key of Leasehold's: it begins with lh_worker_ and is copied whole"
        ));
    }
    Ok(key.to_owned())
}

fn from_file(file: &std::path::Path) -> Result<String> {
    let text = engine::read("worker.key_file", file).map_err(wrong)?;
    let text = String::from_utf8(text).context("worker.key_file: the file holds no text");
    text.map_err(wrong)
}
