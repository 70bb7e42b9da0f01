//! What every route can reach.

use crate::gauges::Scraped;
use crate::keyring::Keyring;
use crate::line::Lines;
use crate::lists::Lists;
use crate::options::ServerOptions;
use crate::places::Places;
use crate::rate::Rate;
use crate::room::Room;
use crate::routes::Seen;
use crate::watcher::Watcher;
use leasehold_core::why::EngineFacts;
use leasehold_engine::Engine;
use leasehold_ops::{Backlog, Enqueuer};
use leasehold_store::Store;
use leasehold_telemetry::{Level, Telemetry};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// What is known of the engine without asking it.
pub trait EngineWatch: Send + Sync + 'static {
    /// Whether executions are started in it now.
    fn facts(&self) -> EngineFacts;

    /// How many starts may be under way at once; none where it does not start any.
    fn allowance(&self) -> Option<usize> {
        None
    }
}

/// What the server is made of.
pub struct Parts {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// What executions run in; none until there is one.
    pub engine: Option<Arc<dyn Engine>>,
    /// What is known of it.
    pub watch: Arc<dyn EngineWatch>,
    /// The limits.
    pub options: ServerOptions,
    /// Where it counts and traces.
    pub telemetry: Telemetry,
    /// When this is cancelled, whoever waits or streams is sent home.
    pub stop: CancellationToken,
}

/// What every route can reach; cheap to clone.
#[derive(Clone)]
pub struct State(Arc<Inner>);

/// The contents of a [`State`].
pub struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Option<Arc<dyn Engine>>,
    pub(crate) watch: Arc<dyn EngineWatch>,
    pub(crate) options: ServerOptions,
    pub(crate) telemetry: Telemetry,
    pub(crate) stop: CancellationToken,
    pub(crate) keys: Keyring,
    pub(crate) enqueuer: Enqueuer,
    pub(crate) backlog: Backlog,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) streams: Arc<Places>,
    pub(crate) calls: Arc<Places>,
    pub(crate) lists: Lists,
    pub(crate) ready: Mutex<Option<Instant>>,
    /// When the store was last asked for somebody who scrapes.
    pub(crate) scraped: Mutex<Scraped>,
    pub(crate) overview: Mutex<Option<Seen>>,
    pub(crate) rate: Rate,
    pub(crate) room: Room,
    pub(crate) lines: Lines,
}

impl State {
    /// Puts it together.
    pub fn new(parts: Parts) -> Self {
        let (metrics, options) = (&parts.telemetry.metrics, &parts.options);
        Self(Arc::new(Inner {
            // One key alone shall not keep everybody else out.
            calls: Places::new(
                (options.calls_max / 4).max(1),
                options.calls_max,
                Level::default(),
            ),
            lists: Lists::default(),
            ready: Mutex::default(),
            scraped: Mutex::default(),
            overview: Mutex::default(),
            streams: Places::new(
                options.streams_per_key,
                options.streams_max,
                metrics.open_streams.clone(),
            ),
            rate: Rate::new(options.rate_per_second, options.rate_burst),
            room: Room::new(options.calls_max, options.bodies_max_bytes),
            lines: Lines::default(),
            keys: Keyring::new(parts.store.clone(), parts.options.key_fresh_for),
            enqueuer: Enqueuer::default(),
            backlog: Backlog::new(options.backlog_max),
            watcher: Watcher::new(parts.store.clone(), parts.stop.clone()),
            store: parts.store,
            engine: parts.engine,
            watch: parts.watch,
            options: parts.options,
            telemetry: parts.telemetry,
            stop: parts.stop,
        }))
    }

    /// How many claims wait for a job now.
    pub fn waiting_claims(&self) -> usize {
        self.0.lines.waiting()
    }
}

impl Deref for State {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
