//! Tests of the HTTP API as its callers see it: responses and problems of every route, without a socket where none is needed.
#![allow(clippy::unwrap_used)]

mod about;
mod access;
mod audit;
mod bad_input;
mod changes;
mod claims;
mod cursors;
mod definitions;
mod doctor;
mod executions;
mod fairness;
mod find;
mod fixtures;
mod graphs;
mod hidden_payloads;
mod job_quota;
mod jobs;
mod key_rights;
mod key_validity;
mod listen;
mod listening_server;
mod local_socket;
mod message_framing;
mod openapi;
mod overview;
mod queue_access;
mod queues;
mod quota;
mod request_actions;
mod requests;
mod resume;
mod sse;
mod stopping;
mod tls;
mod why;
