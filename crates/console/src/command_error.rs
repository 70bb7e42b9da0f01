//! Errors inside a command, before the session turns them into messages.

use crate::exit::{Exit, Failure};
use leasehold_client::ClientError;
use leasehold_client::api::Code;
use std::io;

/// The error of a command.
#[derive(Debug)]
pub enum CommandError {
    /// An error of the API client. The session adds the server's URL.
    Client(ClientError),
    /// A failure with its final message.
    Failure(Failure),
    /// The reader closed standard output, as `| head` does. Not a failure.
    OutputClosed,
}

/// The result of a command.
pub(crate) type CommandResult<T = ()> = Result<T, CommandError>;

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        let message = format!("cannot write to standard output: {error}");
        Self::Failure(Failure::new(Exit::Failed, message))
    }
}

/// Converts the result of an offline command into a failure; `None` if standard output was closed.
pub(crate) fn finish<T>(outcome: CommandResult<T>) -> Result<Option<T>, Failure> {
    match outcome {
        Ok(done) => Ok(Some(done)),
        Err(CommandError::OutputClosed) => Ok(None),
        Err(CommandError::Failure(failure)) => Err(failure),
        Err(CommandError::Client(error)) => Err(Failure::new(Exit::Failed, error.to_string())),
    }
}

/// Replaces the server's generic `not_found` problem by a message that names the resource.
pub(crate) trait OrNotFound<T> {
    /// `what` is the resource with its name, `list_command` the command that lists such resources.
    fn or_not_found(self, what: impl FnOnce() -> String, list_command: &str) -> CommandResult<T>;
}

impl<T> OrNotFound<T> for Result<T, ClientError> {
    fn or_not_found(self, what: impl FnOnce() -> String, list_command: &str) -> CommandResult<T> {
        self.map_err(|error| match error.code() {
            Some(Code::NotFound) => not_found(&what(), list_command).into(),
            _ => CommandError::Client(error),
        })
    }
}

pub(crate) fn not_found(what: &str, list_command: &str) -> Failure {
    let message = format!("{what} not found; list with `leasehold {list_command}`");
    Failure::new(Exit::NotFound, message)
}
