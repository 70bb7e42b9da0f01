//! `leasehold worker` against a real Temporal and a real server: the suite of engines, the histories it leaves, what it survives, what it refuses.

#![allow(clippy::unwrap_used)]

mod conformance;
mod crash;
mod histories;
mod program;
mod refusal;
mod temporal_fixture;

use std::time::Duration;

/// Long enough for a slow machine; what is waited for comes much sooner.
const PATIENCE: Duration = Duration::from_secs(90);
