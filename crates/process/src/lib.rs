//! Process plumbing shared by Leasehold's programs: logging to standard error and signal handling. Knows no command.

mod log_writer;
pub mod logging;
pub mod signals;
