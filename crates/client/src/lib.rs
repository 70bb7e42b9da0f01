//! A typed client of the HTTP API, and a source of jobs for workers over HTTP. Knows the API's JSON and no store.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use leasehold_client::{Client, HttpSource};
//! use leasehold_client::api::job::NewJob;
//! use leasehold_core::JsonText;
//! use leasehold_worker::{JobContext, Worker};
//! use std::sync::Arc;
//!
//! let client = Client::new("http://127.0.0.1:7777", "lh_worker_…")?;
//! client.job_enqueue("emails", &NewJob::new("welcome", JsonText::of("ada")?)).await?;
//!
//! // The same handlers as beside a store.
//! let worker = Worker::of(Arc::new(HttpSource::new(client)))
//!     .queue("emails")
//!     .handler("welcome", async |to: String, _: JobContext| Ok(format!("sent to {to}")))
//!     .build()?
//!     .start();
//! // …
//! worker.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! Only calls that can be repeated without harm are repeated, with growing waits and as the server's `Retry-After` says. Every call has a timeout.

mod about;
mod changes;
mod client;
mod definitions;
mod error;
mod jobs;
mod list;
mod requests;
mod shapes;
mod source;
mod sse;
mod workspaces;

pub use changes::Changes;
pub use client::{Client, ClientOptions};
pub use error::{ClientError, Result};
/// The JSON that is sent and answered.
pub use leasehold_api as api;
pub use list::List;
pub use requests::RequestFilter;
pub use source::HttpSource;
