//! What the store on PostgreSQL adds to the conformance suite: one test program.

mod claim_cost;
mod conformance;
mod drift;
mod explain;
mod functions;
mod graph_cost;
mod graphs;
mod hand_written;
mod history;
mod jobs;
mod keys;
mod read_cost;
mod schema;
mod shedlock;
mod statements;
mod stream;
mod support;
mod tls;
mod transactional;
mod wake;
