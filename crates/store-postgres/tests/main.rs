//! PostgreSQL-specific store tests and the conformance suite, linked into one test program.
#![allow(clippy::unwrap_used)]

mod broken_executions;
mod claim_cost;
mod conformance;
mod drift;
mod explain;
mod frozen;
mod functions;
mod graph_cost;
mod graphs;
mod history;
mod jobs;
mod kept_keys;
mod keys;
mod locks;
mod manual_writes;
mod newer_columns;
mod notifications;
mod orphans;
mod own_transaction;
mod publication;
mod queue_list_cost;
mod queue_owner;
mod quota;
mod read_cost;
mod recover_cost;
mod schema;
mod shedlock;
mod statement_timeout;
mod statements;
mod stream;
mod support;
mod tls;
mod transactional;
mod traps;
mod unknown_names;
