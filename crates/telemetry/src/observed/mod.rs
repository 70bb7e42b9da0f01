//! The ports watched from outside: what a call's outcome tells is counted here, once for all who call. Decides nothing.

mod engine;
mod store;
mod tally;

pub use engine::ObservedEngine;
pub use store::{ObservedStore, StoreMetrics, observe_store};
pub use tally::Tally;
