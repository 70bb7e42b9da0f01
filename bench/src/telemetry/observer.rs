//! Telemetry during a measurement: off, logs only, or logs with scraped metrics and exported traces. Measures nothing.

use anyhow::{Result, ensure};
use leasehold_core::key::KeyScope;
use leasehold_core::why::EngineFacts;
use leasehold_server::{DrainReport, EngineWatch, Server, ServerOptions, State, StateParts};
use leasehold_store::Store;
use leasehold_telemetry::{Telemetry, TraceOptions, Tracer, observe_store};
use leasehold_testkit::{HttpConnection, OtlpReceiver, TempDir, temp_dir};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt};

/// Fifteen times the usual scrape rate.
const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);
/// The default of the setting `traces.per_second`.
const TRACES_PER_SECOND: u32 = 50;
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How much telemetry is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TelemetryLevel {
    Off,
    /// Logs at the default level.
    Logs,
    /// Logs, scraped metrics, exported traces.
    All,
}

impl TelemetryLevel {
    pub(super) const ALL: [Self; 3] = [Self::Off, Self::Logs, Self::All];
}

/// The process's log file.
pub(super) struct LogFile {
    level: Handle<LevelFilter, Registry>,
    _dir: TempDir,
}

impl LogFile {
    /// Installs the log subscriber; can run once in a process.
    pub(super) fn begin() -> Result<Self> {
        let dir = temp_dir();
        let file = std::fs::File::create(dir.path().join("log"))?;
        let (filter, level) = reload::Layer::new(LevelFilter::OFF);
        let lines = fmt::layer().with_ansi(false).with_target(false);
        tracing_subscriber::registry()
            .with(filter)
            .with(lines.with_writer(Mutex::new(file)))
            .try_init()?;
        Ok(Self { level, _dir: dir })
    }
}

/// A store under measurement, with its telemetry.
pub(super) struct ObservedRun<'a> {
    pub(super) store: Arc<dyn Store>,
    pub(super) telemetry: Telemetry,
    logs: &'a LogFile,
    exporters: Option<Exporters>,
}

struct Exporters {
    stop: CancellationToken,
    serving: JoinHandle<DrainReport>,
    scraping: JoinHandle<Result<u32>>,
    receiver: OtlpReceiver,
}

struct NoEngine;

impl EngineWatch for NoEngine {
    fn facts(&self) -> EngineFacts {
        EngineFacts::Missing
    }
}

impl<'a> ObservedRun<'a> {
    pub(super) async fn begin(
        store: Arc<dyn Store>,
        logs: &'a LogFile,
        level: TelemetryLevel,
    ) -> Result<Self> {
        let filter = match level {
            TelemetryLevel::Off => LevelFilter::OFF,
            TelemetryLevel::Logs | TelemetryLevel::All => LevelFilter::INFO,
        };
        logs.level.reload(filter)?;
        let mut observed = Self {
            store,
            telemetry: Telemetry::default(),
            logs,
            exporters: None,
        };
        if level == TelemetryLevel::All {
            observed.start_exporters().await?;
        }
        Ok(observed)
    }

    async fn start_exporters(&mut self) -> Result<()> {
        let receiver = OtlpReceiver::start();
        let options = TraceOptions {
            endpoint: receiver.endpoint(),
            per_second: TRACES_PER_SECOND,
            instance: "bench".to_owned(),
        };
        self.telemetry.tracer = Tracer::export(&options, self.telemetry.metrics.clone())?;
        self.store = Arc::new(observe_store(self.store.clone(), &self.telemetry));
        let spec = leasehold_ops::key::KeySpec::full("bench", KeyScope::Admin);
        let by = leasehold_store::Actor::Local;
        let (_, key) = leasehold_ops::key::create(&*self.store, &spec, &by).await?;
        let server = Server::bind("127.0.0.1:0", None).await?;
        let address = server.address();
        let stop = CancellationToken::new();
        let state = State::new(StateParts {
            store: self.store.clone(),
            engine: None,
            watch: Arc::new(NoEngine),
            options: ServerOptions::default(),
            stop: stop.clone(),
            telemetry: self.telemetry.clone(),
        });
        self.exporters = Some(Exporters {
            serving: tokio::spawn(server.serve(state)),
            scraping: tokio::spawn(scrape(address, key.reveal().to_owned(), stop.clone())),
            stop,
            receiver,
        });
        Ok(())
    }

    /// Stops the exporters and checks that metrics were scraped.
    pub(super) async fn end(self) -> Result<()> {
        self.logs.level.reload(LevelFilter::OFF)?;
        let Some(exporters) = self.exporters else {
            return Ok(());
        };
        self.telemetry.tracer.stop(FLUSH_TIMEOUT).await;
        exporters.stop.cancel();
        let scrapes = exporters.scraping.await??;
        ensure!(scrapes > 0, "no metrics were scraped");
        exporters.serving.await?;
        drop(exporters.receiver);
        Ok(())
    }
}

/// Scrapes metrics until stopped and returns the number of scrapes.
async fn scrape(address: SocketAddr, key: String, stop: CancellationToken) -> Result<u32> {
    let mut scrapes = 0;
    loop {
        let mut connection = HttpConnection::open(address).await?;
        let answer = connection.call("GET", "/metrics", &key, None).await?;
        ensure!(
            answer.status == 200,
            "GET /metrics failed: {}",
            answer.text()
        );
        scrapes += 1;
        tokio::select! {
            () = stop.cancelled() => return Ok(scrapes),
            () = tokio::time::sleep(SCRAPE_INTERVAL) => {}
        }
    }
}
