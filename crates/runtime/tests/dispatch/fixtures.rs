//! The services of a scenario, with options for tests. Knows no scenario.

use crate::WAIT_TIMEOUT;
use crate::dispatch_env::DispatchEnv;
use leasehold_core::retry::Backoff;
use leasehold_runtime::{
    Canceller, CancellerOptions, CycleReport, DispatchMode, Dispatcher, DispatcherOptions, Error,
    FullSweep, FullSweepOptions, LockOptions, Prober, ProberOptions, Reconciler, ReconcilerOptions,
    Recoverer, RecovererOptions, Runtime, RuntimeOptions,
};
use leasehold_service::Service;
use leasehold_testkit::eventually;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// So long that only a notification can trigger what happens.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);
/// A lock that does not expire while a scenario moves the clock.
const LASTING: LockOptions = LockOptions {
    at_most_for: Duration::from_secs(24 * 3600),
    at_least_for: Duration::ZERO,
};
const SOON: Duration = Duration::from_millis(50);

/// Returns options of a dispatcher that never polls, does not linger, and backs off for a second.
pub(crate) fn options(owner: &str) -> DispatcherOptions {
    DispatcherOptions {
        batch_size: 10,
        concurrency: 8,
        poll_interval: NEVER,
        linger: Duration::ZERO,
        backoff: Backoff {
            base: Duration::from_secs(1),
            factor: 2.0,
            max: Duration::from_secs(60),
            jitter: 0.0,
        },
        lock: LASTING,
        lock_retry: SOON,
        ..DispatcherOptions::new(owner)
    }
}

/// The same in parallel mode.
pub(crate) fn parallel(owner: &str) -> DispatcherOptions {
    DispatcherOptions {
        mode: DispatchMode::Parallel,
        ..options(owner)
    }
}

/// A dispatcher that runs in the background until it is stopped.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Requests a stop without waiting for it.
    pub(crate) fn request_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Aborts the dispatcher as a crash would: it writes nothing more.
    pub(crate) fn crash(self) {
        self.task.abort();
    }
}

impl DispatchEnv {
    pub(crate) fn dispatcher(&self) -> Dispatcher {
        self.dispatcher_with(options("dispatcher"))
    }

    pub(crate) fn dispatcher_with(&self, options: DispatcherOptions) -> Dispatcher {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        Dispatcher::new(store, engine, self.breaker.clone(), options)
    }

    /// Creates a dispatcher as in another process, whose store has cached nothing.
    pub(crate) fn dispatcher_of_another_process(&self, options: DispatcherOptions) -> Dispatcher {
        let (store, engine) = (self.second_store(), self.engine.clone());
        Dispatcher::new(store, engine, self.breaker.clone(), options)
    }

    /// Runs a dispatcher in the background.
    pub(crate) fn run(&self, options: DispatcherOptions) -> Running {
        let dispatcher = self.dispatcher_with(options);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { dispatcher.run(&stopped).await });
        Running { stop, task }
    }

    pub(crate) fn prober(&self) -> Prober {
        let options = ProberOptions {
            interval: SOON,
            interval_when_open: SOON,
        };
        Prober::new(self.engine.clone(), self.breaker.clone(), options)
    }

    pub(crate) fn recoverer(&self) -> Recoverer {
        let options = RecovererOptions {
            interval: SOON,
            lock: LASTING,
            ..RecovererOptions::default()
        };
        Recoverer::new(self.store.clone(), "recoverer", options)
    }

    pub(crate) fn reconciler(&self) -> Reconciler {
        self.reconciler_with(reconciler_options())
    }

    pub(crate) fn reconciler_with(&self, options: ReconcilerOptions) -> Reconciler {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        Reconciler::new(store, engine, "reconciler", options)
    }

    /// Creates a full sweep that fails an execution after it was missing for this long.
    pub(crate) fn full_sweep(&self, lost_after: Duration) -> FullSweep {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        FullSweep::new(store, engine, "full sweep", full_sweep_options(lost_after))
    }

    /// Creates a full sweep that fails nothing if the engine knows no execution at all.
    pub(crate) fn careful_full_sweep(&self) -> FullSweep {
        let options = FullSweepOptions {
            lost_at_most: 0,
            ..full_sweep_options(Duration::ZERO)
        };
        FullSweep::new(
            self.store.clone(),
            self.engine.clone(),
            "full sweep",
            options,
        )
    }

    pub(crate) fn canceller(&self) -> Canceller {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        Canceller::new(store, engine, CancellerOptions::default())
    }

    /// Starts all services of an instance with the options for tests.
    pub(crate) fn runtime(&self, change: impl FnOnce(&mut RuntimeOptions)) -> Runtime {
        let mut all = RuntimeOptions::new("instance");
        all.dispatcher = options("instance");
        all.prober.interval = SOON;
        all.prober.interval_when_open = SOON;
        all.recoverer.interval = SOON;
        all.reconciler = reconciler_options();
        all.full_sweep = full_sweep_options(NEVER);
        change(&mut all);
        Runtime::start(self.store.clone(), Some(self.engine.clone()), all)
    }
}

pub(crate) fn reconciler_options() -> ReconcilerOptions {
    ReconcilerOptions {
        interval: SOON,
        lock: LASTING,
        ..ReconcilerOptions::default()
    }
}

pub(crate) fn full_sweep_options(lost_after: Duration) -> FullSweepOptions {
    FullSweepOptions {
        interval: Duration::ZERO,
        lost_after,
        lock: LASTING,
        ..FullSweepOptions::default()
    }
}

/// Runs one cycle of a dispatcher that holds the lock.
pub(crate) async fn cycle(dispatcher: &Dispatcher) -> CycleReport {
    let ran = dispatcher.run_once(&CancellationToken::new()).await;
    ran.unwrap().expect("the lock is free")
}

/// Runs one cycle in the background.
pub(crate) fn begin_cycle(dispatcher: Dispatcher) -> (CancellationToken, JoinHandle<CycleReport>) {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let task = tokio::spawn(async move {
        let ran = dispatcher.run_once(&stopped).await;
        ran.unwrap().expect("the lock is free")
    });
    (stop, task)
}

/// Runs one round of a service. Repeats it while the engine does not answer in time: its server is shared with other tests.
pub(crate) async fn round(service: &impl Service<Error = Error>) {
    let round = async || match service.run_once().await {
        Err(Error::Engine(_)) => false,
        other => other.map(|_| true).unwrap(),
    };
    assert!(eventually(WAIT_TIMEOUT, round).await);
}
