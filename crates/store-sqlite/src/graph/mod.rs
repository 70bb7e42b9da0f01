//! Graphs that run in the store. The core's machine decides; the files here load where a graph is, and write what follows.
//!
//! An operation opens the graphs it needs (`open::Open`), tells them what happened, and writes all of it at its end (`write`).

pub(crate) mod calls;
pub(crate) mod machines;

mod finish;
mod open;
mod read;
mod settle;
mod start;
mod stop;
mod write;
