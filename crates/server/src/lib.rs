//! The HTTP API: every operation of the system, authenticated by API keys. Depends on the ports and `ops`; knows no database and no engine by name.
//!
//! A call passes these layers in order: the deadline (`deadline`), load shedding (`load_shed`), authorization (`access`), tracing (`trace`) and the
//! rate limit (`rate_limit`) and the memory of the response (`call_memory`). The handler then reads the parameters and the body (bounded in size and time; an error names the invalid field) and calls
//! one operation of `ops` or one query of the store. The result becomes JSON or a problem. A route's row (`route`) declares the policy its layers apply.

mod access;
mod activity;
mod api_error;
mod app;
mod body;
mod call;
mod call_memory;
mod call_owner;
mod call_task;
mod change_stream;
mod change_watcher;
mod claim_wait;
mod connection;
mod connection_pool;
mod cursors;
mod deadline;
mod errors;
#[cfg(test)]
mod fuzz_tests;
mod gauges;
mod host;
mod key_cache;
mod large_changes;
mod line_scanner;
mod listen;
mod lists;
mod load_shed;
mod log_throttle;
mod memory_budget;
mod metrics;
mod openapi;
mod options;
mod owner_pool;
mod params;
mod rate_limit;
#[cfg(test)]
mod reference;
mod route;
mod routes;
mod state;
mod store_connections;
mod strict;
mod strict_stream;
mod tls;
mod trace;

pub use app::{app, routes, routes_with_body};
pub use listen::{DrainReport, ListenError, Server};
pub use options::ServerOptions;
pub use state::{EngineWatch, State, StateParts};
pub use store_connections::share_connections;
pub use tls::{Tls, TlsError};
