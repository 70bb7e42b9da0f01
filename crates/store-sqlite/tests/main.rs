//! What the store on SQLite adds to the conformance suite: one test program.

mod claim_cost;
mod conformance;
mod drift;
mod hand_written;
mod history;
mod job_cost;
mod jobs;
mod owner;
mod schema;
mod turns;
mod values;
