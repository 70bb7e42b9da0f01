//! `leasehold config`, `leasehold doctor`, `leasehold migrate` and the edges of `leasehold serve`, by the real program: what it says, and the code it ends with.

#![allow(clippy::unwrap_used)]

mod cases;
mod doctor;
mod edges;
mod example;
mod migrate;
mod program;
mod shown;
mod wrong_files;
