//! What can go wrong inside a command, before the session says it to people.

use crate::exit::{Exit, Failure};
use leasehold_client::ClientError;
use leasehold_client::api::Code;
use std::io;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Trouble {
    /// The server, or the way to it. The session knows which server that is.
    Client(ClientError),
    /// Said as people should read it.
    Failure(Failure),
    /// Nobody reads what is printed any more. No failure: `| head` does so.
    Unread,
}

/// What a command comes to.
pub(crate) type Outcome<T = ()> = Result<T, Trouble>;

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        let message = format!("standard output cannot be written: {error}");
        Self::Failure(Failure::new(Exit::Failed, message))
    }
}

/// How something that needs no server ended, as people read it; nothing if nobody reads any more.
pub(crate) fn told<T>(outcome: Outcome<T>) -> Result<Option<T>, Failure> {
    match outcome {
        Ok(done) => Ok(Some(done)),
        Err(Trouble::Unread) => Ok(None),
        Err(Trouble::Failure(failure)) => Err(failure),
        Err(Trouble::Client(error)) => Err(Failure::new(Exit::Failed, error.to_string())),
    }
}

/// Says what is not there, where the server only says that something is not.
pub(crate) trait OrMissing<T> {
    /// `what` is a thing with its name, `look` the command that lists such things.
    fn or_missing(self, what: impl FnOnce() -> String, look: &str) -> Outcome<T>;
}

impl<T> OrMissing<T> for Result<T, ClientError> {
    fn or_missing(self, what: impl FnOnce() -> String, look: &str) -> Outcome<T> {
        self.map_err(|error| match error.code() {
            Some(Code::NotFound) => missing(&what(), look).into(),
            _ => Trouble::Client(error),
        })
    }
}

pub(crate) fn missing(what: &str, look: &str) -> Failure {
    let message = format!("there is no {what}; `leasehold {look}` shows what there is");
    Failure::new(Exit::NotFound, message)
}
