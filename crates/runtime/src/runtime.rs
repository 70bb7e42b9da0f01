//! Starts and stops all services of one instance together.

use crate::canceller::{Canceller, CancellerOptions};
use crate::circuit_breaker::CircuitBreaker;
use crate::dispatcher::{Dispatcher, DispatcherOptions};
use crate::drift_checker::{DriftChecker, DriftCheckerOptions};
use crate::engine_identity::EngineChecker;
use crate::event_folder::EventFolder;
use crate::full_sweep::{FullSweep, FullSweepOptions};
use crate::heartbeat::{HeartbeatOptions, HeartbeatService};
use crate::job_sweeper::{JobSweeper, JobSweeperOptions};
use crate::prober::{Prober, ProberOptions};
use crate::pruner::{Pruner, PrunerOptions};
use crate::reconciler::{Reconciler, ReconcilerOptions};
use crate::recoverer::{Recoverer, RecovererOptions};
use crate::timeout_sweeper::{TimeoutSweeper, TimeoutSweeperOptions};
use leasehold_core::breaker::BreakerSettings;
use leasehold_engine::Engine;
use leasehold_service::Service;
use leasehold_store::Store;
use leasehold_telemetry::{Metrics, Telemetry};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The options of all services of an instance.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// Whether this instance dispatches; the other services run either way.
    pub dispatch: bool,
    /// How the dispatcher admits and starts requests.
    pub dispatcher: DispatcherOptions,
    /// When the circuit breaker opens, and how the load grows after an outage.
    pub breaker: BreakerSettings,
    /// How often the prober checks the engine's health.
    pub prober: ProberOptions,
    /// How the recoverer returns expired claims to PENDING.
    pub recoverer: RecovererOptions,
    /// How the reconciler reads recently closed executions from the engine.
    pub reconciler: ReconcilerOptions,
    /// How the full sweep describes open executions.
    pub full_sweep: FullSweepOptions,
    /// How the drift checker compares slots, executions and requests.
    pub drift_checker: DriftCheckerOptions,
    /// How the canceller delivers cancel requests to the engine.
    pub canceller: CancellerOptions,
    /// How the job sweeper requeues jobs of dead workers.
    pub job_sweeper: JobSweeperOptions,
    /// How timed-out executions are ended; none where the engine runs no graphs in the store.
    pub timeout_sweeper: Option<TimeoutSweeperOptions>,
    /// How long finished rows are kept.
    pub pruner: PrunerOptions,
    /// What the instance registers about itself, and how often.
    pub heartbeat: HeartbeatOptions,
    /// Metrics and traces of all services.
    pub telemetry: Telemetry,
}

impl RuntimeOptions {
    /// Returns the defaults for this owner.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            dispatch: true,
            dispatcher: DispatcherOptions::new(owner),
            breaker: BreakerSettings::default(),
            prober: ProberOptions::default(),
            recoverer: RecovererOptions::default(),
            reconciler: ReconcilerOptions::default(),
            full_sweep: FullSweepOptions::default(),
            drift_checker: DriftCheckerOptions::default(),
            canceller: CancellerOptions::default(),
            job_sweeper: JobSweeperOptions::default(),
            timeout_sweeper: None,
            pruner: PrunerOptions::default(),
            heartbeat: HeartbeatOptions::default(),
            telemetry: Telemetry::default(),
        }
    }
}

/// The running services of an instance.
pub struct Runtime {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    metrics: Arc<Metrics>,
    circuit_breaker: Arc<CircuitBreaker>,
    schema_refusal: watch::Receiver<Option<String>>,
    engine_refusal: watch::Sender<Option<String>>,
}

