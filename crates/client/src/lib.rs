//! A typed client of the HTTP API, and a job source for workers over HTTP. Knows the API's JSON and no store.
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
//! // The same handlers as with a store.
//! let worker = Worker::builder(Arc::new(HttpSource::new(client)))
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
//! The client retries only idempotent calls, with exponential backoff and the server's `Retry-After`. Every call has a timeout.

mod change_stream;
mod client;
mod convert;
mod definitions;
mod error;
mod http_source;
mod jobs;
mod list;
mod requests;
mod server_info;
#[cfg(unix)]
mod socket_path;
mod sse;
mod workspaces;

pub use change_stream::ChangeStream;
pub use client::{Client, ClientOptions};
pub use error::{ClientError, Result};
pub use http_source::HttpSource;
/// The JSON types of the API.
pub use leasehold_api as api;
pub use list::List;
pub use requests::RequestFilter;
#[cfg(unix)]
pub use socket_path::{SocketPath, directory_path};
pub use workspaces::AuditFilter;
