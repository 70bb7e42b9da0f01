//! Tests of the operations on real stores, linked into one test program.

mod changes;
mod current_versions;
mod enqueue;
mod graph_schema;
mod job;
mod job_quota;
mod params_schema;
mod quota;
mod serving_thread;
