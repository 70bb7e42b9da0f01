//! `leasehold worker`: reads and checks its settings, then becomes the program that runs graphs on Temporal. Knows no store; the server is reached by HTTP.

use crate::place::Basics;
use crate::settings::WorkerSettings;
use crate::{engine, serve};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use leasehold_client::api::Code;
use leasehold_client::api::key::Scope;
use leasehold_client::{Client, ClientError, ClientOptions};
use leasehold_console::{Exit, Failure};
use leasehold_engine_temporal::{
    GRAPH_WORKFLOW_TYPE, TemporalEngine, TemporalOptions, WORKER_PROGRAM, WorkerConfig,
};
use leasehold_process::logging::{self, LogFormat};
use std::fs::File;
use std::io::Seek;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Holds the key. Never a flag: flags are seen by everybody on the machine.
const KEY_VARIABLE: &str = "LEASEHOLD_KEY";

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
        settings.http_nodes.outbound().map_err(wrong)?;
        let access = access(&settings.worker, self.key_file.is_some())?;
        let temporal = engine::temporal_options(&settings.temporal, &serve::owner());
        let temporal = temporal.map_err(wrong)?;
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("the async runtime cannot be started")?
            .block_on(check(&access.client, &temporal))?;
        become_worker(&WorkerConfig {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            temporal,
            options: settings.worker.options(),
            server: settings.worker.server,
            key: access.key,
            server_ca: access.ca,
            http_allow: settings.http_nodes.allow,
            log_level: settings.log.level,
            log_json: settings.log.format == LogFormat::Json,
        })
    }
}

/// Checks what can be checked without Temporal's SDK.
async fn check(client: &Client, temporal: &TemporalOptions) -> Result<()> {
    if temporal.graph_workflow_type != GRAPH_WORKFLOW_TYPE {
        return Err(wrong(anyhow!(
            "temporal.graph_workflow_type: the worker runs graphs as the workflow type {GRAPH_WORKFLOW_TYPE}, and the settings say `{}`",
            temporal.graph_workflow_type
        )));
    }
    TemporalEngine::new(temporal.clone()).map_err(|error| wrong(error.into()))?;
    check_key(client).await
}

/// Becomes the program that runs graphs, with the same process id: signals reach it as they reached this one. Returns only if that fails.
///
/// The configuration goes through a file without a name: flags and variables can be seen by others on the machine.
fn become_worker(config: &WorkerConfig) -> Result<()> {
    let mut file = unnamed_file().context("the worker's configuration cannot be written")?;
    serde_json::to_writer(&mut file, config)?;
    file.rewind()?;
    let program = worker_program();
    logging::finish();
    let error = Command::new(&program)
        .stdin(file)
        .env_remove(KEY_VARIABLE)
        .exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        bail!(
            "{} is missing: it runs graphs on Temporal and is installed beside `leasehold`. \
             In a checkout, build it with `cargo build --release -p {WORKER_PROGRAM}`",
            program.display()
        );
    }
    Err(error).with_context(|| format!("{} cannot be started", program.display()))
}

/// In memory: the folders of a container may be read-only.
#[cfg(target_os = "linux")]
fn unnamed_file() -> std::io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("leasehold-worker", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn unnamed_file() -> std::io::Result<File> {
    tempfile::tempfile()
}

/// Beside this program, where packages put it.
fn worker_program() -> PathBuf {
    match std::env::current_exe() {
        Ok(this) => this.with_file_name(WORKER_PROGRAM),
        Err(_) => PathBuf::from(WORKER_PROGRAM),
    }
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

/// How the worker reaches the server.
struct Access {
    client: Client,
    key: String,
    ca: Option<String>,
}

fn access(settings: &WorkerSettings, by_flag: bool) -> Result<Access> {
    let ca = match &settings.tls_ca_file {
        Some(file) => Some(engine::read_text("worker.tls_ca_file", file).map_err(wrong)?),
        None => None,
    };
    let options = ClientOptions {
        ca_pem: ca.clone().map(String::into_bytes),
        ..ClientOptions::default()
    };
    let key = key(settings, by_flag)?;
    let client = Client::with(&settings.server, &key, options);
    let client = client.context("worker.server").map_err(wrong)?;
    Ok(Access { client, key, ca })
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

fn from_file(file: &Path) -> Result<String> {
    engine::read_text("worker.key_file", file).map_err(wrong)
}
