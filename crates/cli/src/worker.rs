//! `leasehold worker`: loads and checks its settings, then execs the Temporal worker program. Knows no store; talks to the server over HTTP.

use crate::settings::{LoadedSettings, Origin, Origins, WorkerSettings};
use crate::settings_flags::ConfigFlags;
use crate::{engine, serve};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use leasehold_client::api::Code;
use leasehold_client::api::key::Scope;
use leasehold_client::{Client, ClientError, ClientOptions};
use leasehold_console::{Exit, Failure, private_variables};
use leasehold_engine_temporal::{
    GRAPH_WORKFLOW_TYPE, TemporalEngine, TemporalOptions, WORKER_PROGRAM, WorkerConfig,
};
use leasehold_process::logging::{self, LogFormat};
use std::fs::File;
use std::io::Seek;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Holds the key. There is no flag for it because every user of the machine can read the flags of a process.
const KEY_VARIABLE: &str = "LEASEHOLD_KEY";
/// Holds the address of the server, as for the client commands. The settings override it.
const SERVER_VARIABLE: &str = "LEASEHOLD_SERVER";

/// Flags of `leasehold worker`; other settings come from the file or the environment.
#[derive(Args)]
pub(crate) struct WorkerCommand {
    #[command(flatten)]
    config_flags: ConfigFlags,
    /// Server URL; required here, as worker.server or in the variable LEASEHOLD_SERVER.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// File that contains only the API key, instead of the variable LEASEHOLD_KEY.
    #[arg(long, value_name = "FILE")]
    key_file: Option<String>,
    /// CA certificate (PEM) to verify the server with, instead of the system's CAs.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<String>,
    /// Maximum number of concurrent calls and tasks [default: 1000].
    #[arg(long, value_name = "N")]
    concurrency: Option<usize>,
    /// Temporal address, as `host:port` or a URL [default: 127.0.0.1:7233].
    #[arg(long, value_name = "ADDRESS")]
    temporal_address: Option<String>,
    /// Temporal namespace [default: default].
    #[arg(long, value_name = "NAME")]
    temporal_namespace: Option<String>,
    /// Temporal task queue of graphs; must equal the server's setting [default: leasehold].
    #[arg(long, value_name = "NAME")]
    task_queue: Option<String>,
}

