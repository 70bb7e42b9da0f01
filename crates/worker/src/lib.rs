//! The worker runtime: claims jobs, runs their handlers, keeps the leases alive, writes down what came of each. Asks a
//! [`JobSource`] for everything; knows no store, no HTTP and nothing of requests.
//!
//! ```no_run
//! # async fn example(source: std::sync::Arc<dyn leasehold_worker::JobSource>) -> Result<(), leasehold_worker::BuildError> {
//! use leasehold_worker::{JobContext, Worker};
//!
//! let worker = Worker::of(source)
//!     .queue("emails")
//!     .handler("welcome", async |to: String, job: JobContext| {
//!         // Whatever is done outside shows `job.token()`, which is higher for every later owner of the job.
//!         Ok(format!("sent to {to} at attempt {}", job.attempt()))
//!     })
//!     .build()?;
//! let running = worker.start();
//! // …
//! let stats = running.stop().await;
//! # let _ = stats;
//! # Ok(())
//! # }
//! ```
//!
//! Inside, four sorts of task share one desk: the *claimer* looks for jobs, *runners* run handlers (one for each that runs at once), the
//! *finisher* writes down ends, many in one statement, and the *heart* renews all leases. Only the worker's monotonic clock is read, and only to know
//! when a lease must have run out; whether it did is the store's word alone.

mod builder;
mod claimer;
mod context;
mod desk;
mod finisher;
mod handler;
mod heart;
mod held;
mod outcome;
mod runner;
mod shared;
mod source;
mod stats;
mod worker;

pub use builder::{BuildError, WorkerBuilder};
pub use context::{JobContext, Progress};
pub use outcome::{IntoOutcome, JobError, Outcome};
pub use source::{JobSource, SourceError, SourceResult};
pub use stats::Stats;
pub use worker::{Worker, WorkerHandle};
