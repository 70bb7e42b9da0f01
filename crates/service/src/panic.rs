//! Turns a panic of a task into a value. Logs and counts nothing.

use futures::FutureExt;
use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;

/// The panic of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked(String);

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl std::error::Error for Panicked {}

/// Runs a future and returns its panic as an error. State that the future shares with others must be consistent at every await point.
pub async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let caught = AssertUnwindSafe(work).catch_unwind().await;
    caught.map_err(|panic| Panicked(panic_message(&*panic).to_owned()))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}
