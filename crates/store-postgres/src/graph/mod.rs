//! Graphs that run on the WorkQueue: starting, stopping, and what the end of a node leads to. The core decides, this carries out; the order of
//! locks is in `docs/adr/0007-graphs-on-the-workqueue.md`.

mod change;
mod finish;
mod given;
mod hold;
mod machines;
mod read;
mod settle;
mod start;
mod stop;
mod write;

pub(crate) use finish::finish;
pub(crate) use machines::Machines;
pub(crate) use read::{get, nodes, output};
pub(crate) use settle::settle;
pub(crate) use start::start;
pub(crate) use stop::stop;
