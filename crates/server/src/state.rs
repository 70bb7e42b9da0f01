//! The state that every route shares.

use crate::change_watcher::ChangeWatcher;
use crate::claim_wait::ClaimWaiters;
use crate::cursors::Cursors;
use crate::gauges::ScrapeState;
use crate::key_cache::{KeyCache, KeyCacheIntervals};
use crate::large_changes::LargeChanges;
use crate::lists::ListReader;
use crate::load_shed::LoadShedder;
use crate::memory_budget::MemoryBudget;
use crate::options::ServerOptions;
use crate::owner_pool::OwnerPool;
use crate::rate_limit::CallRateLimiter;
use crate::routes::CachedOverview;
use leasehold_core::fair_pool::FairPool;
use leasehold_core::limits::{END_REPORTS_BURST, END_REPORTS_PER_SECOND, ENGINE_READS_MAX};
use leasehold_core::why::EngineFacts;
use leasehold_core::{KeyId, WorkspaceId};
use leasehold_engine::Engine;
use leasehold_ops::{EndReports, Enqueuer, JobQuotas, Quotas};
use leasehold_store::Store;
use leasehold_telemetry::{EngineSnapshot, FloatGauge, Telemetry};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The engine's status as this process knows it, without a call to the engine.
pub trait EngineWatch: Send + Sync + 'static {
    /// Returns whether executions are started in the engine now.
    fn facts(&self) -> EngineFacts;

    /// Returns the values of the engine's metrics, or `None` if this process starts no executions.
    fn snapshot(&self) -> Option<EngineSnapshot> {
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
    pub(crate) cursors: Cursors,
    pub(crate) enqueuer: Enqueuer,
    pub(crate) quotas: Quotas,
    pub(crate) job_quotas: JobQuotas,
    pub(crate) watcher: Arc<ChangeWatcher>,
    pub(crate) streams: Arc<OwnerPool>,
    /// Limits the streams of each key.
    pub(crate) streams_of_key: Arc<OwnerPool>,
    /// Limits the calls that wait for an answer of the engine.
    pub(crate) engine_reads: Arc<OwnerPool>,
    pub(crate) large_changes: LargeChanges,
    pub(crate) lists: ListReader,
    pub(crate) ready: Arc<Mutex<Option<Instant>>>,
    /// The last gauges read from the store for a scrape.
    pub(crate) scrape: Mutex<ScrapeState>,
    pub(crate) overview: Mutex<Option<CachedOverview>>,
    pub(crate) rate_limiter: CallRateLimiter<WorkspaceId>,
    /// Limits the reports of ended executions of each key.
    pub(crate) end_report_limiter: CallRateLimiter<KeyId>,
    pub(crate) end_reports: EndReports,
    pub(crate) load_shedder: LoadShedder,
    /// The memory of responses.
    pub(crate) responses: Arc<MemoryBudget>,
    pub(crate) claim_waiters: ClaimWaiters,
}

impl State {
    /// Builds the state from its dependencies.
    pub fn new(parts: StateParts) -> Self {
        let (metrics, options) = (&parts.telemetry.metrics, &parts.options);
        let large_changes = LargeChanges::new(parts.store.capabilities());
        Self(Arc::new(StateInner {
            large_changes: large_changes.clone(),
            lists: ListReader::default(),
            ready: Arc::default(),
            scrape: Mutex::default(),
            overview: Mutex::default(),
            streams: OwnerPool::with(
                FairPool::new(options.streams_max),
                metrics.open_streams.clone(),
            ),
            // Limits only each key: all streams together are limited by `streams`.
            streams_of_key: OwnerPool::with(
                FairPool::new(usize::MAX).with_owner_max(options.streams_per_key),
                FloatGauge::default(),
            ),
            engine_reads: OwnerPool::new(ENGINE_READS_MAX),
            rate_limiter: CallRateLimiter::new(options.rate_per_second, options.rate_burst),
            end_report_limiter: CallRateLimiter::new(END_REPORTS_PER_SECOND, END_REPORTS_BURST),
            end_reports: EndReports::default(),
            load_shedder: LoadShedder::new(options.calls_max, options.bodies_max_bytes),
            responses: MemoryBudget::new(options.responses_max_bytes),
            // The other half stays free for calls that do not wait.
            claim_waiters: ClaimWaiters::new(options.calls_max / 2, large_changes),
            keys: KeyCache::new(
                parts.store.clone(),
                KeyCacheIntervals {
                    fresh_for: options.key_fresh_for,
                    use_interval: options.key_use_interval,
                },
            ),
            cursors: Cursors::new(parts.store.clone()),
            enqueuer: Enqueuer::default(),
            quotas: Quotas::default(),
            job_quotas: JobQuotas::new(options.key_max_open_bytes),
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
