//! The client commands of the CLI, their tables, error messages and exit codes. Talks to the server over HTTP only; knows no store.

mod audit;
mod bulk;
mod child_environment;
mod command;
mod command_error;
mod connection;
mod dead_letter;
mod definition;
pub mod demo;
mod display;
mod execution;
mod exit;
mod input;
mod job;
mod key;
mod listing;
mod local_data_dir;
mod output;
mod queue;
mod request;
mod scope;
mod server_info;
mod session;
pub mod top;
mod workspace;

pub use child_environment::private_variables;
pub use command::Command;
pub use connection::Connection;
pub use exit::{Exit, Failure};
pub use local_data_dir::{SOCKET_FILE, local_client};
pub use output::{ColorChoice, Output, OutputFlags, OutputFormat, clean};
pub use session::Session;
