//! Tests of the HTTP API as its callers see it: responses and problems of every route, without a socket where none is needed.
#![allow(clippy::unwrap_used)]

mod about;
mod access;
mod backlog;
mod bad_input;
mod changes;
mod claims;
mod definitions;
mod doctor;
mod executions;
mod find;
mod fixtures;
mod graphs;
mod jobs;
mod listen;
mod listening_server;
mod openapi;
mod overview;
mod queues;
mod request_actions;
mod requests;
mod resume;
mod sse;
mod stopping;
mod tls;
mod why;
