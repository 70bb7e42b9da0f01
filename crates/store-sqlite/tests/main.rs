//! SQLite-specific store tests and the conformance suite, linked into one test program.

mod broken_rows;
mod claim_cost;
mod conformance;
mod disk_full;
mod drift;
mod file_lock;
mod history;
mod integrity;
mod job_cost;
mod jobs;
mod manual_writes;
mod newer_columns;
mod restored_copy;
mod schema;
mod turns;
mod values;
