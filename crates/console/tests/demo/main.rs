//! The demo and `top` on a real server: everybody is served, nobody beyond its limit, and the noisy neighbour waits for itself alone.
#![allow(clippy::unwrap_used)]

mod demo_server;
mod play;
mod pty;
mod terminal;
mod top;

use std::time::Duration;

/// How long anything may take that should happen soon.
const PATIENCE: Duration = Duration::from_secs(60);
