//! Tests of `leasehold worker` with a real Temporal and a real server: the engine conformance suite, histories, crashes and invalid settings.

#![allow(clippy::unwrap_used)]

mod conformance;
mod crash;
mod histories;
mod program;
mod refusal;
mod temporal_fixture;

use std::time::Duration;

/// Limit on waiting for an expected event; long enough for a slow machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(300);
