//! The dispatcher: claims requests and starts their executions in the engine. This module decides when; `start` decides what a start's outcome means.

mod capacity_log;
mod claims;
mod cycle;
mod flush;
mod held_claims;
mod log;
mod poll_state;
mod start;
mod tasks;
mod trace;

use crate::circuit_breaker::CircuitBreaker;
use crate::error::Result;
use crate::lock::{LockOptions, NamedLock};
use leasehold_core::retry::Backoff;
use leasehold_engine::Engine;
use leasehold_service::{FailureStreak, catch_panic};
use leasehold_store::Store;
use leasehold_store::notification::Notification;
use leasehold_telemetry::Telemetry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The lock's name; fixed, since other programs may read it from the lock table.
const LOCK: &str = "processExecutionQueue";
/// The shortest time between two attempts of a standby dispatcher to acquire the lock.
const STANDBY_PAUSE: Duration = Duration::from_secs(1);

/// Whether dispatchers of several instances work at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchMode {
    /// One instance is active; the others stand by.
    #[default]
    Exclusive,
    /// All instances are active. The store prevents double claims.
    Parallel,
}

/// How the dispatcher works.
#[derive(Clone, Debug)]
pub struct DispatcherOptions {
    /// The owner of the claims; unique among all instances.
    pub owner: String,
    /// Whether dispatchers of several instances work at the same time.
    pub mode: DispatchMode,
    /// The claim batch size: the most requests one claim takes.
    pub batch_size: u32,
    /// The most starts in flight at once.
    pub concurrency: usize,
    /// Time between polls without a notification.
    pub poll_interval: Duration,
    /// How long to wait after a claim that was not full, so that the next one returns a larger batch.
    pub linger: Duration,
    /// The lease of a claim; the dispatcher renews it every third of this time.
    pub claim_lease: Duration,
    /// The timeout of one start; should be longer than the engine client's own timeout.
    pub start_timeout: Duration,
    /// How many rejected starts fail a request.
    pub max_attempts: u32,
    /// The backoff of failed starts: how long a request waits before it is started again.
    pub backoff: Backoff,
    /// The lock of the exclusive mode.
    pub lock: LockOptions,
    /// Time between attempts of a standby dispatcher to acquire the lock.
    pub lock_retry: Duration,
    /// For a graceful shutdown: how long a stopping dispatcher waits for starts in flight.
    pub drain_timeout: Duration,
    /// Metrics and traces.
    pub telemetry: Telemetry,
}

impl DispatcherOptions {
    /// Returns the defaults for this owner.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            mode: DispatchMode::default(),
            batch_size: 100,
            concurrency: 64,
            poll_interval: Duration::from_secs(5),
            linger: Duration::from_millis(5),
            claim_lease: Duration::from_secs(15),
            start_timeout: Duration::from_secs(30),
            max_attempts: 3,
            backoff: Backoff::default(),
            lock: LockOptions::default(),
            lock_retry: Duration::from_secs(2),
            drain_timeout: Duration::from_secs(10),
            telemetry: Telemetry::default(),
        }
    }
}

/// What one cycle did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CycleReport {
    /// The sizes of the non-empty claims.
    pub batches: Vec<usize>,
    /// Requests started in the engine.
    pub dispatched: u64,
    /// Requests returned to PENDING.
    pub released: u64,
    /// Requests that failed permanently.
    pub failed: u64,
    /// Claims lost to another dispatcher.
    pub lost: u64,
    /// Time until the next poll without a notification.
    pub next_poll_in: Duration,
}

/// Claims requests and starts their executions in the engine.
pub struct Dispatcher {
    shared: Arc<Shared>,
    lock: Option<Arc<NamedLock>>,
    /// Whether the store notifies this dispatcher of new work.
    armed: AtomicBool,
    /// Empty polls in a row.
    empty_polls: AtomicUsize,
}

/// State shared by all parts of a dispatcher.
struct Shared {
    store: Arc<dyn Store>,
    engine: Arc<dyn Engine>,
    breaker: Arc<CircuitBreaker>,
    options: DispatcherOptions,
    last_flow: trace::LastFlow,
    capacity_log: Mutex<capacity_log::CapacityLog>,
}