impl Runtime {
    /// Starts all services, or without an engine those that need none. They run until [`Runtime::stop`].
    pub fn start(
        store: Arc<dyn Store>,
        engine: Option<Arc<dyn Engine>>,
        options: RuntimeOptions,
    ) -> Self {
        let mut breaker = options.breaker;
        breaker.full = u32::try_from(options.dispatcher.concurrency).unwrap_or(u32::MAX);
        let owner = options.dispatcher.owner.clone();
        let dispatches = options.dispatch && engine.is_some();
        let heartbeat = options.heartbeat.clone();
        let heartbeat = HeartbeatService::new(store.clone(), &owner, dispatches, heartbeat);
        let mut runtime = Self {
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
            metrics: options.telemetry.metrics.clone(),
            circuit_breaker: Arc::new(CircuitBreaker::new(breaker)),
            schema_refusal: heartbeat.schema_refusal(),
            engine_refusal: watch::Sender::new(None),
        };
        let recoverer = RecovererOptions {
            lease: options.dispatcher.claim_lease,
            ..options.recoverer.clone()
        };
        runtime.spawn(Recoverer::new(store.clone(), &owner, recoverer));
        runtime.spawn(EventFolder::new(store.clone()));
        runtime.spawn(JobSweeper::new(store.clone(), options.job_sweeper.clone()));
        if let Some(timeout_sweeper) = options.timeout_sweeper.clone() {
            let store = store.clone();
            runtime.spawn(TimeoutSweeper::new(store, &owner, timeout_sweeper));
        }
        runtime.spawn(Pruner::new(store.clone(), &owner, options.pruner.clone()));
        runtime.spawn(heartbeat);
        let drift_checker = DriftCheckerOptions {
            telemetry: options.telemetry.clone(),
            lost_after: options.full_sweep.lost_after,
            ..options.drift_checker.clone()
        };
        runtime.spawn(DriftChecker::new(
            store.clone(),
            engine.clone(),
            &owner,
            drift_checker,
        ));
        if let Some(engine) = engine {
            runtime.start_engine_services(engine, store, options);
        }
        runtime
    }

    /// Starts the services that need an engine.
    fn start_engine_services(
        &mut self,
        engine: Arc<dyn Engine>,
        store: Arc<dyn Store>,
        options: RuntimeOptions,
    ) {
        let owner = &options.dispatcher.owner.clone();
        let breaker = self.circuit_breaker.clone();
        self.spawn(EngineChecker::new(
            store.clone(),
            engine.clone(),
            breaker.clone(),
            self.engine_refusal.clone(),
        ));
        self.spawn(Prober::new(engine.clone(), breaker.clone(), options.prober));
        self.spawn(Reconciler::new(
            store.clone(),
            engine.clone(),
            owner,
            options.reconciler,
        ));
        let full_sweep = FullSweepOptions {
            telemetry: options.telemetry.clone(),
            ..options.full_sweep
        };
        self.spawn(FullSweep::new(
            store.clone(),
            engine.clone(),
            owner,
            full_sweep,
        ));
        self.spawn(Canceller::new(
            store.clone(),
            engine.clone(),
            options.canceller,
        ));
        if options.dispatch {
            let dispatcher = DispatcherOptions {
                telemetry: options.telemetry,
                ..options.dispatcher
            };
            let dispatcher = Dispatcher::new(store, engine, breaker, dispatcher);
            let stop = self.stop.clone();
            self.tasks.spawn(async move { dispatcher.run(&stop).await });
        }
    }

    fn spawn(&mut self, service: impl Service) {
        let (stop, metrics) = (self.stop.clone(), self.metrics.clone());
        let panicked = move |name| metrics.task_panicked(name);
        self.tasks.spawn(async move {
            let name = service.name();
            leasehold_service::run(&service, &stop, || panicked(name)).await;
        });
    }

    /// Returns the circuit breaker in front of the engine.
    pub fn circuit_breaker(&self) -> &Arc<CircuitBreaker> {
        &self.circuit_breaker
    }

    /// Waits until this program may no longer use the store, because a newer one has migrated its schema, and returns why and what to do. The
    /// caller must then stop the instance.
    pub fn schema_refused(&self) -> impl Future<Output = String> + Send + use<> {
        reported(self.schema_refusal.clone())
    }

    /// Waits until the engine is found to be another than the one that has the open executions, and returns what differs and what to do. The caller must
    /// then stop the instance.
    pub fn engine_refused(&self) -> impl Future<Output = String> + Send + use<> {
        reported(self.engine_refusal.subscribe())
    }

    /// Waits until a service ends without having been stopped, and returns the reason. Only a panic outside its rounds ends a service.
    pub async fn crashed(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Err(error)) => error.to_string(),
            Some(Ok(())) | None => "a service ended without being stopped".to_owned(),
        }
    }

    /// Stops all services. Each finishes its work under way and releases its locks and claims.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Waits for a reason to stop.
async fn reported(mut refusal: watch::Receiver<Option<String>>) -> String {
    let reported = refusal.wait_for(Option::is_some).await;
    match reported.ok().and_then(|reason| reason.clone()) {
        Some(reason) => reason,
        // The service has ended without a report.
        None => std::future::pending().await,
    }
}
