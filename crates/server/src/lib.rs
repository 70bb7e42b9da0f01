//! The HTTP API: every operation of the system, authenticated by API keys. Depends on the ports and `ops`; knows no database and no engine by name.
//!
//! A call passes these layers in order: the deadline (`deadline`), load shedding (`load_shed`), authorization (`access`), tracing (`trace`) and the
//! rate limit (`rate_limit`). The handler then reads the parameters and the body (bounded in size and time; an error names the invalid field) and calls
//! one operation of `ops` or one query of the store. The result becomes JSON or a problem. A route's row (`route`) declares the policy its layers apply.

mod access;
mod activity;
mod api_error;
mod app;
mod body;
mod change_stream;
mod change_watcher;
mod claim_wait;
mod concurrency;
mod connection;
mod deadline;
mod errors;
mod gauges;
mod key_cache;
mod listen;
mod lists;
mod load_shed;
mod log_throttle;
mod metrics;
mod openapi;
mod options;
mod params;
mod rate_limit;
#[cfg(test)]
mod reference;
mod route;
mod routes;
mod state;
mod strict;
mod tls;
mod trace;

pub use app::{app, routes, routes_with_body};
pub use listen::{DrainReport, ListenError, Server};
pub use options::ServerOptions;
pub use state::{EngineWatch, State, StateParts};
pub use tls::{Tls, TlsError};
