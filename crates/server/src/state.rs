//! The state that every route shares.

use crate::change_watcher::ChangeWatcher;
use crate::claim_wait::ClaimWaiters;
use crate::concurrency::ConcurrencyLimiter;
use crate::gauges::ScrapeState;
use crate::key_cache::KeyCache;
use crate::lists::ListReader;
use crate::load_shed::LoadShedder;
use crate::options::ServerOptions;
use crate::rate_limit::CallRateLimiter;
use crate::routes::CachedOverview;
use leasehold_core::why::EngineFacts;
use leasehold_engine::Engine;
use leasehold_ops::{Backlog, Enqueuer};
use leasehold_store::Store;
use leasehold_telemetry::{FloatGauge, Telemetry};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The engine's status as this process knows it, without a call to the engine.
pub trait EngineWatch: Send + Sync + 'static {
    /// Returns whether executions are started in the engine now.
    fn facts(&self) -> EngineFacts;

    /// Returns how many starts may be in progress at once, or `None` if this process starts none.
    fn allowance(&self) -> Option<usize> {
        None
    }
}

/// The dependencies of a [`State`].
pub struct StateParts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The engine, if one is configured.
    pub engine: Option<Arc<dyn Engine>>,
    /// The engine's status.
    pub watch: Arc<dyn EngineWatch>,
    /// The limits.
    pub options: ServerOptions,
    /// Metrics and traces.
    pub telemetry: Telemetry,
    /// Stops the server: ends long polls and change streams.
    pub stop: CancellationToken,
}

/// The state that every route shares. Cheap to clone.
#[derive(Clone)]
pub struct State(Arc<StateInner>);

/// The contents of a [`State`].
pub struct StateInner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Option<Arc<dyn Engine>>,
    pub(crate) watch: Arc<dyn EngineWatch>,
    pub(crate) options: ServerOptions,
    pub(crate) telemetry: Telemetry,
    pub(crate) stop: CancellationToken,
    pub(crate) keys: KeyCache,
    pub(crate) enqueuer: Enqueuer,
    pub(crate) backlog: Backlog,
    pub(crate) watcher: Arc<ChangeWatcher>,
    pub(crate) streams: Arc<ConcurrencyLimiter>,
    pub(crate) calls: Arc<ConcurrencyLimiter>,
    pub(crate) lists: ListReader,
    pub(crate) ready: Mutex<Option<Instant>>,
    /// The last gauges read from the store for a scrape.
    pub(crate) scrape: Mutex<ScrapeState>,
    pub(crate) overview: Mutex<Option<CachedOverview>>,
    pub(crate) rate_limiter: CallRateLimiter,
    pub(crate) load_shedder: LoadShedder,
    pub(crate) claim_waiters: ClaimWaiters,
}

impl State {
    /// Builds the state from its dependencies.
    pub fn new(parts: StateParts) -> Self {
        let (metrics, options) = (&parts.telemetry.metrics, &parts.options);
        Self(Arc::new(StateInner {
            // A single key gets at most a quarter of the limit.
            calls: ConcurrencyLimiter::new(
                (options.calls_max / 4).max(1),
                options.calls_max,
                FloatGauge::default(),
            ),
            lists: ListReader::default(),
            ready: Mutex::default(),
            scrape: Mutex::default(),
            overview: Mutex::default(),
            streams: ConcurrencyLimiter::new(
                options.streams_per_key,
                options.streams_max,
                metrics.open_streams.clone(),
            ),
            rate_limiter: CallRateLimiter::new(options.rate_per_second, options.rate_burst),
            load_shedder: LoadShedder::new(options.calls_max, options.bodies_max_bytes),
            claim_waiters: ClaimWaiters::default(),
            keys: KeyCache::new(parts.store.clone(), parts.options.key_fresh_for),
            enqueuer: Enqueuer::default(),
            backlog: Backlog::new(options.backlog_max),
            watcher: ChangeWatcher::new(parts.store.clone(), parts.stop.clone()),
            store: parts.store,
            engine: parts.engine,
            watch: parts.watch,
            options: parts.options,
            telemetry: parts.telemetry,
            stop: parts.stop,
        }))
    }

    /// Returns how many claims wait for a job now.
    pub fn waiting_claims(&self) -> usize {
        self.0.claim_waiters.waiting()
    }
}

impl Deref for State {
    type Target = StateInner;

    fn deref(&self) -> &StateInner {
        &self.0
    }
}
