//! The conformance suite for stores: one test case for each guarantee of the storage port, run by every adapter. Knows no database and no SQL.
//!
//! An adapter's test file has a function that creates an empty store, and expands the suite with it:
//!
//! ```no_run
//! use leasehold_store_conformance::{Fixture, clock, model::Model, suite};
//! use std::sync::Arc;
//!
//! async fn fixture() -> Fixture {
//!     let clock = clock();
//!     // A real adapter opens its store with `Clock::Manual(clock.clone())`, migrates it, and keeps its directory or
//!     // database alive with `Fixture::guarded`.
//!     Fixture::new(Arc::new(Model::new(clock.clone())), clock)
//! }
//!
//! // The path is used inside modules: start it with `crate`.
//! suite!(crate::fixture);
//! # fn main() {}
//! ```
//!
//! Each case becomes a test named `<module>::<case>` and panics if the store violates the guarantee.

mod fixture;
mod seeded_rng;
mod suite;

pub mod broken_execution;
pub mod dump;
pub mod factory;
pub mod graph_factory;
pub mod graph_invariants;
pub mod history;
pub mod invariants;
pub mod job_factory;
pub mod job_invariants;
pub mod model;
pub mod stress;
pub mod timeline;

pub mod audit;
pub mod bounds;
pub mod change;
pub mod definition;
pub mod drift_check;
pub mod execution_finish;
pub mod execution_list;
pub mod execution_list_active;
pub mod execution_list_running;
pub mod graph_expire;
pub mod graph_nodes;
pub mod graph_start;
pub mod graph_stop;
pub mod installation_secret;
pub mod instance;
pub mod isolation;
pub mod job_cancel;
pub mod job_claim;
pub mod job_claim_bytes;
pub mod job_dedup;
pub mod job_enqueue;
pub mod job_finish;
pub mod job_finish_kinds;
pub mod job_group;
pub mod job_limit;
pub mod job_list;
pub mod job_notification;
pub mod job_prune;
pub mod job_race;
pub mod job_renew;
pub mod job_requeue;
pub mod key;
pub mod key_rotation;
pub mod lock;
pub mod node_finish;
pub mod node_payload;
pub mod node_race;
pub mod node_report;
pub mod notification;
pub mod prune;
pub mod queue;
pub mod queue_access;
pub mod queue_overview;
pub mod race;
pub mod request_cancel;
pub mod request_claim;
pub mod request_counts;
pub mod request_dispatched;
pub mod request_enqueue;
pub mod request_fail;
pub mod request_idempotency;
pub mod request_key_holders;
pub mod request_list;
pub mod request_note_crash;
pub mod request_oldest;
pub mod request_position;
pub mod request_recover;
pub mod request_redrive;
pub mod request_release;
pub mod request_renew;
pub mod request_timeline;
pub mod transition;
pub mod work_queue_lifecycle;
pub mod workspace;
pub mod workspace_overview;
pub mod workspace_quota;

pub use factory::{LEASE, OWNER, TestWorkspace, USER};
pub use fixture::{Fixture, clock};
pub use model::model_test;
