//! Answers with their type erased, so that the threads that run operations are compiled once, not once for each operation.

use crate::error::Fault;
use crate::session::Session;
use leasehold_store::{Error, ErrorKind, Result};
use std::any::Any;

/// The answer of an operation. [`restore`] returns it with its type.
pub(crate) type Answer = Box<dyn Any + Send>;

/// An operation whose answer has no type.
pub(crate) type ErasedQuery =
    Box<dyn FnOnce(&Session<'_>) -> std::result::Result<Answer, Fault> + Send>;

/// Erases the type of a query's answer.
pub(crate) fn erase<T, F>(query: F) -> ErasedQuery
where
    T: Send + 'static,
    F: FnOnce(&Session<'_>) -> std::result::Result<T, Fault> + Send + 'static,
{
    Box::new(move |session| Ok(Box::new(query(session)?)))
}

/// Returns an answer with the type that it had before it was erased.
pub(crate) fn restore<T: 'static>(context: &'static str, answer: Answer) -> Result<T> {
    match answer.downcast() {
        Ok(answer) => Ok(*answer),
        Err(_) => Err(Error::new(
            context,
            ErrorKind::Broken("the operation returned an answer of another type".to_owned()),
        )),
    }
}
