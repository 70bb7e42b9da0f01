//! Tests of the operations on real stores, linked into one test program.

mod backlog;
mod changes;
mod enqueue;
mod graph_schema;
mod job;
