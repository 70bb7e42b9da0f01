//! Who looks: nobody, whoever reads the log, or that and a Prometheus and a collector. Measures nothing.

use anyhow::{Result, ensure};
use leasehold_core::key::KeyScope;
use leasehold_core::why::EngineFacts;
use leasehold_server::{Drained, EngineWatch, Parts, Server, ServerOptions, State};
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

/// Fifteen times as often as most do.
const SCRAPE_EVERY: Duration = Duration::from_secs(1);
/// As the setting `traces.per_second` is by default.
const TRACES_PER_SECOND: u32 = 50;
const LAST_SPANS: Duration = Duration::from_secs(2);

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eyes {
    Nobody,
    /// Logs at the default level.
    Logs,
    /// Logs, metrics that are scraped, traces that are exported.
    All,
}

impl Eyes {
    pub(super) const ALL: [Self; 3] = [Self::Nobody, Self::Logs, Self::All];
}

/// The process's log, in a file.
pub(super) struct Logs {
    level: Handle<LevelFilter, Registry>,
    _folder: TempDir,
}

impl Logs {
    /// Once a process.
    pub(super) fn begin() -> Result<Self> {
        let folder = temp_dir();
        let file = std::fs::File::create(folder.path().join("log"))?;
        let (filter, level) = reload::Layer::new(LevelFilter::OFF);
        let lines = fmt::layer().with_ansi(false).with_target(false);
        tracing_subscriber::registry()
            .with(filter)
            .with(lines.with_writer(Mutex::new(file)))
            .try_init()?;
        Ok(Self {
            level,
            _folder: folder,
        })
    }
}

/// Somebody who looks at what goes on in a store.
pub(super) struct Looking<'a> {
    pub(super) store: Arc<dyn Store>,
    pub(super) telemetry: Telemetry,
    logs: &'a Logs,
    watching: Option<Watching>,
}

struct Watching {
    stop: CancellationToken,
    serving: JoinHandle<Drained>,
    scraping: JoinHandle<Result<u32>>,
    receiver: OtlpReceiver,
}

struct NoEngine;

impl EngineWatch for NoEngine {
    fn facts(&self) -> EngineFacts {
        EngineFacts::Missing
    }
}

impl<'a> Looking<'a> {
    pub(super) async fn begin(store: Arc<dyn Store>, logs: &'a Logs, eyes: Eyes) -> Result<Self> {
        let level = match eyes {
            Eyes::Nobody => LevelFilter::OFF,
            Eyes::Logs | Eyes::All => LevelFilter::INFO,
        };
        logs.level.reload(level)?;
        let mut looking = Self {
            store,
            telemetry: Telemetry::default(),
            logs,
            watching: None,
        };
        if eyes == Eyes::All {
            looking.watch().await?;
        }
        Ok(looking)
    }

    async fn watch(&mut self) -> Result<()> {
        let receiver = OtlpReceiver::start();
        let options = TraceOptions {
            endpoint: receiver.endpoint(),
            per_second: TRACES_PER_SECOND,
            instance: "bench".to_owned(),
        };
        self.telemetry.tracer = Tracer::export(&options, self.telemetry.metrics.clone())?;
        self.store = Arc::new(observe_store(self.store.clone(), &self.telemetry));
        let (_, key) = leasehold_ops::key::create(&*self.store, "bench", KeyScope::Admin).await?;
        let server = Server::bind("127.0.0.1:0", None).await?;
        let address = server.address();
        let stop = CancellationToken::new();
        let state = State::new(Parts {
            store: self.store.clone(),
            engine: None,
            watch: Arc::new(NoEngine),
            options: ServerOptions::default(),
            stop: stop.clone(),
            telemetry: self.telemetry.clone(),
        });
        self.watching = Some(Watching {
            serving: tokio::spawn(server.serve(state)),
            scraping: tokio::spawn(scrape(address, key.reveal().to_owned(), stop.clone())),
            stop,
            receiver,
        });
        Ok(())
    }

    /// Stops looking. What was to be seen must have been.
    pub(super) async fn end(self) -> Result<()> {
        self.logs.level.reload(LevelFilter::OFF)?;
        let Some(watching) = self.watching else {
            return Ok(());
        };
        self.telemetry.tracer.stop(LAST_SPANS).await;
        watching.stop.cancel();
        let scrapes = watching.scraping.await??;
        ensure!(scrapes > 0, "nothing was scraped");
        watching.serving.await?;
        drop(watching.receiver);
        Ok(())
    }
}

/// Scrapes until told to stop; says how often.
async fn scrape(address: SocketAddr, key: String, stop: CancellationToken) -> Result<u32> {
    let mut scrapes = 0;
    loop {
        let mut connection = HttpConnection::open(address).await?;
        let answer = connection.call("GET", "/metrics", &key, None).await?;
        ensure!(answer.status == 200, "no metrics: {}", answer.text());
        scrapes += 1;
        tokio::select! {
            () = stop.cancelled() => return Ok(scrapes),
            () = tokio::time::sleep(SCRAPE_EVERY) => {}
        }
    }
}
