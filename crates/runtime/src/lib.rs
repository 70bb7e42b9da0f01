//! The background services of a server: they start admitted requests, renew and recover claims, reconcile executions with the engine,
//! deliver cancellations, requeue jobs of dead workers, expire timed-out graphs and prune finished rows. They see the ports only; they know no
//! database, no engine and no HTTP. [`StoreSource`] gives workers in this process the jobs of its store.
//!
//! Every service has the same shape: an options struct with documented defaults, a service built from it, and a `run_once` that
//! does one round and can be called from a test. [`Runtime`] runs all of them until it is stopped.

mod canceller;
mod circuit_breaker;
mod crash;
mod dispatcher;
mod drift_checker;
mod engine_identity;
mod error;
mod event_folder;
mod execution_checker;
mod full_sweep;
mod heartbeat;
mod job_sweeper;
mod lock;
mod outage;
mod prober;
mod pruner;
mod reconciler;
mod recoverer;
mod runtime;
mod start_tracker;
mod store_source;
mod timeout_sweeper;

pub use canceller::{Canceller, CancellerOptions};
pub use circuit_breaker::CircuitBreaker;
pub use crash::{note_crash, recompute};
pub use dispatcher::{CycleReport, DispatchMode, Dispatcher, DispatcherOptions};
pub use drift_checker::{DriftChecker, DriftCheckerOptions};
pub use engine_identity::{EngineComparison, compare_engine};
pub use error::{Error, Result};
pub use event_folder::EventFolder;
pub use full_sweep::{FullSweep, FullSweepOptions};
pub use heartbeat::{HEARTBEAT_INTERVAL_MAX, HeartbeatOptions, HeartbeatService};
pub use job_sweeper::{JobSweeper, JobSweeperOptions};
pub use lock::{LockOptions, NamedLock};
pub use prober::{Prober, ProberOptions};
pub use pruner::{Pruner, PrunerOptions};
pub use reconciler::{Reconciler, ReconcilerOptions};
pub use recoverer::{Recoverer, RecovererOptions};
pub use runtime::{Runtime, RuntimeOptions};
pub use store_source::StoreSource;
pub use timeout_sweeper::{TimeoutSweeper, TimeoutSweeperOptions};
