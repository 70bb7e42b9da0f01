//! Every outcome of a store's calls is counted once, as it is described: a real store, watched, and what has moved after each call.

#![allow(clippy::unwrap_used)]

mod engine;
mod jobs;
mod locks;
mod observed_env;
mod requests;
