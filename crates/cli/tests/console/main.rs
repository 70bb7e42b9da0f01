//! The client commands as processes against a real server: output, exit codes, and how they find the server.

#![allow(clippy::unwrap_used)]

mod bulk;
mod cli_env;
mod demo;
mod errors;
mod finding;
mod json;
mod key_secrecy;
mod recorder;
mod tables;
mod tour;
mod watching;
mod work;

use std::time::Duration;

/// Generous for slow machines; conditions hold much sooner.
const TIMEOUT: Duration = Duration::from_secs(180);
