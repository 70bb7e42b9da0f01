//! The API as its callers see it: every route, its successes and its refusals, without a socket where none is needed.
#![allow(clippy::unwrap_used)]

mod about;
mod access;
mod backlog;
mod bad_input;
mod changes;
mod claims;
mod definitions;
mod described;
mod doctor;
mod everyone;
mod executions;
mod finding;
mod graphs;
mod jobs;
mod listen;
mod listening;
mod overview;
mod queues;
mod request_acts;
mod requests;
mod resume;
mod sse;
mod stopping;
mod tls;
mod why;
