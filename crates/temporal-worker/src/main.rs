//! The program that runs graphs on Temporal. `leasehold worker` validates the settings and executes this program, which reads them as JSON from standard input.

use anyhow::{Context, Result, bail};
use leasehold_client::{Client, ClientOptions};
use leasehold_engine_temporal::WorkerConfig;
use leasehold_outbound::{Outbound, OutboundOptions};
use leasehold_process::logging::{self, LogFormat};
use leasehold_process::signals::Signals;
use leasehold_temporal_worker::GraphWorker;
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time beyond the drain timeout to report results to Temporal.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

const START_HINT: &str =
    "invalid standard input; run `leasehold worker`, which starts this program";

fn main() -> ExitCode {
    let outcome = run();
    logging::finish();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let config = read()?;
    let format = if config.log_json {
        LogFormat::Json
    } else {
        LogFormat::Text
    };
    logging::start(&config.log_level, format)?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the async runtime")?
        .block_on(work(config))
}

fn read() -> Result<WorkerConfig> {
    let mut input = std::io::stdin();
    if std::env::args_os().len() > 1 || input.is_terminal() {
        bail!(START_HINT);
    }
    let mut text = String::new();
    input.read_to_string(&mut text).context(START_HINT)?;
    let config: WorkerConfig = serde_json::from_str(&text).context(START_HINT)?;
    let version = env!("CARGO_PKG_VERSION");
    if config.version != version {
        bail!(
            "version mismatch: leasehold-temporal-worker is {version}, leasehold is {}; install both from the same release",
            config.version
        );
    }
    Ok(config)
}

async fn work(config: WorkerConfig) -> Result<()> {
    let mut signals = Signals::listen(false)?;
    let temporal = config.temporal.clone();
    let drain_timeout = config.options.drain_timeout;
    let server = config.server.clone();
    let worker = worker(config)?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        server,
        temporal = temporal.address,
        namespace = temporal.namespace,
        task_queue = temporal.graph_task_queue,
        worker = temporal.identity,
        "leasehold worker is running"
    );
    let stop = CancellationToken::new();
    let mut working = tokio::spawn(worker.run(stop.clone()));
    let signal = tokio::select! {
        signal = signals.stop() => signal,
        ended = &mut working => {
            ended??;
            bail!("the worker stopped unexpectedly");
        }
    };
    tracing::info!(signal, "leasehold worker draining");
    stop.cancel();
    tokio::select! {
        ended = tokio::time::timeout(drain_timeout + REPORT_TIMEOUT, working) => match ended {
            Ok(ended) => ended??,
            Err(_elapsed) => tracing::warn!("drain timed out; Temporal will time out the unreported activities"),
        },
        name = signals.stop() => bail!("second signal ({name}); exiting without draining"),
    }
    tracing::info!("stopped");
    Ok(())
}

fn worker(config: WorkerConfig) -> Result<GraphWorker> {
    let options = ClientOptions {
        ca_pem: config.server_ca.map(String::into_bytes),
        ..ClientOptions::default()
    };
    let client = Client::with(&config.server, &config.key, options).context("worker.server")?;
    let rules = |texts: &[String], setting: &'static str| {
        let rules = texts.iter().map(|text| text.parse());
        rules.collect::<Result<_, _>>().context(setting)
    };
    let outbound = Outbound::new(OutboundOptions {
        allow: rules(&config.http_allow, "http_nodes.allow")?,
        deny: rules(&config.http_deny, "http_nodes.deny")?,
    })?;
    Ok(GraphWorker::new(
        config.temporal,
        config.options,
        client,
        outbound,
    )?)
}
