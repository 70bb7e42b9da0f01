//! Tests of the testkit with real servers and processes, linked into one test program.

mod databases;
mod processes;
mod proxy;
mod servers;
mod temporal;