impl WorkerCommand {
    pub(crate) fn run(&self) -> Result<()> {
        let LoadedSettings { settings, origins } = self.config_flags.settings(vec![
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
        settings.http_nodes.outbound().map_err(usage_error)?;
        let access = access(&settings.worker, &origins)?;
        let temporal = engine::temporal_options(&settings.temporal, &serve::instance_id());
        let temporal = temporal.map_err(usage_error)?;
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start the async runtime")?
            .block_on(check(&access.client, &temporal))?;
        become_worker(&WorkerConfig {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            temporal,
            options: settings.worker.options(),
            server: access.server,
            key: access.key,
            server_ca: access.ca,
            http_allow: settings.http_nodes.allow,
            http_deny: settings.http_nodes.deny,
            log_level: settings.log.level,
            log_json: settings.log.format == LogFormat::Json,
        })
    }
}

/// Checks everything that does not need Temporal's SDK.
async fn check(client: &Client, temporal: &TemporalOptions) -> Result<()> {
    if temporal.graph_workflow_type != GRAPH_WORKFLOW_TYPE {
        return Err(usage_error(anyhow!(
            "temporal.graph_workflow_type: must be {GRAPH_WORKFLOW_TYPE} for this worker, is `{}`",
            temporal.graph_workflow_type
        )));
    }
    TemporalEngine::new(temporal.clone()).map_err(|error| usage_error(error.into()))?;
    check_key(client).await
}

/// Replaces this process by the worker program (`exec`), so that signals reach it. Returns only on failure.
///
/// Passes the configuration in an unnamed file: other users can read the flags and the environment of a process.
fn become_worker(config: &WorkerConfig) -> Result<()> {
    let mut file = unnamed_file().context("cannot write the worker's configuration")?;
    serde_json::to_writer(&mut file, config)?;
    file.rewind()?;
    let program = worker_program();
    logging::finish();
    let mut command = Command::new(&program);
    for variable in private_variables() {
        command.env_remove(variable);
    }
    let error = command.stdin(file).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        bail!(
            "cannot find {}: the Temporal worker program is installed beside `leasehold`. \
             In a checkout, build it with `cargo build --release -p {WORKER_PROGRAM}`",
            program.display()
        );
    }
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

/// In memory, because the file system of a container may be read-only.
#[cfg(target_os = "linux")]
fn unnamed_file() -> std::io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("leasehold-worker", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn unnamed_file() -> std::io::Result<File> {
    tempfile::tempfile()
}

/// The worker program beside this program, where packages install it.
fn worker_program() -> PathBuf {
    match std::env::current_exe() {
        Ok(this) => this.with_file_name(WORKER_PROGRAM),
        Err(_) => PathBuf::from(WORKER_PROGRAM),
    }
}

/// Fails on an invalid key. Tolerates an unreachable server: the worker retries every task.
async fn check_key(client: &Client) -> Result<()> {
    match client.key_me().await {
        Ok(key) if matches!(key.scope, Scope::Workspace { .. }) => {
            bail!(Failure::new(
                Exit::Denied,
                "access denied: a workspace key cannot run a worker; use a worker or administrator key"
            ))
        }
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(Code::Unauthenticated) => {
            bail!(Failure::new(
                Exit::Denied,
                "the server rejected the API key: revoked, expired, or a key of another server"
            ))
        }
        Err(error @ ClientError::Unexpected(_)) => Err(error).context("worker.server"),
        Err(error) => {
            tracing::warn!(%error, "server is unreachable; tasks wait until it answers");
            Ok(())
        }
    }
}

/// The worker's access to the server.
struct Access {
    server: String,
    client: Client,
    key: String,
    ca: Option<String>,
}

fn access(settings: &WorkerSettings, origins: &Origins) -> Result<Access> {
    let ca = match &settings.tls_ca_file {
        Some(file) => Some(engine::read_text("worker.tls_ca_file", file).map_err(usage_error)?),
        None => None,
    };
    let options = ClientOptions {
        ca_pem: ca.clone().map(String::into_bytes),
        ..ClientOptions::default()
    };
    let key = key(settings, origins)?;
    let server = settings.server.clone();
    let Some(server) = server.or_else(|| variable(SERVER_VARIABLE)) else {
        bail!(Failure::usage(
            "no server address: an API key goes only to an address that is set with it; set --server or worker.server"
        ));
    };
    let client = Client::with(&server, &key, options);
    let client = client.context("worker.server").map_err(usage_error)?;
    Ok(Access {
        server,
        client,
        key,
        ca,
    })
}

/// Marks an error as a usage error.
fn usage_error(error: anyhow::Error) -> anyhow::Error {
    Failure::usage(format!("{error:#}")).into()
}

/// Order: flag, environment variable, settings. The variable goes only to an address of a flag or of the environment: a settings file may be another
/// person's, and would get the key of the person who runs the worker.
fn key(settings: &WorkerSettings, origins: &Origins) -> Result<String> {
    let by_flag = matches!(origins.get("worker.key_file"), Some(Origin::Flag(_)));
    let server_file = match origins.get("worker.server") {
        Some(file @ Origin::File { .. }) => Some(file),
        Some(Origin::Variable(_) | Origin::Flag(_)) | None => None,
    };
    let in_environment = variable(KEY_VARIABLE);
    let key = match (&settings.key_file, in_environment, &settings.key) {
        (Some(file), _, _) if by_flag => from_file(file)?,
        (_, Some(key), _) if server_file.is_none() => key,
        (Some(file), _, _) => from_file(file)?,
        (None, _, Some(key)) => key.clone(),
        (None, Some(_), None) => bail!(Failure::usage(format!(
            "no API key for the worker.server in {}: {KEY_VARIABLE} goes only to an address that is set with it; set --server or \
             {SERVER_VARIABLE}, or give the worker its key with --key-file or worker.key_file",
            server_file.map(ToString::to_string).unwrap_or_default()
        ))),
        (None, None, None) => bail!(Failure::new(
            Exit::Denied,
            format!("no API key: set {KEY_VARIABLE}, or --key-file")
        )),
    };
    let key = key.trim();
    if leasehold_core::key::Secret::parse(key).is_none() {
        bail!(Failure::new(
            Exit::Denied,
            "invalid API key: a worker key starts with lh_worker_ and must be copied completely"
        ));
    }
    Ok(key.to_owned())
}

/// Returns an environment variable that is not empty.
fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    value.filter(|value| !value.trim().is_empty())
}

fn from_file(file: &Path) -> Result<String> {
    engine::read_text("worker.key_file", file).map_err(usage_error)
}
