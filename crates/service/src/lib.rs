//! The shape of a background service: a [`Service`] does rounds, [`run`] repeats them until told to stop, and a [`FailureStreak`] reports rounds that
//! fail. Loops of another shape use the streak alone. Knows no store, no engine and no HTTP.

mod failure_streak;
mod service;

pub use failure_streak::FailureStreak;
pub use service::{Next, Service, run};
