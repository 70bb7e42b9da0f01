//! The HTTP API: everything the system does, for programs, and for nobody without a key. Sees the ports and `ops`; knows no database and no engine by name.
//!
//! A call passes, in this order: the *deadline* (what takes too long is answered), the *guard* (a key, and whether it opens this route; `access`
//! decides), its parameters and its body (bounded in size and time, refused with the path of what is wrong), then one operation of `ops` or one
//! reading of the store, whose outcome becomes JSON or a problem. The row of a route (`route`) says what its layers need to know.

mod access;
mod app;
mod body;
mod connection;
mod deadline;
mod errors;
mod gauges;
mod keyring;
mod line;
mod listen;
mod lists;
mod metrics;
mod openapi;
mod options;
mod params;
mod places;
mod pulse;
mod rate;
#[cfg(test)]
mod reference;
mod refusal;
mod room;
mod route;
mod routes;
mod state;
mod stream;
mod strict;
mod tls;
mod trace;
mod unserved;
mod watcher;

pub use app::{app, routes, routes_with_body};
pub use listen::{Drained, ListenError, Server};
pub use options::ServerOptions;
pub use state::{EngineWatch, Parts, State};
pub use tls::{Tls, TlsError};
