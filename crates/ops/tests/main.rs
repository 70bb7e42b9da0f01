//! The operations on real stores: one test program.

mod backlog;
mod changes;
mod enqueue;
mod graph_schema;
mod job;
