//! The worker runtime: claims jobs, runs their handlers, renews the leases and writes the results. Makes all calls through a
//! [`JobSource`]; knows no store, no HTTP and no requests.
//!
//! ```no_run
//! # async fn example(source: std::sync::Arc<dyn leasehold_worker::JobSource>) -> Result<(), leasehold_worker::BuildError> {
//! use leasehold_worker::{JobContext, Worker};
//!
//! let worker = Worker::builder(source)
//!     .queue("emails")
//!     .handler("welcome", async |to: String, job: JobContext| {
//!         // Send `job.token()` with external writes: every later lease on the job has a higher token.
//!         Ok(format!("sent to {to} in attempt {}", job.attempt()))
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
//! Four kinds of task share one `WorkerState`: the *claimer* polls for jobs, *runners* run handlers (one per concurrent job), the
//! *finisher* writes results in batches, and the *heartbeat* task renews all leases. The worker reads only its monotonic clock, and only to
//! detect an expired lease early; the store decides whether a lease is valid.

mod builder;
mod claimer;
mod context;
mod finisher;
mod handler;
mod heartbeat;
mod leased_job;
mod outcome;
mod runner;
mod shared;
mod source;
mod stats;
mod unknown_kinds;
mod worker;
mod worker_state;

pub use builder::{BuildError, WorkerBuilder};
pub use context::{JobContext, ProgressResult};
pub use outcome::{IntoOutcome, JobError, Outcome};
pub use source::{JobSource, SourceError, SourceResult};
pub use stats::Stats;
pub use worker::{Worker, WorkerHandle};