impl Dispatcher {
    /// Creates a dispatcher from this store to this engine. A store owned by one process needs no lock.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<dyn Engine>,
        breaker: Arc<CircuitBreaker>,
        options: DispatcherOptions,
    ) -> Self {
        let exclusive = options.mode == DispatchMode::Exclusive && store.capabilities().shared;
        let lock = exclusive.then(|| {
            Arc::new(NamedLock::new(
                store.clone(),
                LOCK,
                &options.owner,
                options.lock,
            ))
        });
        Self {
            shared: Arc::new(Shared {
                store,
                engine,
                breaker,
                options,
                last_flow: trace::LastFlow::default(),
                capacity_log: Mutex::default(),
            }),
            lock,
            armed: AtomicBool::new(false),
            empty_polls: AtomicUsize::new(0),
        }
    }

    /// Runs one cycle: claims and starts until nothing is left to claim and no start is in flight. Returns none if another instance holds
    /// the lock. When stopped, it claims no more, returns unsent requests to the queue and waits for sent ones.
    pub async fn run_once(&self, stop: &CancellationToken) -> Result<Option<CycleReport>> {
        let lock = match &self.lock {
            None => None,
            Some(lock) => match lock.acquire_or_extend().await? {
                Some(token) => Some(token),
                None => return Ok(None),
            },
        };
        log::capacity_summaries(&self.shared.capacity_log);
        cycle::run(self, lock, stop).await.map(Some)
    }

    /// Runs cycles until stopped.
    pub async fn run(&self, stop: &CancellationToken) {
        let mut failures = FailureStreak::of("dispatcher");
        while !stop.is_cancelled() {
            if self.release_lock_if_open().await {
                self.armed.store(false, Ordering::Relaxed);
                self.stand_by(stop).await;
                continue;
            }
            let cycle = catch_panic(self.run_once(stop)).await;
            let cycle = cycle.unwrap_or_else(|panic| {
                // Its claims and its lock expire.
                self.shared
                    .options
                    .telemetry
                    .metrics
                    .task_panicked("dispatcher");
                Err(panic.into())
            });
            match cycle {
                Ok(Some(cycle)) => {
                    failures.succeeded();
                    self.sleep(cycle.next_poll_in, stop).await;
                }
                Ok(None) => {
                    failures.succeeded();
                    self.armed.store(false, Ordering::Relaxed);
                    self.stand_by(stop).await;
                }
                Err(error) => {
                    self.armed.store(false, Ordering::Relaxed);
                    let wait = failures.failed(&error);
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = sleep(wait) => {}
                    }
                }
            }
        }
        if let Some(lock) = &self.lock {
            let begun = SystemTime::now();
            lock.close().await;
            trace::lock_released(&self.shared, trace::Period::since(begun));
            // Lets a standby dispatcher acquire the lock at once.
            if let Err(error) = self.shared.store.notify(Notification::Work).await {
                tracing::debug!(%error, "failed to notify standby dispatchers of the free lock");
            }
        }
    }

    /// Releases the lock while the circuit breaker is open, since another instance may be able to reach the engine. Returns whether it is open.
    async fn release_lock_if_open(&self) -> bool {
        let Some(lock) = &self.lock else {
            return false;
        };
        let is_open = self.shared.breaker.allowance() == 0;
        if is_open {
            lock.release().await;
        }
        is_open
    }

    async fn sleep(&self, poll: Duration, stop: &CancellationToken) {
        let wait = match &self.lock {
            Some(lock) => poll.min(lock.options().extend_interval()),
            None => poll,
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(wait) => {}
            () = self.shared.breaker.capacity_increased() => {}
            () = self.shared.store.notification_wait(Notification::Work) => self.armed.store(false, Ordering::Relaxed),
        }
    }

    async fn stand_by(&self, stop: &CancellationToken) {
        let notified = async {
            sleep(STANDBY_PAUSE).await;
            self.shared
                .store
                .notification_wait(Notification::Work)
                .await;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(self.shared.options.lock_retry) => {}
            () = self.shared.breaker.capacity_increased() => {}
            () = notified => {}
        }
    }
}
