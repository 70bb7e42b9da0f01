//! What every program of Leasehold does as a process: logs to standard error, listens for signals. Knows no command.

mod log_writer;
pub mod logging;
pub mod signals;
