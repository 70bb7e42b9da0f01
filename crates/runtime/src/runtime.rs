//! All services of one instance, started together and stopped together.

use crate::auditor::{Auditor, AuditorOptions};
use crate::beacon::{Beacon, BeaconOptions};
use crate::canceller::{Canceller, CancellerOptions};
use crate::dispatcher::{Dispatcher, DispatcherOptions};
use crate::follower::{Follower, FollowerOptions};
use crate::gate::Gate;
use crate::job_sweeper::{JobSweeper, JobSweeperOptions};
use crate::prober::{Prober, ProberOptions};
use crate::pruner::{Pruner, PrunerOptions};
use crate::recoverer::{Recoverer, RecovererOptions};
use crate::settler::{Settler, SettlerOptions};
use crate::sweeper::{Sweeper, SweeperOptions};
use leasehold_core::breaker::BreakerSettings;
use leasehold_engine::Engine;
use leasehold_service::Service;
use leasehold_store::Store;
use leasehold_telemetry::Telemetry;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How an instance works.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// Whether this instance dispatches; if not, it sweeps and follows all the same.
    pub dispatch: bool,
    /// How requests are admitted and started.
    pub dispatcher: DispatcherOptions,
    /// When the engine counts as down, and how its load grows when it comes back.
    pub breaker: BreakerSettings,
    /// How the engine's health is asked for.
    pub prober: ProberOptions,
    /// How expired claims are taken back.
    pub recoverer: RecovererOptions,
    /// How ended executions are found.
    pub follower: FollowerOptions,
    /// How open executions are swept.
    pub sweeper: SweeperOptions,
    /// How drift is looked for.
    pub auditor: AuditorOptions,
    /// How cancellations are delivered.
    pub canceller: CancellerOptions,
    /// How jobs of dead workers are taken back.
    pub job_sweeper: JobSweeperOptions,
    /// How executions that time has ended are ended; none where the engine runs no graphs in the store.
    pub settler: Option<SettlerOptions>,
    /// What is deleted some time after its end.
    pub pruner: PrunerOptions,
    /// What the instance says of itself.
    pub beacon: BeaconOptions,
    /// Where it counts and traces.
    pub telemetry: Telemetry,
}

impl RuntimeOptions {
    /// The defaults, for this owner.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            dispatch: true,
            dispatcher: DispatcherOptions::new(owner),
            breaker: BreakerSettings::default(),
            prober: ProberOptions::default(),
            recoverer: RecovererOptions::default(),
            follower: FollowerOptions::default(),
            sweeper: SweeperOptions::default(),
            auditor: AuditorOptions::default(),
            canceller: CancellerOptions::default(),
            job_sweeper: JobSweeperOptions::default(),
            settler: None,
            pruner: PrunerOptions::default(),
            beacon: BeaconOptions::default(),
            telemetry: Telemetry::default(),
        }
    }
}

/// The running services of an instance.
pub struct Runtime {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    gate: Arc<Gate>,
}

impl Runtime {
    /// Starts all services; without an engine those that need none. They run until [`Runtime::stop`].
    pub fn start(
        store: Arc<dyn Store>,
        engine: Option<Arc<dyn Engine>>,
        options: RuntimeOptions,
    ) -> Self {
        let mut breaker = options.breaker;
        breaker.full = u32::try_from(options.dispatcher.concurrency).unwrap_or(u32::MAX);
        let mut runtime = Self {
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            gate: Arc::new(Gate::new(breaker)),
        };
        let owner = options.dispatcher.owner.clone();
        let dispatches = options.dispatch && engine.is_some();
        let recoverer = RecovererOptions {
            lease: options.dispatcher.claim_lease,
            ..options.recoverer.clone()
        };
        runtime.run(Recoverer::new(store.clone(), &owner, recoverer));
        runtime.run(JobSweeper::new(store.clone(), options.job_sweeper.clone()));
        if let Some(settler) = options.settler.clone() {
            runtime.run(Settler::new(store.clone(), &owner, settler));
        }
        runtime.run(Pruner::new(store.clone(), &owner, options.pruner.clone()));
        let beacon = options.beacon.clone();
        runtime.run(Beacon::new(store.clone(), &owner, dispatches, beacon));
        let auditor = AuditorOptions {
            telemetry: options.telemetry.clone(),
            lost_after: options.sweeper.lost_after,
            ..options.auditor.clone()
        };
        runtime.run(Auditor::new(store.clone(), engine.clone(), &owner, auditor));
        if let Some(engine) = engine {
            runtime.run_with(engine, store, options);
        }
        runtime
    }

    /// Starts what needs an engine.
    fn run_with(
        &mut self,
        engine: Arc<dyn Engine>,
        store: Arc<dyn Store>,
        options: RuntimeOptions,
    ) {
        let owner = &options.dispatcher.owner.clone();
        let gate = self.gate.clone();
        self.run(Prober::new(engine.clone(), gate.clone(), options.prober));
        self.run(Follower::new(
            store.clone(),
            engine.clone(),
            owner,
            options.follower,
        ));
        let sweeper = SweeperOptions {
            telemetry: options.telemetry.clone(),
            ..options.sweeper
        };
        self.run(Sweeper::new(store.clone(), engine.clone(), owner, sweeper));
        self.run(Canceller::new(
            store.clone(),
            engine.clone(),
            options.canceller,
        ));
        if options.dispatch {
            let dispatcher = DispatcherOptions {
                telemetry: options.telemetry,
                ..options.dispatcher
            };
            let dispatcher = Dispatcher::new(store, engine, gate, dispatcher);
            let stop = self.stop.clone();
            self.tasks.spawn(async move { dispatcher.run(&stop).await });
        }
    }

    fn run(&mut self, service: impl Service) {
        let stop = self.stop.clone();
        self.tasks
            .spawn(async move { leasehold_service::run(&service, &stop).await });
    }

    /// The breaker, to be looked at.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Returns when a service has ended that should not have: only a panic does that.
    pub async fn broken(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Err(error)) => error.to_string(),
            Some(Ok(())) | None => "a service ended by itself".to_owned(),
        }
    }

    /// Stops all services; each finishes or gives back what it holds.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
