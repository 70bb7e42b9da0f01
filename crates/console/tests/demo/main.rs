//! The demo and `top` against a real server: every workspace is served within its limit, and the noisy neighbour delays only itself.
#![allow(clippy::unwrap_used)]

mod demo_server;
mod fairness;
mod pty;
mod terminal;
mod top;

use std::time::Duration;

/// Timeout for conditions that should hold soon.
const TIMEOUT: Duration = Duration::from_secs(180);
