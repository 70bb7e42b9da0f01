//! What people type at a terminal: the client commands, their tables, their errors and their exit codes. Knows the server by HTTP only, and no store.

mod about;
mod bulk;
mod command;
mod connection;
mod dead_letter;
mod definition;
pub mod demo;
mod execution;
mod exit;
mod input;
mod job;
mod key;
mod listing;
mod local;
mod output;
mod queue;
mod request;
mod scope;
mod session;
mod shown;
pub mod top;
mod trouble;
mod workspace;

pub use command::Command;
pub use connection::Connection;
pub use exit::{Exit, Failure};
pub use output::{ColorChoice, Format, Output, OutputFlags, clean};
pub use session::Session;
