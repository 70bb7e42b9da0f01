//! Background services: a [`Service`] runs in rounds, [`run`] repeats the rounds until cancelled, and a [`FailureStreak`] reports failed rounds.
//! Other loops use the streak alone. Knows no store, no engine and no HTTP.

mod failure_streak;
mod panic;
mod service;

pub use failure_streak::FailureStreak;
pub use panic::{Panicked, catch_panic};
pub use service::{Next, Service, run};
