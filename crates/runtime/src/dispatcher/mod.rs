//! The dispatcher: admits requests and has their executions started. It decides when; what a start's outcome means is `start`'s.

mod cycle;
mod full;
mod held;
mod log;
mod look;
mod settle;
mod start;
mod tasks;
mod trace;

use crate::error::Result;
use crate::gate::Gate;
use crate::lock::{Lock, LockOptions};
use leasehold_core::retry::Backoff;
use leasehold_engine::Engine;
use leasehold_service::FailureStreak;
use leasehold_store::Store;
use leasehold_store::wake::Wake;
use leasehold_telemetry::Telemetry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The lock's name, as the design documents call it.
const LOCK: &str = "processExecutionQueue";
/// How often at most a dispatcher that stands by is woken to try for the lock.
const STAND_BY_PAUSE: Duration = Duration::from_secs(1);

/// Whether dispatchers of several instances work at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchMode {
    /// At most one among all instances is active; the others stand by.
    #[default]
    Exclusive,
    /// All are active. The store keeps them from doing anything twice.
    Parallel,
}

/// How dispatch works.
#[derive(Clone, Debug)]
pub struct DispatcherOptions {
    /// Who claims; unique among all instances.
    pub owner: String,
    /// Whether dispatchers of several instances work at the same time.
    pub mode: DispatchMode,
    /// How many requests one claim takes at most.
    pub batch_size: u32,
    /// How many starts are under way at most.
    pub concurrency: usize,
    /// How often to look without being woken.
    pub poll_interval: Duration,
    /// How long to wait for company after a claim that was not full.
    pub linger: Duration,
    /// How long a claim holds unless renewed, which happens every third of it.
    pub claim_lease: Duration,
    /// How long one start may take altogether; the engine's own limit should pass first.
    pub start_timeout: Duration,
    /// How many refusals fail a request.
    pub max_attempts: u32,
    /// How long a request waits after a start that failed.
    pub backoff: Backoff,
    /// The lock of the exclusive mode.
    pub lock: LockOptions,
    /// How often a dispatcher that stands by tries for the lock.
    pub lock_retry: Duration,
    /// How long a dispatcher that stops waits for the starts under way.
    pub drain_timeout: Duration,
    /// Where it counts and traces.
    pub telemetry: Telemetry,
}

impl DispatcherOptions {
    /// The defaults, for this owner.
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

/// What a cycle did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// How many requests each claim brought that brought any.
    pub batches: Vec<usize>,
    /// Started in the engine.
    pub dispatched: u64,
    /// Back to PENDING.
    pub released: u64,
    /// Failed for good.
    pub failed: u64,
    /// Claims that another dispatcher took over.
    pub lost: u64,
    /// When to look again without being woken.
    pub look_again_in: Duration,
}

/// Admits requests and has their executions started.
pub struct Dispatcher {
    shared: Arc<Shared>,
    lock: Option<Arc<Lock>>,
    /// Whether whatever gives work from now on wakes us.
    armed: AtomicBool,
    /// Looks in a row that brought nothing.
    fruitless: AtomicUsize,
}

/// What all parts of a dispatcher use.
struct Shared {
    store: Arc<dyn Store>,
    engine: Arc<dyn Engine>,
    gate: Arc<Gate>,
    options: DispatcherOptions,
    last_flow: trace::LastFlow,
    full: Mutex<full::Full>,
}

impl Dispatcher {
    /// A dispatcher of this store's requests to this engine. A store that one process owns needs no lock.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Arc<dyn Engine>,
        gate: Arc<Gate>,
        options: DispatcherOptions,
    ) -> Self {
        let exclusive = options.mode == DispatchMode::Exclusive && store.capabilities().shared;
        let lock = exclusive
            .then(|| Arc::new(Lock::new(store.clone(), LOCK, &options.owner, options.lock)));
        Self {
            shared: Arc::new(Shared {
                store,
                engine,
                gate,
                options,
                last_flow: trace::LastFlow::default(),
                full: Mutex::default(),
            }),
            lock,
            armed: AtomicBool::new(false),
            fruitless: AtomicUsize::new(0),
        }
    }

    /// One cycle: claims and starts until there is nothing left to admit and nothing under way. None if another instance holds
    /// the lock. When told to stop it claims no more, gives back what it has not sent and waits for what it has.
    pub async fn run_once(&self, stop: &CancellationToken) -> Result<Option<Cycle>> {
        let lock = match &self.lock {
            None => None,
            Some(lock) => match lock.keep().await? {
                Some(token) => Some(token),
                None => return Ok(None),
            },
        };
        log::sum_up(&self.shared.full);
        cycle::run(self, lock, stop).await.map(Some)
    }

    /// Runs cycles until told to stop.
    pub async fn run(&self, stop: &CancellationToken) {
        let mut failures = FailureStreak::of("dispatcher");
        while !stop.is_cancelled() {
            if self.gives_way().await {
                self.armed.store(false, Ordering::Relaxed);
                self.stand_by(stop).await;
                continue;
            }
            match self.run_once(stop).await {
                Ok(Some(cycle)) => {
                    failures.succeeded();
                    self.sleep(cycle.look_again_in, stop).await;
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
            // So that whoever stands by need not wait for its next try.
            if let Err(error) = self.shared.store.wake_ring(Wake::Work).await {
                tracing::debug!(%error, "the others were not told that the lock is free");
            }
        }
    }

    /// While the engine cannot be reached from here the lock is given back: it may be reached from another instance.
    async fn gives_way(&self) -> bool {
        let Some(lock) = &self.lock else {
            return false;
        };
        let shut = self.shared.gate.allowance() == 0;
        if shut {
            lock.give_back().await;
        }
        shut
    }

    async fn sleep(&self, poll: Duration, stop: &CancellationToken) {
        let until_keep_alive = match &self.lock {
            Some(lock) => poll.min(lock.options().keep_alive_every()),
            None => poll,
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(until_keep_alive) => {}
            () = self.shared.gate.widened() => {}
            () = self.shared.store.wake_wait(Wake::Work) => self.armed.store(false, Ordering::Relaxed),
        }
    }

    async fn stand_by(&self, stop: &CancellationToken) {
        let woken = async {
            sleep(STAND_BY_PAUSE).await;
            self.shared.store.wake_wait(Wake::Work).await;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(self.shared.options.lock_retry) => {}
            () = self.shared.gate.widened() => {}
            () = woken => {}
        }
    }
}
