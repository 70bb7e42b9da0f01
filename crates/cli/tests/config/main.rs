//! `leasehold config`, `doctor`, `migrate` and the errors of `serve`, run as processes: their output and exit codes.

#![allow(clippy::unwrap_used)]

mod cases;
mod doctor;
mod edges;
mod example;
mod invalid_files;
mod migrate;
mod print;
mod program;
