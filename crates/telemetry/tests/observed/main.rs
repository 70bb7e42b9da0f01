//! Every outcome of a store call is counted once: an observed SQLite store, and the metrics that changed after each call.

#![allow(clippy::unwrap_used)]

mod engine;
mod jobs;
mod locks;
mod observed_env;
mod requests;
