//! What happens because time passed: admitted requests are started, claims renewed and recovered, executions followed to their
//! end, cancellations delivered, jobs of dead workers taken back, graphs settled, old ends pruned. Sees the ports only; knows no database, no engine, no HTTP.
//! [`StoreSource`] gives workers in this process the jobs of its store.
//!
//! Every role has the same shape: an options struct with documented defaults, a service made from it, and a `run_once` that
//! does one round and can be called from a test. [`Runtime`] runs them all until it is told to stop.

mod auditor;
mod beacon;
mod canceller;
mod dispatcher;
mod error;
mod follower;
mod gate;
mod job_sweeper;
mod lock;
mod outage;
mod prober;
mod proof;
mod pruner;
mod recoverer;
mod runtime;
mod settler;
mod store_source;
mod sweeper;

pub use auditor::{Auditor, AuditorOptions};
pub use beacon::{Beacon, BeaconOptions};
pub use canceller::{Canceller, CancellerOptions};
pub use dispatcher::{Cycle, DispatchMode, Dispatcher, DispatcherOptions};
pub use error::{Error, Result};
pub use follower::{Follower, FollowerOptions};
pub use gate::Gate;
pub use job_sweeper::{JobSweeper, JobSweeperOptions};
pub use lock::{Lock, LockOptions};
pub use prober::{Prober, ProberOptions};
pub use pruner::{Pruner, PrunerOptions};
pub use recoverer::{Recoverer, RecovererOptions};
pub use runtime::{Runtime, RuntimeOptions};
pub use settler::{Settler, SettlerOptions};
pub use store_source::StoreSource;
pub use sweeper::{Sweeper, SweeperOptions};
