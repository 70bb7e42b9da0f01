//! The testkit on real servers and processes: one test program.

mod databases;
mod processes;
mod proxy;
mod servers;
mod temporal;
