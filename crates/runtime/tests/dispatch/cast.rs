//! Who acts in a scenario: the services, with options that suit a test. Knows no scenario.

use crate::dispatch_env::DispatchEnv;
use leasehold_core::retry::Backoff;
use leasehold_runtime::{
    Canceller, CancellerOptions, Cycle, DispatchMode, Dispatcher, DispatcherOptions, Follower,
    FollowerOptions, LockOptions, Prober, ProberOptions, Recoverer, RecovererOptions, Runtime,
    RuntimeOptions, Sweeper, SweeperOptions,
};
use leasehold_service::Service;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// So long that only a wake-up can be the reason for what happens.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);
/// A lock that does not end while a scenario moves the clock.
const LASTING: LockOptions = LockOptions {
    at_most_for: Duration::from_secs(24 * 3600),
    at_least_for: Duration::ZERO,
};
const SOON: Duration = Duration::from_millis(50);

/// A dispatcher that polls never, hurries and backs off by the second.
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

/// The same, beside others.
pub(crate) fn parallel(owner: &str) -> DispatcherOptions {
    DispatcherOptions {
        mode: DispatchMode::Parallel,
        ..options(owner)
    }
}

/// A dispatcher that runs until it is stopped.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    /// Asks it to stop, and does not wait.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it as a crash does: it writes nothing any more.
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
        Dispatcher::new(store, engine, self.gate.clone(), options)
    }

    /// A dispatcher of another process, whose store has cached nothing.
    pub(crate) fn dispatcher_elsewhere(&self, options: DispatcherOptions) -> Dispatcher {
        let (store, engine) = (self.another_store(), self.engine.clone());
        Dispatcher::new(store, engine, self.gate.clone(), options)
    }

    /// Runs a dispatcher beside the scenario.
    pub(crate) fn run(&self, options: DispatcherOptions) -> Running {
        let dispatcher = self.dispatcher_with(options);
        let stop = CancellationToken::new();
        let told = stop.clone();
        let task = tokio::spawn(async move { dispatcher.run(&told).await });
        Running { stop, task }
    }

    pub(crate) fn prober(&self) -> Prober {
        let options = ProberOptions {
            interval: SOON,
            interval_when_open: SOON,
        };
        Prober::new(self.engine.clone(), self.gate.clone(), options)
    }

    pub(crate) fn recoverer(&self) -> Recoverer {
        let options = RecovererOptions {
            interval: SOON,
            lock: LASTING,
            ..RecovererOptions::default()
        };
        Recoverer::new(self.store.clone(), "recoverer", options)
    }

    pub(crate) fn follower(&self) -> Follower {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        Follower::new(store, engine, "follower", following())
    }

    /// A sweeper for which an execution is lost when it was missing for so long.
    pub(crate) fn sweeper(&self, lost_after: Duration) -> Sweeper {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        Sweeper::new(store, engine, "sweeper", sweeping(lost_after))
    }

    /// One that gives up nothing where the engine knows nothing.
    pub(crate) fn careful_sweeper(&self) -> Sweeper {
        let options = SweeperOptions {
            lost_at_most: 0,
            ..sweeping(Duration::ZERO)
        };
        Sweeper::new(self.store.clone(), self.engine.clone(), "sweeper", options)
    }

    pub(crate) fn canceller(&self) -> Canceller {
        let (store, engine) = (self.store.clone(), self.engine.clone());
        Canceller::new(store, engine, CancellerOptions::default())
    }

    /// Everything an instance runs, with the tests' options.
    pub(crate) fn runtime(&self, change: impl FnOnce(&mut RuntimeOptions)) -> Runtime {
        let mut all = RuntimeOptions::new("instance");
        all.dispatcher = options("instance");
        all.prober.interval = SOON;
        all.prober.interval_when_open = SOON;
        all.recoverer.interval = SOON;
        all.follower = following();
        all.sweeper = sweeping(NEVER);
        change(&mut all);
        Runtime::start(self.store.clone(), Some(self.engine.clone()), all)
    }
}

fn following() -> FollowerOptions {
    FollowerOptions {
        interval: SOON,
        lock: LASTING,
        ..FollowerOptions::default()
    }
}

fn sweeping(lost_after: Duration) -> SweeperOptions {
    SweeperOptions {
        interval: Duration::ZERO,
        lost_after,
        lock: LASTING,
        ..SweeperOptions::default()
    }
}

/// One cycle of a dispatcher that may work.
pub(crate) async fn cycle(dispatcher: &Dispatcher) -> Cycle {
    let ran = dispatcher.run_once(&CancellationToken::new()).await;
    ran.unwrap().expect("nobody else holds the lock")
}

/// One cycle beside the scenario.
pub(crate) fn begin_cycle(dispatcher: Dispatcher) -> (CancellationToken, JoinHandle<Cycle>) {
    let stop = CancellationToken::new();
    let told = stop.clone();
    let task = tokio::spawn(async move {
        let ran = dispatcher.run_once(&told).await;
        ran.unwrap().expect("nobody else holds the lock")
    });
    (stop, task)
}

/// One round of a service.
pub(crate) async fn round(service: &impl Service) {
    service.run_once().await.unwrap();
}
