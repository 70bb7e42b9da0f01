//! The client commands as processes, against a real server: what they print, how they end, and how they find their way.

#![allow(clippy::unwrap_used)]

mod bulk;
mod cli_env;
mod demo;
mod errors;
mod finding;
mod json;
mod tables;
mod tour;
mod watching;
mod work;

use std::time::Duration;

/// Long enough for a slow machine; what is waited for comes much sooner.
const PATIENCE: Duration = Duration::from_secs(60);
